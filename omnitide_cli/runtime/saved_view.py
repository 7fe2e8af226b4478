"""A saved session as `inspect-kv` shows it: its history is read without a model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import OmniTideError, SessionFileError
from omnitide_cli.runtime.events import SessionStarted
from omnitide_cli.runtime.history import History
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.runtime.options import MOST_TOKENS, EngineOptions
from omnitide_cli.runtime.saved import Saved
from omnitide_cli.runtime.session_file import damaged, read_session
from omnitide_cli.runtime.sizing import PAGE_SIZE, SUBBLOCK_SIZE


def saved_snapshot(path: Path) -> SessionSnapshot:
    """What a `.tide` file holds, and with which settings. Raises SessionFileError."""
    file = read_session(path)
    saved = file.saved
    if not file.state.size or saved.engine.cells > MOST_TOKENS:
        damaged(path, "its history doesn't fit any cache")
    try:
        options = EngineOptions(**asdict(saved.options))
        with History(options, saved.engine.cells, mrope=file.state[0] != 0) as history:
            history.restore_session(file.state)
            state = history.kv_state(
                path.name, page_size=PAGE_SIZE, subblock_size=SUBBLOCK_SIZE, peak=saved.engine.totals.peak_span
            )
    except SessionFileError as error:
        damaged(path, error.message)
    except (OmniTideError, KeyError, OverflowError) as error:  # settings that no session has
        damaged(path, f"its settings can't be ({error})")
    return SessionSnapshot(
        state,
        _about(saved, state.cells),
        kind="saved",
        clock=saved.media.clock,
        retentions=saved.engine.totals.retentions,
        answers=saved.engine.totals.answers,
        pictures=saved.engine.totals.pictures,
        same_pictures=saved.engine.totals.same_pictures,
        saved_tokens=saved.engine.totals.saved_tokens,
        written=path.stat().st_mtime,
        ended=True,
    )


def _about(saved: Saved, cells: int) -> SessionStarted:
    options = saved.options
    return SessionStarted(
        version=saved.version,
        model=saved.model.name,
        source=display_name(saved.media.source),
        policy=options.policy,
        layout=options.layout,
        positions=options.positions,
        high_watermark=options.high_watermark,
        low_watermark=options.low_watermark,
        n_ctx=cells,
        page_size=PAGE_SIZE,
        subblock_size=SUBBLOCK_SIZE,
        cache_type=options.cache_type,
        threads=0,
        flash_attn=options.flash_attn != "off",
    )
