"""Retention policies that a user writes in Python: `--policy FILE.py:FUNCTION`.

The function gets a `LedgerView` whenever the history is above its high watermark, and returns what stays: units, token
numbers, or one True or False a token. A parameter called `attention`, `keys` or `values` asks for those, too:

    def policy(history, attention): ...

    attention   [tokens] what each token has received so far, from all heads of all layers (without flash attention)
    keys        one array [tokens, width] a layer, read as it is looked up: keys[0], for layer in keys
    values      the same of values

Python runs in the session's thread, in the middle of a retention. docs/adding-a-policy.md has an example.
"""

from __future__ import annotations

import importlib.util
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import OmniTideError, RuntimeFailure, UsageError
from omnitide_cli.runtime.native import ffi, raised_inside
from omnitide_cli.runtime.view import HistoryView, Span

SENSES = frozenset({"attention", "keys", "values"})


@dataclass(frozen=True, slots=True)
class LedgerUnit:
    """One streaming event of the history."""

    id: int
    kind: str
    """system, media, question or response."""
    start: float
    end: float
    """Media seconds."""
    is_partial: bool
    """Whether it has lost a token already."""
    first: int
    """Number of its first token in the history."""
    tokens: int
    spans: tuple[Span, ...] = field(repr=False)
    """Its tokens by role, in order; `Span.length` adds up to `tokens`."""

    def __iter__(self) -> Iterator[int]:
        """Numbers of its tokens."""
        return iter(range(self.first, self.first + self.tokens))


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The history as a policy sees it; tokens are numbered from 0, the oldest first."""

    units: tuple[LedgerUnit, ...]
    tokens: int
    high_watermark: int
    """In this round: lower than the setting where room is needed."""
    low_watermark: int
    """How many tokens should be left."""

    @property
    def evictable(self) -> tuple[LedgerUnit, ...]:
        """Units that may be dropped whole, the oldest first: not the system unit, nor the newest that has tokens."""
        filled = [unit for unit in self.units if unit.tokens]
        return tuple(unit for unit in filled[:-1] if unit is not self.units[0] or unit.kind != "system")


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A function, and what of SENSES it asks for."""

    function: Callable[..., Any]
    wants: frozenset[str]


@cache
def load_policy(name: str) -> LoadedPolicy:
    """The function of FILE.py:FUNCTION. Raises UsageError."""
    file, _, function_name = name.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"--policy {name}: there is no file {file}", "give a Python file and a function in it")
    spec = importlib.util.spec_from_file_location(f"omnitide_policy_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"--policy {name}: {_where(error, path)}", f"correct {file}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UsageError(f"--policy {name}: {file} has no function {function_name}", f"define it in {file}")
    parameters = list(inspect.signature(function).parameters)
    unknown = [parameter for parameter in parameters[1:] if parameter not in SENSES]
    if not parameters or unknown:
        raise UsageError(
            f"--policy {name}: {function_name}({', '.join(parameters)}) has parameters that no policy is given",
            "its parameters are the history and, if it needs them, attention, keys and values",
        )
    return LoadedPolicy(function, frozenset(parameters[1:]))


class OwnPolicy:
    """A loaded policy at work in one session."""

    def __init__(self, name: str, view: HistoryView) -> None:
        """Raises UsageError for one that can't be loaded."""
        loaded = load_policy(name)
        self.name = name
        self.wants = loaded.wants
        self.handle = ffi.new_handle(self)
        self._function = loaded.function
        self._view = view

    def keep(self, high_watermark: int, low_watermark: int) -> NDArray[np.bool_]:
        """Which tokens stay. Raises RuntimeFailure for a function that fails, or an answer that can't be."""
        history = _ledger(self._view, high_watermark, low_watermark)
        try:
            stays = self._function(history, **self._senses())
            keep = _flags(stays, history.tokens)
        except OmniTideError as error:
            raise RuntimeFailure(f"--policy {self.name}: {error.message}", error.hint) from error
        except Exception as error:
            path = Path(self.name.rpartition(":")[0])
            raise RuntimeFailure(f"--policy {self.name} failed: {_where(error, path)}", f"correct {path}") from error
        self._check(history, keep)
        return keep

    def _senses(self) -> Mapping[str, Any]:
        given: dict[str, Any] = {}
        if "attention" in self.wants:
            given["attention"] = self._view.scores()
        if {"keys", "values"} & self.wants:
            from omnitide_cli.runtime.native_session import NativeSession

            assert isinstance(self._view, NativeSession)
            cells = self._view.tokens()[:, 0].tolist()
            given |= {name: LayerRows(self._view, name, cells) for name in ("keys", "values") if name in self.wants}
        return given

    def _check(self, history: LedgerView, keep: NDArray[np.bool_]) -> None:
        for unit in history.units[:1]:
            if unit.kind == "system" and not keep[unit.first : unit.first + unit.tokens].all():
                raise RuntimeFailure(
                    f"--policy {self.name} drops the system unit, which has to stay", "return units[0] as well"
                )
        if len(keep) and not keep[-1]:
            newest = [unit for unit in history.units if unit.tokens][-1]
            raise RuntimeFailure(
                f"--policy {self.name} drops the newest token (unit {newest.id}), which has to stay",
                "keep the newest unit, or at least its end",
            )


class LayerRows:
    """Keys or values of all tokens, layer by layer, read from the cache as they are looked up."""

    def __init__(self, session: Any, what: str, cells: list[int]) -> None:
        self._read = getattr(session, what)
        self._layers = session.layers()
        self._cells = cells

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, layer: int) -> NDArray[np.float32]:
        """[tokens, width] of one layer that has a cache."""
        return self._read(self._layers[layer], self._cells)


def _ledger(view: HistoryView, high_watermark: int, low_watermark: int) -> LedgerView:
    units, first = [], 0
    for unit in view.units():
        units.append(
            LedgerUnit(unit.id, unit.kind, unit.start_s, unit.end_s, unit.partial, first, unit.tokens, spans=unit.spans)
        )
        first += unit.tokens
    return LedgerView(tuple(units), first, high_watermark, low_watermark)


def _flags(stays: Any, tokens: int) -> NDArray[np.bool_]:
    """One flag a token of what a policy returned. Raises RuntimeFailure for what is no answer."""
    if isinstance(stays, np.ndarray) and stays.dtype == np.bool_:
        if stays.shape != (tokens,):
            raise RuntimeFailure(
                f"it returned {list(stays.shape)} flags for {tokens} tokens", "return one for each token"
            )
        return stays
    if not isinstance(stays, Iterable):
        raise RuntimeFailure(f"it returned {type(stays).__name__}, not what stays", "return units, or token numbers")
    numbers: list[int] = []
    for each in stays:
        numbers += each if isinstance(each, LedgerUnit) else [each]
    if any(isinstance(number, bool) for number in numbers) and len(numbers) == tokens:
        return np.array(numbers, dtype=np.bool_)
    keep = np.zeros(tokens, dtype=np.bool_)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise RuntimeFailure(f"it returned {number!r} among what stays", "return units, or token numbers")
        if not 0 <= number < tokens:
            raise RuntimeFailure(
                f"it returned token {number}; the history has 0 to {tokens - 1}", "correct its numbers"
            )
        keep[number] = True
    return keep


def _where(error: Exception, path: Path) -> str:
    """What went wrong, and in which line of the user's file."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == path.name
    ]
    place = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{place}"


def _failed(kind: object, error: BaseException | None, trace: object) -> None:
    """What native code can't carry is raised again once it has returned; it is told that the policy gave up."""
    if error is not None:
        raised_inside[:] = [error]


@ffi.def_extern(name="ot_python_retain", error=1, onerror=_failed)
def _retain(data: Any, high_watermark: int, low_watermark: int, keep: Any, n: int) -> int:
    policy: OwnPolicy = ffi.from_handle(data)
    flags = policy.keep(high_watermark, low_watermark)
    ffi.buffer(keep, n)[:] = flags.astype(np.uint8).tobytes()
    return 0
