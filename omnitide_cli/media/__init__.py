"""The outside world, cut into MediaUnits."""

from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.live import LiveSource, open_live
from omnitide_cli.media.position import SourcePosition
from omnitide_cli.media.source import MediaSource, SourceInfo, SourceWarning, open_source
from omnitide_cli.media.unit import MediaUnit, SoundFormat

__all__ = [
    "FrameFit",
    "LiveSource",
    "MediaSource",
    "MediaUnit",
    "SoundFormat",
    "SourceInfo",
    "SourcePosition",
    "SourceWarning",
    "open_live",
    "open_source",
]
