"""Everything a Python user has, used once each: never run, but checked by pyright in strict mode."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import omnitide_cli as omnitide


def watch(path: Path) -> str:
    options: omnitide.Options = {"policy": "omnipick", "high_watermark": 1500, "low_watermark": 900}
    session: omnitide.Session
    with omnitide.load("omnitide-demo", system="Watch.", unit_seconds=0.5, progress=print, **options) as session:
        stream: omnitide.UnitStream = omnitide.read(path, for_=session, start=1, duration=3.5, loop=2, audio_track=1)
        unit: omnitide.MediaUnit
        session.alert("door=Is somebody there?", lambda alert: print(alert.text, alert.at, alert.probability))
        session.alert(omnitide.Rule("Is it dark?", name="dark", threshold=0.9, senses="sight", every=5))
        for unit in stream:
            taken = session.add(unit)
            if taken is not None:
                print(taken.tokens.total, taken.wall, taken.lag_ms, unit.frame is None)
        answer: omnitide.Answer = session.ask("What?", on_text=lambda text: print(text))
        for event in session.events:
            if isinstance(event, omnitide.events.Retention):
                print(event.deleted_tokens, event.to_json())
        stop = session.events.subscribe(lambda event: print(event.type))
        stop()
        session.save("talk.tide")
        print(session.snapshot().state.physical_span, session.summary().units, session.clock, session.options.policy)
        return answer.text + answer.stop + f"{answer.at:g}"


def resume() -> None:
    try:
        session = omnitide.open_session(Path("talk.tide"), policy="forget.py:oldest", threads=2)
    except omnitide.errors.SessionFileError as error:
        print(error.message, error.hint, error.exit_code)
        return
    except omnitide.OmniTideError:
        raise
    with session, omnitide.open_live("0", "none", for_=session, duration=10.0) as live:
        while not live.is_over:
            unit = live.poll()
            if unit is not None:
                session.add(unit)
        session.interrupt()
        session.add(session.unit(np.zeros((4, 4, 3), np.uint8), np.zeros(16_000, np.float32), seconds=1.0))


print(omnitide.__version__)
