"""How the cache developed, in bounded memory however long a session lasts."""

from __future__ import annotations

from omnitide_cli.runtime.kv_state import Moment

MOST_MOMENTS = 480


class Timeline:
    """Takes a moment after every unit. When there are too many, neighbours become one that has the larger values,
    and the smaller number of useful cells beside the larger."""

    def __init__(self) -> None:
        self._moments: list[Moment] = []
        self._in_last = 0
        self.units_each = 1

    def add(self, moment: Moment) -> None:
        """Add what is after the newest unit."""
        if self._moments and self._in_last < self.units_each:
            self._moments[-1] = _larger(self._moments[-1], moment)
            self._in_last += 1
            return
        if len(self._moments) == MOST_MOMENTS:
            pairs = zip(self._moments[::2], self._moments[1::2], strict=True)
            self._moments = [_larger(first, second) for first, second in pairs]
            self.units_each *= 2
        self._moments.append(moment)
        self._in_last = 1

    def moments(self) -> tuple[Moment, ...]:
        """The oldest first; each but the last stands for `units_each` units."""
        return tuple(self._moments)


def _larger(first: Moment, second: Moment) -> Moment:
    return Moment(
        second.media_s,
        max(first.useful_cells, second.useful_cells),
        max(first.page_span, second.page_span),
        max(first.physical_span, second.physical_span),
        min(first.least, second.least),
    )
