"""What is known of a policy, a layout, one of their settings, or a kind of sound encoder. `_registry.py`, made at build
time, lists them all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting of a policy or a layout; `name` is its flag without the dashes in front."""

    name: str
    kind: type[int] | type[float]
    default: float | None
    """None: the policy's own choice, as long as no flag sets it."""
    least: float
    metavar: str
    shown_default: str
    """The default, in help's words."""
    sentence: str

    @property
    def field(self) -> str:
        """Its name in `EngineOptions` and in native code."""
        return self.name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A retention policy that native code has."""

    number: int
    reads_attention: bool
    sentence: str
    """What stays, as it follows the policy's name."""
    knobs: tuple[Knob, ...] = ()


@dataclass(frozen=True, slots=True)
class LayoutEntry:
    """A planner of what moves."""

    number: int
    sentence: str
    """What it moves, as it follows the layout's name."""
    knobs: tuple[Knob, ...] = ()


@dataclass(frozen=True, slots=True)
class SoundEncoderEntry:
    """A kind of sound encoder that native code has; counts are samples of one channel."""

    number: int
    sentence: str
    """What it takes, as errors name it."""
    rate: int
    """Samples a second."""
    before: int
    """Of the sound right before a unit, which it hears as well."""
    after: int
    """And right behind it."""
    shortest: int
    """That give a token."""
