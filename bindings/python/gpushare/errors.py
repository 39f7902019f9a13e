"""The exceptions of the package.

A call that fails raises Error, or the subclass of its status, with the library's message. The wait for a task
that does not end with Verdict.OK raises TaskError.
"""

from __future__ import annotations

from collections.abc import Callable

from gpushare.enums import Status, Verdict
from gpushare.records import CompletionRecord


class Error(Exception):
    """A status that is not OK.

    `status` is the code; `message` is the library's.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = Status(status)
        self.message = message
        super().__init__(f'{self.status.name}: {message}')

    def __reduce__(self) -> tuple[type[Error], tuple[int, str]]:
        """Pickles the arguments, which are not `args`: a replica's error travels to its caller."""
        return type(self), (int(self.status), self.message)


class InvalidArgumentError(Error, ValueError):
    """An argument is wrong, whatever the state of the runtime."""


class DeadlineExceededError(Error, TimeoutError):
    """The caller's timeout has passed."""


class NotFoundError(Error, LookupError):
    """There is no such file or kernel."""


class AlreadyExistsError(Error):
    """The name is taken."""


class PermissionDeniedError(Error, PermissionError):
    """A file may not be read or written, or the GPU's counters may not be read."""


class ResourceExhaustedError(Error):
    """A bounded queue or table is full: try again later."""


class FailedPreconditionError(Error):
    """The call is not possible now: after a shutdown, inside a callback, after a fork."""


class UnimplementedError(Error, NotImplementedError):
    """This library or device does not support it."""


class UnavailableError(Error):
    """There is no such device, or it is lost, or a region may not start now."""


class DataLossError(Error):
    """A file is truncated or corrupt."""


_BY_STATUS: dict[int, type[Error]] = {
    Status.INVALID_ARGUMENT: InvalidArgumentError,
    Status.DEADLINE_EXCEEDED: DeadlineExceededError,
    Status.NOT_FOUND: NotFoundError,
    Status.ALREADY_EXISTS: AlreadyExistsError,
    Status.PERMISSION_DENIED: PermissionDeniedError,
    Status.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    Status.FAILED_PRECONDITION: FailedPreconditionError,
    Status.UNIMPLEMENTED: UnimplementedError,
    Status.UNAVAILABLE: UnavailableError,
    Status.DATA_LOSS: DataLossError,
}


def error_of(status: int, message: str) -> Error:
    """The exception of a status that is not OK."""
    return _BY_STATUS.get(status, Error)(status, message)


class TaskError(Exception):
    """A task that did not end with Verdict.OK.

    `record` says what happened to it. An exception that left the task's enqueue function is the `__cause__`.
    """

    def __init__(self, record: CompletionRecord, raised: BaseException | None = None) -> None:
        self.record = record
        super().__init__(_sentence(record, raised))

    def __reduce__(self) -> tuple[Callable[[CompletionRecord, str], TaskError], tuple[CompletionRecord, str]]:
        return _restored, (self.record, str(self))

    @property
    def verdict(self) -> Verdict:
        """How the task ended."""
        return self.record.verdict


def _restored(record: CompletionRecord, sentence: str) -> TaskError:
    """A pickled TaskError. The sentence has what is to be said of its cause."""
    error = TaskError.__new__(TaskError, sentence)
    error.record = record
    return error


def described(error: BaseException) -> str:
    """An exception in words, on one line: "KeyError: 'weight'"."""
    try:
        text = str(error).strip().partition('\n')[0].rstrip('.')
    except Exception:  # the exception's own __str__ raised
        text = ''
    return f'{type(error).__name__}: {text}' if text else type(error).__name__


def _sentence(record: CompletionRecord, raised: BaseException | None) -> str:
    text = f'Task {record.ticket} ended with verdict {record.verdict.name}'
    if raised is not None:
        text += f' because its enqueue function raised {described(raised)}'
    elif record.failed_dependency:
        text += (f' because it waited for task {record.failed_dependency}, '
                 f'which ended with {record.failed_dependency_verdict.name}')
    elif record.error_code:
        text += f' and CUDA error code {record.error_code}'
    return text + '.'
