"""The enums of the C ABI. A number that a newer library adds becomes a member named VALUE_<number>."""

# Written by bindings/python/generate.py from the C headers. Do not edit.

from __future__ import annotations

import enum


class _Open(enum.IntEnum):
    """An enum that grows: an unknown number is a member of its own and equals the number."""

    @classmethod
    def _missing_(cls, value: object) -> _Open | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f'VALUE_{value}'
        member._value_ = value
        return member


class Status(_Open):
    """enum gpushare_status_value"""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    # the call is wrong in every state
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    # no such file, or no such kernel in the profile
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    # A bounded queue or table is full, or the process has no memory left: try again later.
    RESOURCE_EXHAUSTED = 8
    # wrong state: shut down, in a callback, after a fork
    FAILED_PRECONDITION = 9
    ABORTED = 10
    # the caller's buffer is too small, or an index too large
    OUT_OF_RANGE = 11
    # this library or device does not support it
    UNIMPLEMENTED = 12
    # a defect of the library
    INTERNAL = 13
    # no such device, or the device is lost
    UNAVAILABLE = 14
    # a file is truncated or corrupt
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Choice(_Open):
    """enum gpushare_choice_value"""

    DEFAULT = 0
    YES = 1
    NO = 2


class AppClass(_Open):
    """enum gpushare_app_class_value"""

    LATENCY_CRITICAL = 1
    BEST_EFFORT = 2


class TaskKind(_Open):
    """enum gpushare_task_kind_value"""

    # take the kind of the kernel that is given
    DEFAULT = 0
    # a registered kernel, which executes block tasks
    KERNEL = 1
    # a registered graph: one launch starts a chain of nodes
    GRAPH = 2
    # a registered cuBLAS or cuDNN call
    LIBRARY = 3
    # a copy between host and device, or between devices
    MEMCPY = 4
    # a callback or a region that enqueues on a stream of the library
    OPAQUE = 5


class Form(_Open):
    """enum gpushare_form_value"""

    # the ordinary grid, as CUDA launches it
    ORIGINAL = 0
    # persistent thread blocks, each of which executes many block tasks
    WORKERS = 1
    # a contiguous range of block tasks as an ordinary grid
    SLICE = 2
    # workers of a precompiled fused kernel
    FUSED = 3
    GRAPH = 4
    LIBRARY = 5
    MEMCPY = 6
    OPAQUE = 7
    # Parts of a graph, launched one after another until none is left or the graph is evicted.
    SEGMENTS = 8


class CopyDirection(_Open):
    """enum gpushare_copy_direction_value"""

    NONE = 0
    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    # device to device, within one GPU or between two
    PEER = 3


class Verdict(_Open):
    """enum gpushare_verdict_value"""

    # it has not ended
    PENDING = 0
    OK = 1
    # it, or a task that it waited for, failed; the device goes on
    FAILED = 2
    CANCELLED = 3
    # it was late, and its app drops late queries (drop_late)
    DROPPED = 4
    # the device never ended it, and the library gave up its lane
    TIMED_OUT = 5
    DEVICE_LOST = 6
    # the runtime was shut down before the task ran
    SHUTDOWN = 7


class Reason(_Open):
    """enum gpushare_reason_value"""

    NONE = 0
    # an LC task is launched at once
    LC_FIRST = 1
    # the submitting thread launched an LC task
    FAST_PATH = 2
    # fifo and priority launch everything as it comes
    BASELINE = 3
    # no LC query is active
    IDLE_DEVICE = 4
    # it ends within the headroom of every active query
    FITS_HEADROOM = 5
    # its blocking time fits every blocking budget
    FITS_BLOCKING_BUDGET = 6
    # it runs on SMs that no LC app uses
    BESIDE_PARTITION = 7
    # the LC side of the split is idle again
    ELASTIC_RETURN = 8
    # it continues after an eviction
    RESUME = 9
    # it runs within its CapSM quota
    QUOTA = 10
    # it was cut to the blocking budget
    FILLS_GAP = 11
    # on credit of the LC apps' tail accounts
    TAIL_CREDIT = 12
    # it shares SMs with a kernel that suits it
    CO_RESIDENT = 13
    # it is longer than the headroom of an active query
    HOLD_HEADROOM = 32
    # its blocking time exceeds a blocking budget
    HOLD_BLOCKING = 33
    # LC work is on the SMs that it needs
    HOLD_LC_ACTIVE = 34
    # too much work is issued already
    HOLD_QUEUED_TIME = 35
    # enough copies run in its direction
    HOLD_COPIES = 36
    # the policy's in-flight window is full
    HOLD_WINDOW = 37
    # no CapSM is left under its quota
    HOLD_CAPSM = 38
    # the LC queues drained only just before
    HOLD_HYSTERESIS = 39
    # the caller quiesced the runtime
    HOLD_QUIESCED = 40
    # no lane of its place can take it now
    HOLD_LANE = 41
    # it has as many launches as a task may have
    HOLD_PARTS = 42
    # as many BE tasks run as the device may have
    HOLD_RUNNING = 43
    # every claim counter is in use
    HOLD_COUNTERS = 44
    # the launch table is full
    HOLD_LAUNCHES = 45
    # its policy's plan entry was dropped
    HOLD_PLAN = 48
    # beyond a budget, and a tail account lacks credit
    HOLD_TAIL_CREDIT = 49
    # BE work has had its share of time
    HOLD_DUTY = 50
    # an LC task needs its SMs
    EVICT_FOR_LC = 64
    # an LC reservation is short of CapSMs
    EVICT_FOR_RESERVATION = 65
    # the planner moves to another split
    EVICT_FOR_LAYOUT = 66
    # its quota shrank
    EVICT_FOR_QUOTA = 67
    # the caller's own policy gave no reason
    USER_POLICY = 96
    # a task that it waited for did not end with OK
    DEPENDENCY_FAILED = 128


class LogLevel(_Open):
    """enum gpushare_log_level_value"""

    ERROR = 1
    WARNING = 2
    INFO = 3


class Drive(_Open):
    """enum gpushare_drive_value"""

    # the library's own scheduler thread drives the flow
    THREAD = 0
    # no thread: gpushare_poll, poll_until and waits of the caller drive it
    POLL = 1


class Latency(_Open):
    """enum gpushare_latency_value"""

    # GPUSHARE_LATENCY in the environment, else balanced
    DEFAULT = 0
    # sleeps until shortly before the predicted end of what runs
    BALANCED = 1
    # takes a core while anything is in flight, and 10 ms after
    SPIN = 2


class LibraryOperation(_Open):
    """enum gpushare_library_operation_value"""

    # d = alpha a b + beta c, row-major, with cuBLASLt
    MATMUL = 1
    # cross-correlation; this and the rest with cuDNN
    CONVOLUTION = 2
    POOLING = 3
    ACTIVATION = 4
    SOFTMAX = 5


class DataType(_Open):
    """enum gpushare_data_type_value"""

    FLOAT32 = 0
    FLOAT16 = 1
    BFLOAT16 = 2


class LibraryMode(_Open):
    """enum gpushare_library_mode_value"""

    # POOLING: maximum; ACTIVATION: ReLU
    DEFAULT = 0
    MAX_POOLING = 1
    AVERAGE_POOLING = 2
    RELU = 3
    TANH = 4
    SIGMOID = 5


class GuaranteeBit(enum.IntFlag):
    """enum gpushare_guarantee_bit"""

    # it leaves at its next block-task boundary for LC work
    EVICTABLE = 1
    # it stays on the SMs of its place
    CONFINABLE = 2
    # its record has the start and end by the device
    TIMESTAMPED = 4
    # it may be cut into slices or segments
    DIVISIBLE = 8


class EventType(_Open):
    """enum gpushare_event_type_value"""

    NONE = 0
    APP_CREATED = 1
    SUBMITTED = 2
    ADMITTED = 3
    # reserved: no library writes it
    REJECTED = 4
    LAUNCHED = 5
    FAST_PATH_LAUNCHED = 6
    EVICTED = 7
    PART_DONE = 8
    COMPLETED = 9
    HELD = 10
    QUERY_BEGUN = 11
    QUERY_ENDED = 12
    QUEUE_DEPTH = 13
    QUOTA_CHANGED = 14
    DEVICE_LOST = 15
    LANE_ABANDONED = 16
    # serves replay, as the next two do
    WAITS = 17
    # by the calling thread
    QUERY_BEGIN_CALLED = 18
    QUERY_END_CALLED = 19
    # What a plan chose between: the choice and the runner-up.
    CHOICE = 20


class Intensity(_Open):
    """enum gpushare_intensity_value"""

    UNKNOWN = 0
    COMPUTE = 1
    MEMORY = 2


class LaneClass(_Open):
    """enum gpushare_lane_class_value"""

    # ordinary priority
    PLAIN = 0
    # highest priority; never evicted
    LC = 1
    # lowest priority; its launches can be evicted
    BE = 2
    COPY = 3
