"""The steps that transformers' continuous batching makes, in virtual time: the gap of a load. Needs no PyTorch.

A step has at most `tokens_max` tokens: one of each request that decodes, then prompts in the order of their arrival, of
which the last is cut. It runs as a graph of its tokens, padded to a multiple of `padding`. The form is that of
batching.Batching.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from batching import Line
from traffic import Request

CHECK_NS = 1_000_000_000  # of arrivals, whose steps are replayed


@dataclasses.dataclass(frozen=True)
class Mixed:
    """A step: its requests, how many tokens of each, and the tokens of its graph."""

    rows: list[Line]
    counts: list[int]
    padded: int
    padding: int

    @property
    def name(self) -> str:
        return step_name(self.padded, self.padding)


def step_name(padded: int, padding: int) -> str:
    """'d64' for a step of the smallest graph, which decodes; 'p128' and so on for one with a prompt."""
    return f'{"d" if padded <= padding else "p"}{padded}'


class Chunked:
    def __init__(self, tokens_max: int, padding: int, requests_max: int) -> None:
        self._tokens_max, self._padding, self._requests_max = tokens_max, padding, requests_max
        self._waiting: collections.deque[Line] = collections.deque()
        self._active: list[Line] = []
        self.done: list[Line] = []

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._active)

    def arrive(self, request: Request, prompt: Sequence[int] = ()) -> None:
        self._waiting.append(Line(request, prompt))

    def next(self) -> Mixed | None:
        while self._waiting and len(self._active) < self._requests_max:
            self._active.append(self._waiting.popleft())
        decoding = [line for line in self._active if line.times_ns]
        rows, counts, left = list(decoding), [1] * len(decoding), self._tokens_max - len(decoding)
        for line in self._active:
            if not line.times_ns and left > 0:
                rows.append(line)
                counts.append(min(left, line.request.prompt - line.length))
                left -= counts[-1]
        if not rows:
            return None
        padded = -(-sum(counts) // self._padding) * self._padding
        return Mixed(rows, counts, min(padded, self._tokens_max), self._padding)

    def follows(self, step: Mixed) -> bool:
        return self.busy

    def finish(self, step: Mixed, tokens: Sequence[int], now_ns: int) -> None:
        for line, count in zip(step.rows, step.counts, strict=True):
            line.length += count
            if line.length >= line.request.prompt:  # the whole prompt is in the cache: a token
                line.times_ns.append(now_ns)
            if line.left == 0:
                self._active.remove(line)
                self.done.append(line)


def first_of(requests: Sequence[Request], prompts: Mapping[int, Any]) -> tuple[list[Request], dict[int, Any]]:
    """The requests of the check: at least one."""
    some = [one for one in requests if one.arrival_ns < CHECK_NS] or list(requests[:1])
    return some, {one.number: prompts[one.number] for one in some}
