"""Requests of an engine: when they arrive, how many tokens they bring and how many they ask for. Needs no PyTorch.

Draws have a mean gap of one; `spread` gives them the gap of a load. So every load has the same requests.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import itertools
import math
import random
from collections.abc import Callable, Sequence

PROMPT_MEAN, PROMPT_SIGMA = 300, 0.8  # tokens; of the logarithm
OUTPUT_MEAN, OUTPUT_SIGMA = 48, 0.6
PROMPT_MIN = 16
SEARCH_STEPS = 16  # halvings of the gap


@dataclasses.dataclass(frozen=True)
class Lengths:
    """The longest prompt and output that the engine takes, in tokens. Longer ones are cut."""

    prompt_max: int
    output_max: int

    def cut(self, prompt: float, output: float) -> tuple[int, int]:
        return (min(max(round(prompt), PROMPT_MIN), self.prompt_max), min(max(round(output), 1), self.output_max))


@dataclasses.dataclass(frozen=True)
class Request:
    number: int
    arrival_ns: int
    prompt: int  # tokens
    output: int


@dataclasses.dataclass(frozen=True)
class Draw:
    """A request before it has a time: `at` counts mean gaps."""

    at: float
    prompt: int
    output: int


def poisson(seed: int, count: int, lengths: Lengths) -> list[Draw]:
    """Poisson arrivals with lognormal lengths."""
    draw, at, draws = random.Random(seed), 0.0, []
    for _ in range(count):
        at += draw.expovariate(1.0)
        draws.append(Draw(at, *lengths.cut(_lognormal(draw, PROMPT_MEAN, PROMPT_SIGMA),
                                           _lognormal(draw, OUTPUT_MEAN, OUTPUT_SIGMA))))
    return draws


def _lognormal(draw: random.Random, mean: float, sigma: float) -> float:
    return draw.lognormvariate(math.log(mean) - sigma ** 2 / 2, sigma)


def azure(path: str, seed: int, count: int, lengths: Lengths) -> list[Draw]:
    """Requests of Azure's trace of 2023 (TIMESTAMP, ContextTokens, GeneratedTokens), from a place by the seed."""
    with open(path, encoding='utf-8', newline='') as file:
        rows = list(csv.DictReader(file))
    first = random.Random(seed).randrange(max(1, len(rows) - count))
    rows = rows[first:first + count]
    seconds = [_seconds(row['TIMESTAMP']) for row in rows]
    gap = (seconds[-1] - seconds[0]) / max(1, len(rows) - 1) or 1.0
    return [Draw((second - seconds[0]) / gap, *lengths.cut(int(row['ContextTokens']), int(row['GeneratedTokens'])))
            for second, row in zip(seconds, rows, strict=True)]


def _seconds(stamp: str) -> float:
    whole, _, fraction = stamp.partition('.')
    return datetime.datetime.fromisoformat(whole).timestamp() + float(f'0.{fraction or 0}')


def spread(draws: Sequence[Draw], gap_ns: float, window_ns: int) -> list[Request]:
    """The requests that arrive within the window."""
    timed = ((number, int(draw.at * gap_ns), draw) for number, draw in enumerate(draws))
    return [Request(number, at_ns, draw.prompt, draw.output)
            for number, at_ns, draw in itertools.takewhile(lambda one: one[1] < window_ns, timed)]


def gap_of(draws: Sequence[Draw], load: float, window_ns: int, share_of: Callable[[list[Request]], float]) -> float:
    """The mean gap in ns at which `share_of`, the share of the time with an active request, comes closest to a load."""
    low, high = window_ns / len(draws), float(window_ns)
    best = (math.inf, high)
    for _ in range(SEARCH_STEPS):
        gap_ns = math.sqrt(low * high)
        share = share_of(spread(draws, gap_ns, window_ns))
        best = min(best, (abs(share - load), gap_ns))
        low, high = (gap_ns, high) if share > load else (low, gap_ns)
    return best[1]


def prompt_tokens(request: Request, vocabulary: int) -> list[int]:
    """The tokens of a request's prompt: the same in every run."""
    return random.Random(request.number).choices(range(vocabulary), k=request.prompt)
