"""One media unit on its way in: its parts between the template's tokens, encoded and prefilled as one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.change import ChangeGate, Look, Thresholds
from omnitide_cli.runtime.events import Event, Notice, TokenCounts
from omnitide_cli.runtime.native_session import AudioFormat, NativeSession
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.stream_unit import StreamUnit
from omnitide_cli.runtime.template import TokenTemplate
from omnitide_cli.times import clock


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a unit."""

    unit: int | None = None
    """Its id in the ledger; None: there was nothing in it."""
    tokens: TokenCounts = field(default_factory=TokenCounts)
    encode_ms: float = 0.0
    prefill_ms: float = 0.0
    notices: tuple[Event, ...] = ()
    picture: str = "none"
    """What became of the picture, as `UnitIngested.picture`."""
    saved_tokens: int = 0
    look: Look | None = None
    """How its picture was compared; None: it wasn't."""


class Intake:
    """Takes media units into a session's history."""

    def __init__(self, session: NativeSession, template: TokenTemplate, name: str, options: EngineOptions) -> None:
        """`name`: the model's, for what it refuses."""
        self._session = session
        self._template = template
        self._name = name
        self._options = options
        self._sees = bool(session.snapshot().has_vision)
        self.audio_format: AudioFormat | None = None
        """What sound the model hears; None: none."""
        self._why_deaf = ""
        self.gate: ChangeGate | None = None
        """Leaves out pictures that show nothing new; None: all are encoded."""
        if options.change == "auto":
            self.gate = ChangeGate(Thresholds(options.change_mean, options.change_peak, options.refresh))
        try:
            self.audio_format = session.audio_format
        except ModelError as error:
            self._why_deaf = error.message

    def take(self, unit: StreamUnit) -> Taken:
        """Encode and prefill a unit. Raises what `Engine.ingest` raises, and Interrupted; no token is left then."""
        notices: list[Event] = []
        sound = unit.audio
        if sound is not None and self.audio_format and len(sound) < self.audio_format.shortest:
            message = f"{len(sound)} samples of sound at {clock(unit.start)} are too few for a token and were ignored"
            notices.append(Notice(code="sound-too-short", message=message))
            sound = None
        if unit.frame is None and sound is None:
            return Taken(notices=tuple(notices))
        self._check_senses(unit.frame is not None, sound is not None)
        look = None if self.gate is None or unit.frame is None else self.gate.look(unit.frame, unit.start)
        is_same = look is not None and look.picture == "same"
        if look is not None and is_same and sound is None:
            return self._judged(Taken(notices=tuple(notices)), look)
        session, template = self._session, self._template
        session.begin("media", unit.start, unit.end)
        try:
            session.add_tokens("boundary", template.unit_prefix)
            if is_same:
                session.add_tokens("boundary", template.same_picture)
            elif unit.frame is not None:
                session.add_tokens("boundary", template.image_prefix)
                session.add_image(unit.frame)
                session.add_tokens("boundary", template.image_suffix)
            if sound is not None:
                session.add_tokens("boundary", template.audio_prefix)
                session.add_audio(sound, unit.audio_left, unit.audio_right)
                session.add_tokens("boundary", template.audio_suffix)
            session.add_tokens("boundary", template.unit_suffix)
        except BaseException:
            session.abandon()
            raise
        done = session.commit()
        counts = TokenCounts(
            done.image_tokens, done.audio_tokens, done.text_tokens, done.boundary_tokens, done.total_tokens
        )
        if counts.total > self._options.high_watermark and self._options.policy != "full":
            message = f"a unit of {counts.total} tokens is above the high watermark ({self._options.high_watermark})"
            notices.append(Notice(code="unit-too-large", message=message, hint="raise --high-watermark"))
        picture = "none" if unit.frame is None else "new"
        taken = Taken(done.unit, counts, done.encode_ms, done.prefill_ms, tuple(notices), picture)
        return taken if look is None else self._judged(taken, look)

    def shortened(self) -> None:
        """The history was: if it has lost any of the last encoded picture, the next one is encoded."""
        gate = self.gate
        if gate is None or gate.encoded_at is None:
            return
        for unit in reversed(self._session.units()):
            if unit.kind == "media" and not unit.recalled and unit.start_s <= gate.encoded_at:
                if unit.partial or unit.start_s < gate.encoded_at:
                    gate.renew()
                return
        gate.renew()

    def _judged(self, taken: Taken, look: Look) -> Taken:
        """What the gate has to know of a unit that is in the history, and what is told of it."""
        assert self.gate is not None
        template = self._template
        if look.picture == "new":
            marks = len(template.image_prefix) + len(template.image_suffix)
            self.gate.took(look, taken.tokens.image + marks)
            return replace(taken, look=look)
        self.gate.took(look, 0)
        spared = max(0, self.gate.tokens - (len(template.same_picture) if taken.unit is not None else 0))
        return replace(taken, picture="same", saved_tokens=spared, look=look)

    def _check_senses(self, sees: bool, hears: bool) -> None:
        if sees and not self._sees:
            raise ModelError(
                f"{self._name} can't see pictures", "use --no-video, or a model with a vision encoder (--mmproj)"
            )
        if hears and not self.audio_format:
            raise ModelError(
                f"{self._name} can't hear sound: {self._why_deaf}",
                "use --no-audio, or a model with an audio encoder (--mmproj)",
            )
