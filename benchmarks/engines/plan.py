"""Which conditions run, in which order, and how much time is left. Needs no PyTorch."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

One = TypeVar('One')

WAYS = ('bare', 'library', 'streams', 'priority', 'gated', 'stopped', 'process', 'query')
LAWS = ('poisson', 'azure')
HIGH_WAYS = ('priority', 'gated', 'stopped')  # with the engine's graphs on a stream of the highest priority
WITH_BOUND = ('library', 'query')
EAGER = ('eager',)  # jobs whose steps are no graphs
SHORT = 'bare,library,library:1.05,priority'
FULL = 'bare,library,library:1.05,library:1.20,query:1.05,streams,priority,gated,stopped'


@dataclasses.dataclass(frozen=True)
class Condition:
    """A way to run the engine, the promise of the library's ways, and the BE job beside it ('': none)."""

    way: str
    bound: float = 0.0
    job: str = ''

    @property
    def name(self) -> str:
        bound = f' {self.bound:.2f}' if self.job and self.bound else ''
        return f'{self.way}{bound}' + (f' + {self.job}' if self.job else '')

    @property
    def uses_library(self) -> bool:
        return self.way in WITH_BOUND


def conditions(words: str, jobs: Sequence[str]) -> list[Condition]:
    """Those of a list such as 'bare,library,library:1.05,gated': a way with a bound, or a baseline, has a job beside.

    `bare` comes first: the others are compared with it.
    """
    alone, beside = [Condition('bare')], []
    for word in words.split(','):
        way, _, bound = word.partition(':')
        if way not in WAYS or (bound and way not in WITH_BOUND) or (way == 'query' and not bound):
            raise ValueError(f"'{word}' is no condition. There are {', '.join(WAYS)}; library and query take a bound, "
                             'as in library:1.05.')
        if way == 'library' and not bound:
            alone.append(Condition('library', 1.05))
        elif way != 'bare':
            beside.append(Condition(way, float(bound or 0)))
    return alone + [dataclasses.replace(one, job=job) for job in jobs for one in beside]


@dataclasses.dataclass(frozen=True)
class Case:
    """Requests of a law at a load. Each case has a bare of its own, with which the others are compared."""

    load: float
    law: str = 'poisson'

    @property
    def name(self) -> str:
        return f'{self.law} at {self.load}'


def cases(loads: str, requests: str) -> list[Case]:
    """Those of '0.5,0.3' and 'poisson,azure': all loads of the first law, then of the next one."""
    laws = requests.split(',')
    for law in laws:
        if law not in LAWS:
            raise ValueError(f"'{law}' is no law of requests. There are {', '.join(LAWS)}.")
    shares = [float(load) for load in loads.split(',')]
    for share in shares:
        if not 0 < share < 1:
            raise ValueError(f'The load is {share}, and it must be between 0 and 1.')
    return [Case(share, law) for law in laws for share in shares]


def order(chosen: Sequence[Condition], number: int) -> list[Condition]:
    """The conditions of a round: bare first, and each round begins with another of the rest."""
    return [chosen[0], *turned(chosen[1:], number)]


def turned(rest: Sequence[One], number: int) -> list[One]:
    """The same in turns: each number begins with another one."""
    first = number % len(rest) if rest else 0
    return [*rest[first:], *rest[:first]]


class Phases:
    """Times of the phases, which it prints, and a limit in seconds for all of them."""

    def __init__(self, limit_s: float) -> None:
        self._began, self._limit = time.monotonic(), limit_s
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            took = time.monotonic() - began
            self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 2)
            print(f'[{time.monotonic() - self._began:6.1f} s] {name}: {took:.1f} s', file=sys.stderr, flush=True)

    def has_room(self, seconds: float) -> bool:
        return time.monotonic() - self._began + seconds < self._limit
