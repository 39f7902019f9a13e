"""transformers' steps through the library, and its rounds: what library.py and rounds.py are for the own engine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from baselines import undisturbed
from chunked import first_of
from continuous import Served, Switched
from library import Library, Promise
from loop import Run
from plan import Condition
from rounds import Rounds
from traffic import Request


class Steps(Library):
    """An app for each run, in whose queue the engine's steps are queries."""

    def __init__(self, engine: Served, latency: str) -> None:
        super().__init__(engine, latency, 'learnt')  # type: ignore[arg-type]
        self.engine = engine
        Switched.runtime = self.runtime

    def open(self, promise: Promise, one_query: bool = False) -> None:
        super().open(promise, one_query)
        Switched.queue, Switched.through = self._queue, True

    def close_app(self) -> None:
        Switched.through = False
        super().close_app()


class BareSteps:
    """A runner: the engine itself, on bare PyTorch."""

    log = None


class TransformersRounds(Rounds):
    def _runner(self, priority: int = 0, *gate: Any) -> Any:
        return BareSteps()

    def _serve(self, runner: Any, requests: Sequence[Request], prompts: Mapping[int, Sequence[int]]) -> Run:
        Switched.steps = []
        return self._engine.serve(requests, prompts)  # type: ignore[attr-defined, no-any-return]

    def _check(self, found: Any, log: Any) -> None:
        """The check is a run of its own (run): snapshots would slow this one down."""

    def run(self, condition: Condition, number: int, requests: Sequence[Request],
            prompts: Mapping[int, Sequence[int]]) -> None:
        super().run(condition, number, requests, prompts)
        found = self.found[condition]
        if not condition.uses_library or found.failed:
            return
        try:
            for name, count in self._checked(condition, *first_of(requests, prompts)).items():
                found.tokens[name] += count
        except Exception as failure:
            found.failed = f'The check of the tokens: {failure}'

    def _checked(self, condition: Condition, requests: Sequence[Request],
                 prompts: Mapping[int, Sequence[int]]) -> dict[str, int]:
        Switched.snapshots = []
        try:
            runner = self._open(condition)
            try:
                with undisturbed(), self._beside(condition):
                    self._serve(runner, requests, prompts)
            finally:
                runner.close_app()
            log, Switched.snapshots = Switched.snapshots, None
            return self._engine.differing(log)  # type: ignore[attr-defined, no-any-return]
        finally:
            Switched.snapshots = None


@contextlib.contextmanager
def registered(report: dict[str, Any], library: Steps | None) -> Iterator[None]:
    """Around the engine's start. Its captures register its steps with the library, if there is one."""
    if library is None:
        raise ValueError("transformers' engine registers its steps when it captures them: add the condition library.")
    free, began = torch.cuda.mem_get_info()[0], time.monotonic()
    library.open(Promise(1.05))
    Switched.through = False  # until the steps are captured
    try:
        yield
        Switched.through = True
        library.engine.warm_up()  # the first launch of a graph is slower
    finally:
        library.close_app()
    torch.cuda.synchronize()
    report['registration'] = {'by': 'StepGraph', 'seconds_with_capture': round(time.monotonic() - began, 2),
                              'mib_with_cache': (free - torch.cuda.mem_get_info()[0]) >> 20}
