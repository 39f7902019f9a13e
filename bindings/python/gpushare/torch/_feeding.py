"""start(), stop() and feed() of a Training: its feeders, the steps that they count, and who hears of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch

from gpushare.enums import Status
from gpushare.errors import DeadlineExceededError, FailedPreconditionError
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._feeder import Feeder


class Feeding:
    """One feeder at a time: on a thread of its own (start) or on the caller's (feed).

    Threads: any. Callbacks run on the thread that feeds.
    """

    def __init__(self, runtime: Runtime, submit: Callable[[Any], Ticket], name: str) -> None:
        self._runtime = runtime
        self._submit = submit
        self._name = name
        self._lock = threading.Lock()
        self._feeder: Feeder | None = None  # None: nothing feeds
        self._owner = 0  # the thread that feeds
        self._thread: threading.Thread | None = None  # the last one of start()
        self._ended = threading.Event()
        self._ended.set()
        self._error: BaseException | None = None  # what ended the thread of start()
        self._callbacks: list[tuple[Callable[[int], None], int]] = []
        # Steps of feeders that ended well.
        self.steps_done = 0

    def on_step(self, callback: Callable[[int], None], every: int) -> None:
        if every < 1:
            raise ValueError(f'every is {every}, and it must be at least 1.')
        self._callbacks.append((callback, every))

    def start(self, batches: Iterable[Any] | None, outstanding: int) -> None:
        feeder = self._begin(itertools.repeat(None) if batches is None else batches, outstanding)
        # A daemon: at the end of the interpreter the runtime is closed, which ends the thread.
        thread = threading.Thread(target=self._run, args=(feeder, torch.cuda.current_stream()),
                                  name=f'gpushare-{self._name}', daemon=True)
        try:
            thread.start()
        except BaseException:
            self._end()
            raise
        self._thread = thread

    def feed(self, batches: Iterable[Any], outstanding: int) -> int:
        feeder = self._begin(batches, outstanding)
        try:
            self._owner = threading.get_ident()
            return feeder.run()
        finally:
            self._end()

    def stop(self, timeout_s: float | None) -> None:
        if not self._halt(timeout_s):
            return
        error, self._error = self._error, None
        if error is not None:
            raise error

    def check(self) -> None:
        """Raises what ended the thread of start(), until stop() has raised it."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """As stop(), but nothing is raised of what ended the thread."""
        if not self._halt(None):
            raise FailedPreconditionError(
                Status.FAILED_PRECONDITION, f"A callback of on_step cannot close '{self._name}', which waits for the "
                'callback to return. Call stop() there.')

    def _begin(self, batches: Iterable[Any], outstanding: int) -> Feeder:
        feeder = Feeder(self._submit, batches, outstanding, self._count, self._tell)
        with self._lock:
            self.check()
            if self._feeder is not None:
                raise FailedPreconditionError(
                    Status.FAILED_PRECONDITION, f"'{self._name}' is fed already. Call stop() first.")
            self._feeder = feeder
            self._ended.clear()
        return feeder

    def _run(self, feeder: Feeder, stream: Any) -> None:
        self._owner = threading.get_ident()
        try:
            with torch.cuda.stream(stream):  # of the GPU and stream that start() was called on
                feeder.run()
        except BaseException as error:
            if not self._runtime.closing:  # the end of the runtime is the end of its steps, and no error
                self._error = error
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._feeder = None
            self._owner = 0
            self._ended.set()

    def _halt(self, timeout_s: float | None) -> bool:
        """Ends the feeder and waits for its steps. Returns False, without a wait, on the thread that feeds."""
        with self._lock:
            if self._feeder is not None:
                self._feeder.stop()
            if self._owner == threading.get_ident():
                return False
        if not self._ended.wait(timeout_s):
            raise DeadlineExceededError(
                Status.DEADLINE_EXCEEDED, f"The steps of '{self._name}' are not complete after {timeout_s} s.")
        if self._thread is not None:
            self._thread.join()  # it has nothing left to do
        return True

    def _count(self) -> None:
        self.steps_done += 1

    def _tell(self) -> None:
        for callback, every in self._callbacks:
            if self.steps_done % every == 0:
                callback(self.steps_done)
