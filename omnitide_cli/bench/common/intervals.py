"""95 % intervals around measured means."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Z = 1.959964  # of the normal distribution, two-sided 95 %
RESAMPLES = 2000


def share_interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson's interval of a share: never empty nor beyond 0 … 1, also for none or all of few; (0, 1) of nothing."""
    if n == 0:
        return 0.0, 1.0
    share, spread = hits / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return middle - half if hits else 0.0, middle + half if hits < n else 1.0


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Of the mean of independent values of any distribution, by resampling them (percentile bootstrap, seeded)."""
    data = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(0).integers(0, len(data), (RESAMPLES, len(data)))
    low, high = np.percentile(data[picks].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
