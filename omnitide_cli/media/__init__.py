"""The outside world, cut into MediaUnits."""

from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.live import LiveSource, open_live
from omnitide_cli.media.position import SourcePosition
from omnitide_cli.media.source import MediaSource, SourceInfo, SourceWarning, open_source
from omnitide_cli.media.unit import SAMPLE_RATE, MediaUnit

__all__ = [
    "SAMPLE_RATE",
    "FrameFit",
    "LiveSource",
    "MediaSource",
    "MediaUnit",
    "SourceInfo",
    "SourcePosition",
    "SourceWarning",
    "open_live",
    "open_source",
]
