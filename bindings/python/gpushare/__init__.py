"""gpushare: latency-critical (LC) and best-effort (BE) work on one GPU, from one process.

    with gpushare.Runtime() as runtime:
        service = runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05)
        training = runtime.create_app('training', gpushare.BEST_EFFORT)
        step = training.submit(runtime.register_kernel('sincos_27us'), block_tasks=100_000)
        query = service.submit(runtime.register_kernel('chain1'))
        print(query.wait().measured_ns, step.wait().evictions)

- Errors are exceptions: Error with the library's sentence, TaskError with a task's completion record.
- A ticket can be waited for (wait), awaited (asyncio) and turned into a concurrent.futures.Future (future).
- Runtimes, apps, queues and kernels are context managers; garbage collection closes what is left.
- gpushare.torch runs PyTorch functions; gpushare.abi is the C ABI itself.

docs/python.md of the project explains it; <gpushare/gpushare.h> documents each function.
"""

try:
    from gpushare.abi import GPUSHARE_NEVER as NEVER
    from gpushare.abi import GPUSHARE_NO_NEXT as NO_NEXT
except ModuleNotFoundError as error:
    if error.name != 'gpushare.abi':
        raise
    raise ImportError(
        'This gpushare is a source tree whose declarations of the C ABI are not written yet. A build writes them '
        f"(target gpushare_python); so does: python3 '{__file__.removesuffix('gpushare/__init__.py')}generate.py'"
    ) from error

from gpushare._library import library, library_path
from gpushare._versions import show_versions, versions
from gpushare.app import App, Query, Queue, Region, TokenStream, mark_tokens
from gpushare.enums import (
    AppClass,
    Choice,
    CopyDirection,
    DataType,
    Drive,
    EventType,
    Form,
    GuaranteeBit,
    Latency,
    LibraryMode,
    LibraryOperation,
    LogLevel,
    PlaceAlgorithm,
    PlaceTogether,
    Reason,
    Status,
    TaskKind,
    Verdict,
)
from gpushare.errors import (
    AlreadyExistsError,
    DataLossError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TaskError,
    UnavailableError,
    UnimplementedError,
)
from gpushare.event_log import EventLog
from gpushare.kernel import FusedKernel, Kernel, KernelSpec
from gpushare.placement import Placement, place
from gpushare.profiles import calibrate, policy_names, pre_run, validate_profile, version
from gpushare.records import (
    AppGuarantee,
    AppStats,
    CompletionRecord,
    DeviceInfo,
    Event,
    KernelInfo,
    PartitionPlan,
    PlaceResult,
    RuntimeStats,
    TraceSummary,
)
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket

__version__ = '0.1.0'

LATENCY_CRITICAL = AppClass.LATENCY_CRITICAL
BEST_EFFORT = AppClass.BEST_EFFORT

__all__ = [
    'BEST_EFFORT',
    'LATENCY_CRITICAL',
    'NEVER',
    'NO_NEXT',
    'AlreadyExistsError',
    'App',
    'AppClass',
    'AppGuarantee',
    'AppStats',
    'Choice',
    'CompletionRecord',
    'CopyDirection',
    'DataLossError',
    'DataType',
    'DeadlineExceededError',
    'DeviceInfo',
    'Drive',
    'Error',
    'Event',
    'EventLog',
    'EventType',
    'FailedPreconditionError',
    'Form',
    'FusedKernel',
    'GuaranteeBit',
    'InvalidArgumentError',
    'Kernel',
    'KernelInfo',
    'KernelSpec',
    'Latency',
    'LibraryMode',
    'LibraryOperation',
    'LogLevel',
    'NotFoundError',
    'PartitionPlan',
    'PermissionDeniedError',
    'PlaceAlgorithm',
    'PlaceResult',
    'PlaceTogether',
    'Placement',
    'Query',
    'Queue',
    'Reason',
    'Region',
    'ResourceExhaustedError',
    'Runtime',
    'RuntimeStats',
    'Status',
    'TaskError',
    'TaskKind',
    'Ticket',
    'TokenStream',
    'TraceSummary',
    'UnavailableError',
    'UnimplementedError',
    'Verdict',
    'calibrate',
    'library',
    'library_path',
    'mark_tokens',
    'place',
    'policy_names',
    'pre_run',
    'show_versions',
    'validate_profile',
    'version',
    'versions',
]
