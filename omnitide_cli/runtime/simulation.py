"""Units of a given size through retention, placement and migration, without a model (`inspect-kv --simulate`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import omnitide_cli
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.events import KvBytes, SessionStarted
from omnitide_cli.runtime.history import History
from omnitide_cli.runtime.kv_state import KvState, Moment, SessionSnapshot, Simulation
from omnitide_cli.runtime.options import EngineOptions, check_watermarks, is_own_policy, reads_attention
from omnitide_cli.runtime.reports import migration, retention
from omnitide_cli.runtime.sizing import check_low_watermark, whole_pages
from omnitide_cli.runtime.timeline import Timeline
from omnitide_cli.runtime.view import Part, span_ratio

MOST_CELLS = 1 << 24
SOUND_TOKENS, BOUNDARY_TOKENS = 25, 4  # of a second


@dataclass(frozen=True, slots=True)
class Stream:
    """Units that are all alike. With `slices`, an image is a source and that many slices of `image` tokens each."""

    units: int
    image: int
    audio: int
    slices: int = 0
    system_tokens: int = 32
    boundary: int = BOUNDARY_TOKENS

    @property
    def unit_tokens(self) -> int:
        """Tokens of one unit."""
        return sum(part.length for part in self.parts())

    def parts(self) -> list[Part]:
        """The spans of one unit: picture and sound, each between its markers."""
        image = [Part("image", self.image)] * bool(self.image)
        if self.slices and self.image:
            image = [Part("image-source", self.image), *[Part("image", self.image)] * self.slices]
        audio = [Part("audio", self.audio)] * bool(self.audio)
        of_image = self.boundary if not audio else (self.boundary + 1) // 2 if image else 0
        of_audio = self.boundary - of_image
        before, between, after = (of_image + 1) // 2, of_image // 2 + (of_audio + 1) // 2, of_audio // 2
        marked = [Part("boundary", before), *image, Part("boundary", between), *audio, Part("boundary", after)]
        return [part for part in marked if part.length]


def image_tokens(unit_tokens: int, audio: int = SOUND_TOKENS) -> int:
    """What a unit so large has left for its image."""
    return max(unit_tokens - audio - BOUNDARY_TOKENS, 0)


@dataclass(slots=True)
class _Record:
    """What the states right after each maintenance were."""

    page_spans: list[int] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    active_pages: list[int] = field(default_factory=list)
    rows_moved: int = 0
    rows_shifted: int = 0
    migrations: int = 0
    last: tuple[int, Any] | None = None
    """The unit after which the last round was, and the round."""

    def add(self, unit: int, done: Any) -> None:
        self.last = unit, done
        self.page_spans.append(done.after.page_span)
        self.ratios.append(span_ratio(done.after))
        self.active_pages.append(done.after.active_pages)
        self.rows_moved += done.rows_moved
        self.rows_shifted += done.rows_shifted
        self.migrations += done.accepted


def simulate(options: EngineOptions, stream: Stream, *, page_size: int = 64, bytes_per_cell: int = 0) -> Simulation:
    """Feed the whole stream, maintaining after each unit as a session does. Raises UsageError for what can't be.

    The cache is as large as the stream needs unless `options.ctx` says otherwise.
    """
    unit = stream.parts()
    tokens = stream.unit_tokens
    options = replace(options, unit_tokens=tokens)
    if not (stream.image or stream.audio):
        raise UsageError("the units are empty", "give --image N or --audio N")
    check_watermarks(options)
    check_simulated(options.policy)
    check_low_watermark(options, stream.system_tokens)
    full = options.policy == "full"
    most = stream.system_tokens + stream.units * tokens if full else options.high_watermark + tokens
    cells = options.ctx or whole_pages(most, page_size)
    if cells > MOST_CELLS:
        raise UsageError(
            f"a cache of {cells} cells is too large to simulate (at most {MOST_CELLS})", "simulate fewer units"
        )
    subblock_size = page_size // 2 if page_size % 2 == 0 else page_size
    record, timeline = _Record(), Timeline()
    peak = 0
    with History(options, cells, page_size=page_size, subblock_size=subblock_size) as history:
        if stream.system_tokens:
            history.append("system", [Part("system", stream.system_tokens)])
        for index in range(stream.units):
            history.append("media", unit, index, index + 1)
            peak = max(peak, history.snapshot().layout.physical_span)
            done = history.maintain()
            if done.retained:
                record.add(index, done)
            layout = history.snapshot().layout
            timeline.add(Moment(index + 1, layout.useful_cells, layout.page_span, layout.physical_span))
        layout = history.snapshot().layout
        sizes = (cells, layout.physical_span, layout.useful_cells)
        state = history.kv_state(
            "simulation",
            page_size=page_size,
            subblock_size=subblock_size,
            peak=peak,
            kv_bytes=KvBytes(*(bytes_per_cell * count for count in sizes)) if bytes_per_cell else None,
        )
    last = SessionSnapshot(
        state,
        _about(options, state),
        kind="simulated",
        clock=float(stream.units),
        retention=record.last and retention(*record.last),
        migration=record.last and migration(*record.last),
        retentions=len(record.page_spans),
        moments=timeline.moments(),
        moment_units=timeline.units_each,
        ended=True,
    )
    return Simulation(
        last=last,
        units=stream.units,
        mean_page_span=fmean(record.page_spans) if record.page_spans else None,
        mean_span_ratio=fmean(record.ratios) if record.ratios else None,
        mean_active_pages=fmean(record.active_pages) if record.active_pages else None,
        rows_moved=record.rows_moved,
        rows_shifted=record.rows_shifted,
        migrations=record.migrations,
    )


def check_simulated(policy: str) -> None:
    """Raise UsageError for a policy that needs a model."""
    if is_own_policy(policy):
        from omnitide_cli.runtime.own_policy import load_policy

        wants = " and ".join(sorted(load_policy(policy).wants))
    else:
        wants = "attention" if reads_attention(policy) else ""
    if wants:
        raise UsageError(
            f"--policy {policy} reads {wants}, and a simulation has no model",
            f"choose another policy, or inspect a real session that uses {policy}",
        )


def _about(options: EngineOptions, state: KvState) -> SessionStarted:
    return SessionStarted(
        version=omnitide_cli.__version__,
        model="none",
        source="simulated",
        policy=options.policy,
        layout=options.layout,
        positions=options.positions,
        high_watermark=options.high_watermark,
        low_watermark=options.low_watermark,
        n_ctx=state.cells,
        page_size=state.page_size,
        subblock_size=state.subblock_size,
        cache_type=options.cache_type,
        threads=0,
        flash_attn=options.flash_attn != "off",
    )
