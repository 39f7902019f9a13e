"""Means over pairs and their bootstrap intervals. Needs no GPU and no PyTorch."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from arrivals import quantile

RESAMPLES = 2000
CONFIDENCE = 0.95


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(mean([math.log(value) for value in values]))


def interval(values: Sequence[float], statistic: Callable[[Sequence[float]], float] = mean,
             resamples: int = RESAMPLES, seed: int = 1) -> tuple[float, float]:
    """The percentile bootstrap interval of a statistic. For ratios of pairs it is the paired one."""
    draw = random.Random(seed)
    found = [statistic(draw.choices(values, k=len(values))) for _ in range(resamples)]
    tail = (1 - CONFIDENCE) / 2
    return quantile(found, tail), quantile(found, 1 - tail)


def quantile_ratio_interval(left: Sequence[float], right: Sequence[float], share: float, resamples: int = 100,
                            block: int = 50, seed: int = 1) -> tuple[float, float]:
    """The interval of quantile(left) / quantile(right), where both have the latencies of the same arrivals.

    Blocks of consecutive queries are drawn, the same for both: neighbours wait in the same queue.
    """
    draw = random.Random(seed)
    count = len(left)
    starts = range(max(1, count - block + 1))
    found = []
    for _ in range(resamples):
        picked = [at for _ in range(math.ceil(count / block)) for at in _block(draw.choice(starts), block, count)]
        found.append(quantile([left[at] for at in picked], share) / quantile([right[at] for at in picked], share))
    tail = (1 - CONFIDENCE) / 2
    return quantile(found, tail), quantile(found, 1 - tail)


def _block(start: int, block: int, count: int) -> range:
    return range(start, min(start + block, count))
