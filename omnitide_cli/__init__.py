"""OmniTide: endless audio-video-text sessions that stay answerable on one machine.

    import omnitide_cli as omnitide

    with omnitide.load("qwen2.5-omni-3b") as session:
        for unit in omnitide.read("talk.mp4", for_=session):
            session.add(unit)
        print(session.ask("What was it about?").text)

This is all of the public face; docs/python-api.md describes it. It is loaded when it is first used: importing the
package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "MediaUnit",
    "OmniTideError",
    "Options",
    "Rule",
    "Session",
    "UnitStream",
    "__version__",
    "errors",
    "events",
    "load",
    "open_live",
    "open_session",
    "read",
]

if TYPE_CHECKING:
    from omnitide_cli import errors as errors
    from omnitide_cli.alerts.rule import Rule as Rule
    from omnitide_cli.errors import OmniTideError as OmniTideError
    from omnitide_cli.media.unit import MediaUnit as MediaUnit
    from omnitide_cli.runtime import events as events
    from omnitide_cli.runtime.events import Answer as Answer
    from omnitide_cli.session.library import Session as Session
    from omnitide_cli.session.library import load as load
    from omnitide_cli.session.library import open_session as open_session
    from omnitide_cli.session.library_options import Options as Options
    from omnitide_cli.session.units import UnitStream as UnitStream
    from omnitide_cli.session.units import open_live as open_live
    from omnitide_cli.session.units import read as read
else:
    _HOMES = {
        "errors": ("omnitide_cli.errors", None),
        "events": ("omnitide_cli.runtime.events", None),
        "OmniTideError": ("omnitide_cli.errors", "OmniTideError"),
        "MediaUnit": ("omnitide_cli.media.unit", "MediaUnit"),
        "Answer": ("omnitide_cli.runtime.events", "Answer"),
        "Options": ("omnitide_cli.session.library_options", "Options"),
        "Rule": ("omnitide_cli.alerts.rule", "Rule"),
        "Session": ("omnitide_cli.session.library", "Session"),
        "load": ("omnitide_cli.session.library", "load"),
        "open_session": ("omnitide_cli.session.library", "open_session"),
        "UnitStream": ("omnitide_cli.session.units", "UnitStream"),
        "open_live": ("omnitide_cli.session.units", "open_live"),
        "read": ("omnitide_cli.session.units", "read"),
    }

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _HOMES[name]
        found = import_module(module)
        return found if attribute is None else getattr(found, attribute)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
