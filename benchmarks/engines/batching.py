"""Continuous batching over static slots: which step runs next, and what its tokens mean. Needs no PyTorch.

A request holds one slot from its prefill to its last token, and row r of a decode step is slot r. A new request takes
the lowest free slot, so the smallest graph that reaches the highest active slot runs. A prefill is one request, in the
smallest bucket that holds its prompt; while other requests decode, at most one prefill runs between two decode steps.

    batching.arrive(request, tokens)
    step = batching.next()              None: nothing to do
    batching.finish(step, tokens, now)  the tokens that the step gave, one a row
"""

from __future__ import annotations

import collections
import dataclasses
import heapq
from collections.abc import Sequence

from traffic import Request


@dataclasses.dataclass(eq=False)
class Line:
    """A request and what it has got."""

    request: Request
    prompt: Sequence[int]
    slot: int = -1
    length: int = 0  # tokens in the cache
    last: int = 0  # the token that the next step reads
    times_ns: list[int] = dataclasses.field(default_factory=list)  # of its tokens

    @property
    def left(self) -> int:
        return self.request.output - len(self.times_ns)


@dataclasses.dataclass(frozen=True)
class Prefill:
    line: Line
    bucket: int  # tokens of the graph; 0: eager, of the prompt's length

    @property
    def name(self) -> str:
        return f'p{self.bucket}'


@dataclasses.dataclass(frozen=True)
class Decode:
    rows: list[Line | None]  # by slot

    @property
    def name(self) -> str:
        return f'd{len(self.rows)}'


Step = Prefill | Decode


class Batching:
    """The engine's state. `done` has the requests that ended, in that order."""

    def __init__(self, batches: Sequence[int], buckets: Sequence[int]) -> None:
        self._batches, self._buckets = sorted(batches), sorted(buckets)
        self._free = list(range(self._batches[-1]))
        self._waiting: collections.deque[Line] = collections.deque()
        self._active: dict[int, Line] = {}  # by slot
        self._prefilled = False  # the last step was a prefill
        self.done: list[Line] = []

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._active)

    def arrive(self, request: Request, prompt: Sequence[int] = ()) -> None:
        self._waiting.append(Line(request, prompt))

    def next(self) -> Step | None:
        if self._waiting and self._free and not (self._prefilled and self._active):
            line = self._waiting.popleft()
            line.slot = heapq.heappop(self._free)
            return Prefill(line, self._bucket(line.request.prompt))
        if not self._active:
            return None
        reach = max(self._active) + 1
        batch = next(batch for batch in self._batches if batch >= reach)
        return Decode([self._active.get(slot) for slot in range(batch)])

    def _bucket(self, prompt: int) -> int:
        if not self._buckets:
            return 0
        fits = [bucket for bucket in self._buckets if bucket >= prompt]
        if not fits:
            raise ValueError(f'A prompt has {prompt} tokens, and the longest bucket has {self._buckets[-1]}.')
        return fits[0]

    def follows(self, step: Step) -> bool:
        """Whether it is known that another step runs right after this one."""
        rows = [step.line] if isinstance(step, Prefill) else step.rows
        stepped = [row for row in rows if row is not None]
        return bool(self._waiting) or any(row.left > 1 for row in stepped) or \
            any(row not in stepped for row in self._active.values())

    def finish(self, step: Step, tokens: Sequence[int], now_ns: int) -> None:
        self._prefilled = isinstance(step, Prefill)
        if isinstance(step, Prefill):
            step.line.length = step.line.request.prompt
            self._active[step.line.slot] = step.line
            self._got(step.line, tokens[0], now_ns)
            return
        for row, token in zip(step.rows, tokens, strict=True):
            if row is not None:
                row.length += 1
                self._got(row, token, now_ns)

    def _got(self, line: Line, token: int, now_ns: int) -> None:
        line.last = token
        line.times_ns.append(now_ns)
        if line.left == 0:
            del self._active[line.slot]
            heapq.heappush(self._free, line.slot)
            self.done.append(line)
