// gpushare: latency-critical (LC) and best-effort (BE) work on one GPU, from one process.
//
// This is the C ABI, version 1. It is frozen: docs/abi.md says what may still change. The header is
// installed as <gpushare/gpushare.h>. It compiles alone as C99 to C23 and as C++17 to C++23 on any
// 64-bit platform. <gpushare/gpushare.hpp> is the C++ API over it.
//
// Call sequence
// - Set up, once:
//      gpushare_runtime_create   opens the GPU and starts its scheduler
//      gpushare_app_create       an LC app for each service, a BE app for each background job
//      gpushare_queue_create     one or more queues for each app
//      gpushare_kernel_register  each kernel, graph and library call
// - Serve one LC query:
//      gpushare_query_begin -> gpushare_submit_lc (one or more times) -> gpushare_query_end
//      gpushare_ticket_wait (or a callback, or an eventfd) -> gpushare_ticket_release
//      or, for a query of one task that a thread waits for: gpushare_run_lc
// - Run one BE task:
//      gpushare_submit_be -> gpushare_ticket_wait -> gpushare_ticket_release
// - Run work that is not registered, such as a framework's own kernels:
//      gpushare_region_begin -> enqueue on its stream -> gpushare_region_end
//      gpushare_ticket_wait -> gpushare_ticket_release
// - Stop: gpushare_runtime_shutdown, then release every handle, in any order.
//
// Conventions
// - Status. Every function that can fail returns a gpushare_status. After a failure,
//   gpushare_last_error_message() of the calling thread gives the reason in one sentence. A failure
//   after a successful submit is in the ticket's completion record.
// - Handles. Runtime, app, queue, kernel, fused kernel and event log are opaque handles with
//   create, retain and release. A new handle has one reference. A function that gets a released
//   handle returns INVALID_ARGUMENT where the library can detect it; docs/ownership.md lists where
//   it cannot.
// - Values. Tickets and queries are plain values that hold a generation. A stale value is
//   INVALID_ARGUMENT; it is never taken for a newer ticket or query.
// - Options structs. Make each one with its _INIT macro. Zero (or null) in a field means the
//   field's default.
// - struct_size. A struct that has this field grows in later versions, only at its end. The
//   library reads the smaller of struct_size and its own size. A struct_size below the struct's
//   size in version 1 is INVALID_ARGUMENT; a non-zero tail that this library does not know is
//   UNIMPLEMENTED. In a result struct the caller sets struct_size (with the _INIT macro), and the
//   library fills at most that many bytes and stores how many it filled. Structs without
//   struct_size never change.
// - Reserved fields. The caller sets them to 0; anything else is UNIMPLEMENTED. A reserved field
//   that the library fills may get a meaning later.
// - Enums. A newer library may return values that this header does not name. The gpushare_*_name
//   functions of that library know them.
// - Time. Durations and times are int64_t nanoseconds. Times and deadlines are absolute, on the
//   device's monotonic clock, which gpushare_now_ns reads. The device "sim" has a virtual clock.
// - Strings are UTF-8 and end with NUL. The library copies those that it gets. Each function says
//   how long a string that it returns lives.
// - Callbacks. Each type of callback says on which thread it runs, how often, and what it must not
//   call. A completion callback runs exactly once, with no lock held. A callback must not throw and
//   must not end its thread. The library catches a C++ exception that leaves one, where the frames
//   between can be unwound, and names it in the log (docs/threading.md).
// - Process. No function exits, aborts or throws. None prints unless GPUSHARE_LOG asks for it.
//   After fork(), a child of a process that had made a runtime may only exec or exit: every
//   function that returns a status returns FAILED_PRECONDITION there.
//
// Each function's comment states
//    Threads  which threads may call it, and whether several may at once
//    Owns     what the caller must release afterwards
//    Blocks   what the call may wait for
//    Errors   the statuses that it returns beside GPUSHARE_OK
// A null handle or a null out_ pointer is INVALID_ARGUMENT unless the comment allows null.
#ifndef GPUSHARE_GPUSHARE_H_
#define GPUSHARE_GPUSHARE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define GPUSHARE_NOEXCEPT noexcept
#else
#define GPUSHARE_NOEXCEPT
#endif
#if defined(__GNUC__) || defined(__clang__)
#define GPUSHARE_API __attribute__((visibility("default")))
#else
#define GPUSHARE_API
#endif

// An options or result struct of `type` with struct_size set and every other field zero.
#ifdef __cplusplus
extern "C++" {
template <class Struct>
constexpr Struct gpushare_detail_init() noexcept {
  Struct value{};
  value.struct_size = static_cast<uint32_t>(sizeof(Struct));
  return value;
}
}
#define GPUSHARE_STRUCT_INIT(type) (::gpushare_detail_init<type>())
extern "C" {
#else
#define GPUSHARE_STRUCT_INIT(type) \
  { .struct_size = (uint32_t)sizeof(type) }
#endif

// --- version -------------------------------------------------------------------------------------

// The number in the SONAME, libgpushare.so.1. It changes only when the ABI breaks.
// bindings/c/CHANGELOG.md lists what version 1 added over time.
#define GPUSHARE_ABI_VERSION 1
#define GPUSHARE_VERSION_MAJOR 0
#define GPUSHARE_VERSION_MINOR 1
#define GPUSHARE_VERSION_PATCH 0

// The ABI version of the loaded library. It must equal GPUSHARE_ABI_VERSION.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: none.
GPUSHARE_API uint32_t gpushare_abi_version(void) GPUSHARE_NOEXCEPT;

// The release of the loaded library, "major.minor.patch".
// Threads: any. Owns: nothing; the string is static. Blocks: no.
// Errors: none.
GPUSHARE_API const char* gpushare_version_string(void) GPUSHARE_NOEXCEPT;

// A time that never comes. As a deadline it means: wait without limit.
#define GPUSHARE_NEVER INT64_MAX

// --- status --------------------------------------------------------------------------------------

// Values are frozen. docs/errors.md says what to do about each.
typedef int32_t gpushare_status;
enum gpushare_status_value {
  GPUSHARE_OK = 0,
  GPUSHARE_CANCELLED = 1,
  GPUSHARE_UNKNOWN = 2,
  GPUSHARE_INVALID_ARGUMENT = 3,  // the call is wrong in every state
  GPUSHARE_DEADLINE_EXCEEDED = 4,
  GPUSHARE_NOT_FOUND = 5,  // no such file, or no such kernel in the profile
  GPUSHARE_ALREADY_EXISTS = 6,
  GPUSHARE_PERMISSION_DENIED = 7,
  // A bounded queue or table is full, or the process has no memory left: try again later.
  GPUSHARE_RESOURCE_EXHAUSTED = 8,
  GPUSHARE_FAILED_PRECONDITION = 9,  // wrong state: shut down, in a callback, after a fork
  GPUSHARE_ABORTED = 10,
  GPUSHARE_OUT_OF_RANGE = 11,   // the caller's buffer is too small, or an index too large
  GPUSHARE_UNIMPLEMENTED = 12,  // this library or device does not support it
  GPUSHARE_INTERNAL = 13,       // a defect of the library
  GPUSHARE_UNAVAILABLE = 14,    // no such device, or the device is lost
  GPUSHARE_DATA_LOSS = 15,      // a file is truncated or corrupt
  GPUSHARE_UNAUTHENTICATED = 16
};

// The name of a status: "OK", "INVALID_ARGUMENT". "UNKNOWN_STATUS" for any other number.
// Threads: any. Owns: nothing; the string is static. Blocks: no.
// Errors: none.
GPUSHARE_API const char* gpushare_status_name(gpushare_status status) GPUSHARE_NOEXCEPT;

// Why the last failed call on this thread failed: one sentence of at most 1023 bytes. "" before the
// first failure.
// Threads: any; each thread has its own message. Owns: nothing; the string is valid until the next
// call on this thread that fails. Blocks: no.
// Errors: none.
GPUSHARE_API const char* gpushare_last_error_message(void) GPUSHARE_NOEXCEPT;

// --- words ---------------------------------------------------------------------------------------

typedef int32_t gpushare_bool;  // 0 or 1; any other value from the caller is INVALID_ARGUMENT

// A yes or no whose default comes from elsewhere, such as the kernel's record in the profile.
typedef int32_t gpushare_choice;
enum gpushare_choice_value {
  GPUSHARE_CHOICE_DEFAULT = 0,
  GPUSHARE_CHOICE_YES = 1,
  GPUSHARE_CHOICE_NO = 2
};

typedef int32_t gpushare_app_class;
enum gpushare_app_class_value {
  GPUSHARE_CLASS_LATENCY_CRITICAL = 1,
  GPUSHARE_CLASS_BEST_EFFORT = 2
};

typedef int32_t gpushare_task_kind;
enum gpushare_task_kind_value {
  GPUSHARE_TASK_DEFAULT = 0,  // take the kind of the kernel that is given
  GPUSHARE_TASK_KERNEL = 1,   // a registered kernel, which executes block tasks
  GPUSHARE_TASK_GRAPH = 2,    // a registered graph: one launch starts a chain of nodes
  GPUSHARE_TASK_LIBRARY = 3,  // a registered cuBLAS or cuDNN call
  GPUSHARE_TASK_MEMCPY = 4,   // a copy between host and device, or between devices
  GPUSHARE_TASK_OPAQUE = 5    // a callback or a region that enqueues on a stream of the library
};

// How a task was launched. docs/glossary.md defines the forms.
typedef int32_t gpushare_form;
enum gpushare_form_value {
  GPUSHARE_FORM_ORIGINAL = 0,  // the ordinary grid, as CUDA launches it
  GPUSHARE_FORM_WORKERS = 1,   // persistent thread blocks, each of which executes many block tasks
  GPUSHARE_FORM_SLICE = 2,     // a contiguous range of block tasks as an ordinary grid
  GPUSHARE_FORM_FUSED = 3,     // workers of a precompiled fused kernel
  GPUSHARE_FORM_GRAPH = 4,
  GPUSHARE_FORM_LIBRARY = 5,
  GPUSHARE_FORM_MEMCPY = 6,
  GPUSHARE_FORM_OPAQUE = 7,
  // Parts of a graph, launched one after another until none is left or the graph is evicted.
  GPUSHARE_FORM_SEGMENTS = 8
};

typedef int32_t gpushare_copy_direction;
enum gpushare_copy_direction_value {
  GPUSHARE_COPY_NONE = 0,
  GPUSHARE_COPY_HOST_TO_DEVICE = 1,
  GPUSHARE_COPY_DEVICE_TO_HOST = 2,
  GPUSHARE_COPY_PEER = 3  // device to device, within one GPU or between two
};

// How a task ended.
typedef int32_t gpushare_verdict;
enum gpushare_verdict_value {
  GPUSHARE_VERDICT_PENDING = 0,  // it has not ended
  GPUSHARE_VERDICT_OK = 1,
  GPUSHARE_VERDICT_FAILED = 2,  // it, or a task that it waited for, failed; the device goes on
  GPUSHARE_VERDICT_CANCELLED = 3,
  GPUSHARE_VERDICT_DROPPED = 4,    // too late to be answered by its target (drop_late)
  GPUSHARE_VERDICT_TIMED_OUT = 5,  // the device never ended it, and the library gave up its lane
  GPUSHARE_VERDICT_DEVICE_LOST = 6,
  GPUSHARE_VERDICT_SHUTDOWN = 7  // the runtime was shut down before the task ran
};

// Why the planner launched (1 to 31), held (32 to 63) or evicted (64 to 95) a task, or why it ended
// without a launch (128 on).
typedef int32_t gpushare_reason;
enum gpushare_reason_value {
  GPUSHARE_REASON_NONE = 0,
  GPUSHARE_REASON_LC_FIRST = 1,                // an LC task is launched at once
  GPUSHARE_REASON_FAST_PATH = 2,               // the submitting thread launched an LC task
  GPUSHARE_REASON_BASELINE = 3,                // fifo and priority launch everything as it comes
  GPUSHARE_REASON_IDLE_DEVICE = 4,             // no LC query is active
  GPUSHARE_REASON_FITS_HEADROOM = 5,           // it ends within the headroom of every active query
  GPUSHARE_REASON_FITS_BLOCKING_BUDGET = 6,    // its blocking time fits every blocking budget
  GPUSHARE_REASON_BESIDE_PARTITION = 7,        // it runs on SMs that no LC app uses
  GPUSHARE_REASON_ELASTIC_RETURN = 8,          // the LC side of the split is idle again
  GPUSHARE_REASON_RESUME = 9,                  // it continues after an eviction
  GPUSHARE_REASON_QUOTA = 10,                  // it runs within its CapSM quota
  GPUSHARE_REASON_FILLS_GAP = 11,              // it was cut to the blocking budget
  GPUSHARE_REASON_TAIL_CREDIT = 12,            // on credit of the LC apps' tail accounts
  GPUSHARE_REASON_CO_RESIDENT = 13,            // it shares SMs with a kernel that suits it
  GPUSHARE_REASON_HOLD_HEADROOM = 32,          // it is longer than the headroom of an active query
  GPUSHARE_REASON_HOLD_BLOCKING = 33,          // its blocking time exceeds a blocking budget
  GPUSHARE_REASON_HOLD_LC_ACTIVE = 34,         // LC work is on the SMs that it needs
  GPUSHARE_REASON_HOLD_QUEUED_TIME = 35,       // too much work is issued already
  GPUSHARE_REASON_HOLD_COPIES = 36,            // enough copies run in its direction
  GPUSHARE_REASON_HOLD_WINDOW = 37,            // the policy's in-flight window is full
  GPUSHARE_REASON_HOLD_CAPSM = 38,             // no CapSM is left under its quota
  GPUSHARE_REASON_HOLD_HYSTERESIS = 39,        // the LC queues drained only just before
  GPUSHARE_REASON_HOLD_QUIESCED = 40,          // the caller quiesced the runtime
  GPUSHARE_REASON_HOLD_LANE = 41,              // no lane of its place can take it now
  GPUSHARE_REASON_HOLD_PARTS = 42,             // it has as many launches as a task may have
  GPUSHARE_REASON_HOLD_RUNNING = 43,           // as many BE tasks run as the device may have
  GPUSHARE_REASON_HOLD_COUNTERS = 44,          // every claim counter is in use
  GPUSHARE_REASON_HOLD_LAUNCHES = 45,          // the launch table is full
  GPUSHARE_REASON_HOLD_PLAN = 48,              // its policy's plan entry was dropped
  GPUSHARE_REASON_HOLD_TAIL_CREDIT = 49,       // beyond a budget, and a tail account lacks credit
  GPUSHARE_REASON_HOLD_DUTY = 50,              // BE work has had its share of time
  GPUSHARE_REASON_HOLD_LC_PRIORITY = 51,       // it yields to an LC app of higher priority
  GPUSHARE_REASON_EVICT_FOR_LC = 64,           // an LC task needs its SMs
  GPUSHARE_REASON_EVICT_FOR_RESERVATION = 65,  // an LC reservation is short of CapSMs
  GPUSHARE_REASON_EVICT_FOR_LAYOUT = 66,       // the planner moves to another split
  GPUSHARE_REASON_EVICT_FOR_QUOTA = 67,        // its quota shrank
  GPUSHARE_REASON_EVICT_FOR_LC_PRIORITY = 68,  // it yields to an LC app of higher priority
  GPUSHARE_REASON_USER_POLICY = 96,            // the caller's own policy gave no reason
  GPUSHARE_REASON_DEPENDENCY_FAILED = 128      // a task that it waited for did not end with OK
};

// How many numbers there are for reasons to hold a task, from GPUSHARE_REASON_HOLD_HEADROOM on.
#define GPUSHARE_HOLD_REASONS 32

// Names of the values above, in lower case: "latency_critical", "memcpy", "fits_headroom".
// "unknown" for any other number.
// Threads: any. Owns: nothing; strings are static. Blocks: no.
// Errors: none.
GPUSHARE_API const char* gpushare_app_class_name(gpushare_app_class app_class) GPUSHARE_NOEXCEPT;
GPUSHARE_API const char* gpushare_task_kind_name(gpushare_task_kind kind) GPUSHARE_NOEXCEPT;
GPUSHARE_API const char* gpushare_form_name(gpushare_form form) GPUSHARE_NOEXCEPT;
GPUSHARE_API const char* gpushare_verdict_name(gpushare_verdict verdict) GPUSHARE_NOEXCEPT;
GPUSHARE_API const char* gpushare_reason_name(gpushare_reason reason) GPUSHARE_NOEXCEPT;

// --- handles and values --------------------------------------------------------------------------

typedef struct gpushare_runtime gpushare_runtime;  // one device with its scheduler
typedef struct gpushare_app gpushare_app;          // an owner of work, LC or BE
typedef struct gpushare_queue gpushare_queue;      // a FIFO of an app's tasks
typedef struct gpushare_kernel gpushare_kernel;    // a registered kernel, graph or library call
typedef struct gpushare_fused_kernel gpushare_fused_kernel;
typedef struct gpushare_event_log gpushare_event_log;  // an event log file that was read

// What a submit returns for its task. The task completes exactly once. Value 0: no ticket.
typedef struct gpushare_ticket {
  uint64_t value;
} gpushare_ticket;

// The tokens of one LC request. Value 0: no stream.
typedef struct gpushare_token_stream {
  uint64_t value;
} gpushare_token_stream;

// One LC request: the tasks between its begin and its end. Value 0: no query.
typedef struct gpushare_query {
  uint64_t value;
} gpushare_query;

// --- runtime -------------------------------------------------------------------------------------

typedef int32_t gpushare_log_level;
enum gpushare_log_level_value {
  GPUSHARE_LOG_ERROR = 1,
  GPUSHARE_LOG_WARNING = 2,
  GPUSHARE_LOG_INFO = 3
};

// Receives one log message: a sentence without a newline, which lives for the call. Runs on the
// thread that logs, often inside an API call of that thread. It must not call the API.
typedef void (*gpushare_log_callback)(void* user, gpushare_log_level level, const char* message);

typedef int32_t gpushare_drive;
enum gpushare_drive_value {
  GPUSHARE_DRIVE_THREAD = 0,  // the library's own scheduler thread drives the flow
  GPUSHARE_DRIVE_POLL = 1  // no thread: gpushare_poll, poll_until and waits of the caller drive it
};

// How the scheduler thread waits on a device in real time.
typedef int32_t gpushare_latency;
enum gpushare_latency_value {
  GPUSHARE_LATENCY_DEFAULT = 0,   // GPUSHARE_LATENCY in the environment, else balanced
  GPUSHARE_LATENCY_BALANCED = 1,  // sleeps until shortly before the predicted end of what runs
  GPUSHARE_LATENCY_SPIN = 2       // takes a core while anything is in flight, and 10 ms after
};

typedef struct gpushare_runtime_options {
  uint32_t struct_size;
  gpushare_drive drive;
  // "auto", "cuda", "sim" (in virtual time), "sim:realtime" (docs/load-tests.md) or "null". Null:
  // the value of GPUSHARE_DEVICE in the environment, else "auto". "auto" takes CUDA where there is
  // a GPU, else "sim". That is logged once, and metrics and traces are then marked SIMULATED.
  const char* device;
  const char* policy;        // null: GPUSHARE_POLICY in the environment, else "adaptive"
  const char* profile_path;  // null: GPUSHARE_PROFILE, else the built-in profile of an H200
  uint64_t seed;             // of the random numbers of the simulated device; 0: 1
  const char* sim_tier;      // detail of the simulated device: "kernel" (default) or "block"
  const char* sim_faults;    // faults of the simulated device, for tests (docs/abi.md); null: none
  int32_t device_ordinal;    // which GPU, from 0; ignored on simulated devices
  int32_t splits_max;        // most splits of the device into an LC and a BE side; 0: 16, -1: none
  // A launch is hung when it shows no progress for the larger of hang_floor_ns and hang_factor x T.
  // T is its predicted time on its SMs, with its workers. Progress is a completion on its lane, or
  // an earlier launch that still holds its SMs. A launch of workers also shows progress by each
  // block task that it claims, so its T is the predicted time of one block task.
  // A hang is found at most twice that time after the last progress, or three times where the
  // device does not say what was claimed. The task is then TIMED_OUT, and its lane is replaced.
  // hang_floor_ns 0: 10 s. hang_factor 0: 20.
  int64_t hang_floor_ns;
  double hang_factor;
  // BE returns this long after the last LC query; 0: 2 us, -1: at once.
  int64_t be_return_hysteresis_ns;
  int64_t shutdown_timeout_ns;  // limit of the shutdown that the last release does; 0: 10 s
  // Null: print to stderr if GPUSHARE_LOG is error, warning or info, else stay silent.
  gpushare_log_callback log;
  void* log_user;
  // With GPUSHARE_DRIVE_THREAD on a device in real time (docs/threading.md).
  gpushare_latency latency;
  int32_t reserved;  // 0
  // Most time that one wait for an LC task spins near its predicted end (docs/waiting.md), in
  // nanoseconds. 0: 2 ms, and 10 ms with GPUSHARE_LATENCY_SPIN; -1: waits sleep.
  int64_t caller_spin_ns;
} gpushare_runtime_options;
#define GPUSHARE_RUNTIME_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_runtime_options)

// Opens a device and starts its scheduler. `options` may be null: all defaults.
// Threads: any. Owns: the caller gets one reference of *out_runtime. Blocks: while the device
// opens.
// Errors: INVALID_ARGUMENT an unknown device, policy, tier or fault, or a value out of range;
// NOT_FOUND no such profile file; DATA_LOSS or INVALID_ARGUMENT the profile is rejected;
// UNAVAILABLE "cuda" was asked for and there is no GPU; UNIMPLEMENTED an unknown tail of the
// options.
GPUSHARE_API gpushare_status gpushare_runtime_create(
    const gpushare_runtime_options* options, gpushare_runtime** out_runtime) GPUSHARE_NOEXCEPT;

// Adds one reference.
// Threads: any. Owns: the caller gets one more reference. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_runtime_retain(gpushare_runtime* runtime) GPUSHARE_NOEXCEPT;

// Gives one reference back. Apps, queues and kernels hold one reference each. The last release
// shuts the runtime down within shutdown_timeout_ns, and every accepted task completes first. Null
// is allowed.
// Threads: any; the last release must not come from a callback. Owns: takes one reference. Blocks:
// the last release, up to shutdown_timeout_ns, and on CUDA devices up to 2 s more to free memory.
// Work of the application may hold the device for longer; a thread of the library then frees the
// memory when that work has ended.
// Errors: INVALID_ARGUMENT; FAILED_PRECONDITION the last reference, inside a callback.
GPUSHARE_API gpushare_status gpushare_runtime_release(gpushare_runtime* runtime) GPUSHARE_NOEXCEPT;

// Refuses new work, runs every accepted task, and returns when each has completed and its callback
// has ended. What waits when the deadline is near ends with GPUSHARE_VERDICT_SHUTDOWN; BE work on
// the device is then evicted. With GPUSHARE_NEVER nothing is cut off. BE work that its policy holds
// runs once no LC work is left. A quiesce ends. A region that is open ends with
// GPUSHARE_VERDICT_SHUTDOWN at once. A second call is allowed. Tickets and statistics can still be
// read.
// Threads: any, not in a callback. Owns: nothing. Blocks: until the deadline, and for callbacks.
// Errors: FAILED_PRECONDITION inside a callback; DEADLINE_EXCEEDED some work was cut off.
GPUSHARE_API gpushare_status gpushare_runtime_shutdown(gpushare_runtime* runtime,
                                                       int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Waits until no task is pending. Other threads may still submit.
// Threads: any, not in a callback. Owns: nothing. Blocks: until the deadline at most. Without a
// scheduler thread it drives the flow.
// Errors: DEADLINE_EXCEEDED tasks are still pending; FAILED_PRECONDITION inside a callback.
GPUSHARE_API gpushare_status gpushare_runtime_drain(gpushare_runtime* runtime,
                                                    int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Prepares the device for a synchronisation by the caller, such as cudaDeviceSynchronize. It holds
// new launches, evicts BE work and waits until the device is idle. It waits for an open region
// until that is overdue (regions_overdue). Submits are still accepted. During a shutdown it only
// waits.
// Sequence: gpushare_runtime_quiesce -> synchronise -> gpushare_runtime_resume.
// Threads: any, not in a callback. Owns: nothing. Blocks: until the deadline at most.
// Errors: DEADLINE_EXCEEDED the device is not idle yet, and launches stay held; FAILED_PRECONDITION
// inside a callback.
GPUSHARE_API gpushare_status gpushare_runtime_quiesce(gpushare_runtime* runtime,
                                                      int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Ends a quiesce: launches go on.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: FAILED_PRECONDITION not quiesced, or shut down.
GPUSHARE_API gpushare_status gpushare_runtime_resume(gpushare_runtime* runtime) GPUSHARE_NOEXCEPT;

// Drives the flow once: admits, plans, launches and completes what is due. On a device in virtual
// time with nothing due, the clock advances to the next event. *out_progress (may be null) says
// whether anything happened. For GPUSHARE_DRIVE_POLL only.
// Threads: one at a time, not in a callback. Owns: nothing. Blocks: no.
// Errors: FAILED_PRECONDITION the runtime has a scheduler thread, or inside a callback.
GPUSHARE_API gpushare_status gpushare_poll(gpushare_runtime* runtime,
                                           gpushare_bool* out_progress) GPUSHARE_NOEXCEPT;

// Drives the flow until the device clock reaches time_ns. In virtual time the clock then stands at
// exactly time_ns. For GPUSHARE_DRIVE_POLL only.
// Threads: one at a time, not in a callback. Owns: nothing. Blocks: until time_ns.
// Errors: FAILED_PRECONDITION as for gpushare_poll; INVALID_ARGUMENT time_ns is negative or more
// than 2^61 (73 years), which no clock gets to.
GPUSHARE_API gpushare_status gpushare_poll_until(gpushare_runtime* runtime,
                                                 int64_t time_ns) GPUSHARE_NOEXCEPT;

// Reads the device's clock, in nanoseconds: CLOCK_MONOTONIC of a device in real time.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_now_ns(gpushare_runtime* runtime,
                                             int64_t* out_time_ns) GPUSHARE_NOEXCEPT;

// Replaces the policy, between two plans.
// Threads: any. Owns: nothing. Blocks: until the current pass of the flow ends.
// Errors: INVALID_ARGUMENT an unknown name; the message lists the known ones; FAILED_PRECONDITION
// an app has a reservation or quota, and the policy keeps none.
GPUSHARE_API gpushare_status gpushare_set_policy(gpushare_runtime* runtime,
                                                 const char* name) GPUSHARE_NOEXCEPT;

// Writes the names of the policies, one a line.
//
// Text functions, of which this is the first, write at most buffer_size_bytes including the NUL.
// They always set *out_size_bytes to the size of the whole text including its NUL. To ask for the
// size only, pass a null buffer of size 0: that is OK.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: OUT_OF_RANGE the buffer is too small.
GPUSHARE_API gpushare_status gpushare_policy_names(char* buffer, size_t buffer_size_bytes,
                                                   size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

// --- apps and queues -----------------------------------------------------------------------------

// The longest that a job takes on so many SMs, with its launch and completion: the maximum of
// many runs, never a median.
typedef struct gpushare_worst_case {
  int32_t sms;
  int32_t reserved;  // must be 0
  int64_t worst_ns;
} gpushare_worst_case;

typedef struct gpushare_app_options {
  uint32_t struct_size;
  gpushare_app_class app_class;  // must be given
  const char* name;              // at most 63 bytes, unique in the runtime; must be given
  int64_t target_ns;             // LC: latency target of a query; 0: none; BE: must be 0
  // LC: most p99 latency over p99 alone, 1.05 = 5 % more; at least 1; 0: none; BE: must be 0
  double p99_bound;
  int64_t p99_alone_ns;  // LC, hint: p99 alone at the expected load; 0: unknown; BE: must be 0
  int64_t solo_ns;       // LC, hint: one query on an idle device; 0: unknown; BE: must be 0
  // BE: share of device time among BE apps with work (docs/glossary.md); 0: 1; LC: not used
  double weight;
  // LC: drop a query that waits and can no longer be answered by its target; BE: must be 0.
  // docs/reliability.md has the details.
  gpushare_bool drop_late;
  int32_t tasks_max;  // tasks accepted and not yet released; 0: 1024, at most 16384
  // LC: most median latency over the median alone; at least 1; 0: none; BE: must be 0. The policy
  // adaptive keeps it; the median moves more than the p99 does.
  double p50_bound;
  // How long an open query without a task, or an open region, counts as load that holds work of
  // other apps; 0: 1 s, at least 1 ms; GPUSHARE_NEVER: for ever. A region counts for at least 100
  // times its bound. Afterwards both still end as usual, and the query counts again with its next
  // task. docs/reliability.md has the details.
  int64_t idle_timeout_ns;
  // LC: priority among the LC apps, -100 to 100; a higher one goes first. BE: must be 0.
  // docs/lc-priority.md has the details of this and the next one.
  int32_t priority;
  int32_t reserved;  // must be 0
  // LC: the app yields to LC apps of higher priority. While such an app has a query, tasks of this
  // one do not begin, and its graphs, which run in segments, leave between two segments. The tasks
  // of a query wait so for at most this long in all; then they go on and stay. 0: it does not
  // yield; GPUSHARE_NEVER: no limit; BE: must be 0.
  int64_t yield_ns_max;
  // LC: 1: p99_bound and p99_alone_ns are of the distances between two tokens of a token stream, no
  // longer of queries, and target_ns must be 0 (docs/engines.md); BE: must be 0.
  gpushare_bool bounds_tokens;
  int32_t reserved2;  // must be 0
  // LC: a periodic app, whose query is a job. Two jobs arrive at least period_ns apart, and each
  // ends within deadline_ns of its arrival; that is at most the period. 0: the app is not periodic,
  // or the deadline is the period. target_ns must be 0 or the deadline, and yield_ns_max 0. BE: all
  // of this must be 0. docs/partition-planner.md has the details.
  int64_t period_ns;
  int64_t deadline_ns;
  const gpushare_worst_case* worst_cases;  // of a job, ascending by sms; copied
  uint32_t worst_case_count;               // at most 1024
  uint32_t reserved3;                      // must be 0
  // The longest that the eviction of a running job takes. In a shared partition its kernels then
  // run as workers, and its worst cases are of workers. 0: a job runs to its end.
  int64_t job_eviction_ns;
  // Most by which work on other SMs lengthens a job, through DRAM and L2; 1 to 100; 0: 1.
  double neighbour_factor;
} gpushare_app_options;
#define GPUSHARE_APP_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_app_options)

// Creates an app: an owner of tasks with its class and its targets. An LC app may state target_ns,
// p99_bound, both or neither; docs/glossary.md explains them.
// Threads: any. Owns: the caller gets one reference of *out_app, which holds one of the runtime.
// Blocks: briefly, on the registry's lock.
// Errors: INVALID_ARGUMENT no class, no name, a name that is not UTF-8, a target or a priority of a
// BE app, or a value that is out of its range, such as a priority of 101; ALREADY_EXISTS an app has
// this name; RESOURCE_EXHAUSTED 64 apps, or a sum of tasks_max above 65536; FAILED_PRECONDITION
// shut down.
GPUSHARE_API gpushare_status gpushare_app_create(gpushare_runtime* runtime,
                                                 const gpushare_app_options* options,
                                                 gpushare_app** out_app) GPUSHARE_NOEXCEPT;

// The fields of gpushare_app_update_options that an update changes, as bits.
enum gpushare_app_field_bit {
  GPUSHARE_APP_FIELD_TARGET_NS = 1,
  GPUSHARE_APP_FIELD_P99_BOUND = 2,
  GPUSHARE_APP_FIELD_P50_BOUND = 4,
  GPUSHARE_APP_FIELD_P99_ALONE_NS = 8,
  GPUSHARE_APP_FIELD_WEIGHT = 16,
  GPUSHARE_APP_FIELD_PRIORITY = 32
};

typedef struct gpushare_app_update_options {
  uint32_t struct_size;
  uint32_t fields;    // bits of gpushare_app_field_bit, at least one; a field without its bit is 0
  int64_t target_ns;  // LC; 0: none from now on
  double p99_bound;   // LC; 0: none from now on
  double p50_bound;   // LC; 0: none from now on
  int64_t p99_alone_ns;  // LC; 0: unknown from now on
  double weight;         // BE; 0: 1
  int32_t priority;      // LC; -100 to 100; tasks that run stay
  int32_t reserved;      // must be 0
} gpushare_app_update_options;
#define GPUSHARE_APP_UPDATE_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_app_update_options)

// Changes what a live app states, as after a model swap. It counts from the next plan on, and for
// each query that ends from now on; active queries keep their deadline. What was measured stays.
// What was judged by the old promise begins anew: the tail account, the window of
// gpushare_app_guarantee, and the latencies where p99_alone_ns was known and is another one.
// docs/reliability.md has the details.
// Threads: any. Owns: nothing. Blocks: briefly, until a pass of the scheduler's thread has ended.
// Errors: INVALID_ARGUMENT no field, a field of the other class, a field that is set and not named,
// or a value that gpushare_app_create refuses; then nothing is changed.
GPUSHARE_API gpushare_status gpushare_app_update(
    gpushare_app* app, const gpushare_app_update_options* options) GPUSHARE_NOEXCEPT;

// Adds one reference.
// Threads: any. Owns: the caller gets one more reference. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_app_retain(gpushare_app* app) GPUSHARE_NOEXCEPT;

// Gives one reference back. The last release removes the app. Null is allowed.
// Threads: any. Owns: takes one reference, unless it fails. Blocks: briefly; if it drops the last
// reference of the runtime, as gpushare_runtime_release.
// Errors: INVALID_ARGUMENT; FAILED_PRECONDITION the app's last reference while its tasks are not
// complete, or while the scheduler has not seen yet a task that waits for one of its tickets, or
// the runtime's last reference inside a callback. The reference then stays.
GPUSHARE_API gpushare_status gpushare_app_release(gpushare_app* app) GPUSHARE_NOEXCEPT;

typedef struct gpushare_reservation_options {
  uint32_t struct_size;
  // LC: reservation; BE: quota. In CapSMs (capacity of one SM each); 0 removes it.
  int32_t capsms;
  gpushare_bool packed;  // 1: on whole SMs that no other app uses; 0: spread over any SMs
  int32_t reserved;      // must be 0
} gpushare_reservation_options;
#define GPUSHARE_RESERVATION_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_reservation_options)

// Reserves CapSMs for an LC app, or bounds the CapSMs of a BE app (SMGuard 4.1). The policies
// adaptive and smguard, in all forms, keep to it; the other built-in policies refuse it. BE work
// without workers runs on a side of the device within its quota and off the reserved SMs. Where no
// side is small enough its submit is refused, and what was accepted before runs alone while no
// query is active. A spread quota bounds resident workers, and workers that have an SM for
// themselves may run faster than their share; a packed quota bounds the SMs. A packed reservation
// gets the next larger LC side of a split of the device, a packed quota the next smaller BE side.
// While some reservation is packed, every reservation that would leave less than the smallest BE
// side gets all SMs that are not reserved.
// Threads: any. Owns: nothing. Blocks: briefly.
// Errors: INVALID_ARGUMENT negative, more than the device has, or a packed quota below the smallest
// BE side; RESOURCE_EXHAUSTED all reservations together exceed the device; FAILED_PRECONDITION the
// policy keeps no reservations, or shut down.
GPUSHARE_API gpushare_status gpushare_reserve_capsm(
    gpushare_app* app, const gpushare_reservation_options* options) GPUSHARE_NOEXCEPT;

typedef struct gpushare_partition_options {
  uint32_t struct_size;
  // 0: a partition for each app, so that an overrun delays no other app. 1: apps share partitions
  // where that needs fewer SMs; one job at a time runs there, that with the earliest deadline. A
  // job that overruns is then evicted, if its app states job_eviction_ns; else it delays the apps
  // of its partition.
  gpushare_bool share;
  // BE work may also run on a partition without a job, if it leaves within this time. Each worst
  // case is charged with it. 0: BE work runs on the other SMs alone.
  int64_t slack_eviction_ns;
  int32_t reserved_sms;  // that no partition gets
  int32_t reserved;      // must be 0
} gpushare_partition_options;
#define GPUSHARE_PARTITION_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_partition_options)

typedef struct gpushare_partition_plan {
  uint32_t struct_size;
  int32_t partitions;     // 0: no app is periodic, and no plan is in force
  int32_t partition_sms;  // of all of them
  int32_t rest_sms;       // that BE work and apps without a partition have at all times
} gpushare_partition_plan;
#define GPUSHARE_PARTITION_PLAN_INIT GPUSHARE_STRUCT_INIT(gpushare_partition_plan)

// Plans a partition of the SMs for each periodic app, such that every job keeps its deadline while
// no job takes longer than its worst case. The answer is yes with bounds, which
// gpushare_app_guarantee has for each app, or no: RESOURCE_EXHAUSTED with the reason as its
// message. After a yes the plan is in force in the place of the one before, and the counts of jobs
// begin anew; after any error the one before stays. An app that is created later has no partition
// until the next plan. Needs the policy "partitioned".
// Threads: any. Owns: nothing. Blocks: while it plans and makes the partitions, milliseconds each.
// Errors: RESOURCE_EXHAUSTED the apps do not fit, or the device has no room for the partitions;
// INVALID_ARGUMENT a periodic app without a worst case, or a value out of its range;
// FAILED_PRECONDITION the policy uses no partitions, the device has none, graphs are registered
// that are captured in each place, or shut down.
GPUSHARE_API gpushare_status
gpushare_plan_partitions(gpushare_runtime* runtime, const gpushare_partition_options* options,
                         gpushare_partition_plan* out_plan) GPUSHARE_NOEXCEPT;

// Creates a queue: a FIFO of the app's tasks. Tasks of different queues are ordered only by tickets
// and events (wait_tickets, wait_events). The order of a queue is no dependency: a task runs
// whatever became of the tasks before it, unless it names their tickets in wait_tickets.
// Threads: any. Owns: the caller gets one reference of *out_queue, which holds one of the app.
// Blocks: briefly.
// Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED 256 queues; FAILED_PRECONDITION shut down.
GPUSHARE_API gpushare_status gpushare_queue_create(gpushare_app* app,
                                                   gpushare_queue** out_queue) GPUSHARE_NOEXCEPT;

// Adds one reference.
// Threads: any. Owns: the caller gets one more reference. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_queue_retain(gpushare_queue* queue) GPUSHARE_NOEXCEPT;

// Gives one reference back; the rules are those of gpushare_app_release, for a queue and its tasks.
// If it is all that keeps the app, the app is released too.
// Threads: any. Owns: takes one reference, unless it fails. Blocks, Errors: as
// gpushare_app_release.
GPUSHARE_API gpushare_status gpushare_queue_release(gpushare_queue* queue) GPUSHARE_NOEXCEPT;

// --- kernels -------------------------------------------------------------------------------------

// Speed of a kernel that runs alone on `sms` SMs, relative to its speed on the whole device. It
// need not grow with sms.
typedef struct gpushare_speed_point {
  int32_t sms;
  int32_t reserved;  // must be 0
  double speed;
} gpushare_speed_point;

// Share of each resource's capacity, 0 to 1, that a kernel uses alone at full occupancy.
typedef struct gpushare_resource_demand {
  double issue;    // instruction issue, of each SM that it runs on
  double tensor;   // Tensor cores, of each SM that it runs on
  double special;  // special function units, of each SM that it runs on
  double dram;     // DRAM bandwidth of the device, when it runs on all SMs
  double l2;       // L2 bandwidth of the device, when it runs on all SMs
} gpushare_resource_demand;

// One node of a graph: an ordinary grid of `blocks` blocks that runs `repeat` times in a row.
typedef struct gpushare_graph_node {
  int64_t duration_ns;  // once, alone on the whole device, without the gap to the next node
  int32_t blocks;
  int32_t repeat;            // 0: 1
  gpushare_choice whole_sm;  // each block takes a whole SM; default yes
  int32_t reserved;          // must be 0
  gpushare_resource_demand demand;
} gpushare_graph_node;

// How a kernel behaves on the simulated device. The cost model starts from it on every device.
typedef struct gpushare_simulation_record {
  uint32_t struct_size;
  uint32_t speed_count;      // at most 32
  int64_t block_task_ns;     // one block task alone, with all workers of the SM resident
  double block_task_spread;  // relative standard deviation of block_task_ns
  // Extra time of the worker form over the original grid, 0.003 = 0.3 %; -0.5 to 10.
  double worker_overhead;
  // Outstanding memory requests relative to those of a streaming kernel.
  double memory_parallelism;
  // Occupancy below which the speed of an SM falls in proportion; 0: 1.
  double saturating_occupancy;
  gpushare_resource_demand demand;
  const gpushare_speed_point* speed;  // ascending by sms; null: proportional to the number of SMs
  const gpushare_graph_node* nodes;   // graphs only
  uint32_t node_count;                // at most 4096
  uint32_t reserved;                  // must be 0
  int64_t node_gap_ns;                // between two dependent nodes
} gpushare_simulation_record;
#define GPUSHARE_SIMULATION_RECORD_INIT GPUSHARE_STRUCT_INIT(gpushare_simulation_record)

// What a profiler counted of a kernel that ran alone on the whole device, as an ordinary grid of
// many waves (docs/counters.md). The models predict from it what two kernels that share SMs do to
// each other, how fast a kernel is on fewer SMs and what it costs a neighbour (docs/models.md).
// Shares are of the hardware's peak over the whole launch, from 0 to 1.
typedef struct gpushare_kernel_counters {
  uint32_t struct_size;
  uint32_t reserved;           // must be 0
  double instructions;         // of warps, in one block task; above 0
  double memory_instructions;  // of these, loads, stores and asynchronous copies of global memory
  double sectors_per_request;  // 32-byte sectors of one such load or store of a warp, at most 1024
  double issue;                // of the schedulers' issue slots; above 0
  double fma;                  // of the FMA pipe's cycles
  double alu;                  // of the ALU pipe's cycles
  double tensor;               // of the Tensor cores' cycles
  double special;              // of the rate of the pipe for transcendental functions
  double lsu;                  // of the rate of the load and store units
  double shared;               // of the data rate of shared memory
  double l1;                   // of the L1 cache's busiest part
  double l2;                   // of the L2 cache's busiest part
  double dram;                 // of the bandwidth of device memory
  double dram_write;           // of dram, what writes take: at most dram
  // Occupancy below which the speed of an SM falls in proportion; 0: 1. With a simulation record,
  // the caller's or the profile's, that record's counts.
  double saturating_occupancy;
} gpushare_kernel_counters;
#define GPUSHARE_KERNEL_COUNTERS_INIT GPUSHARE_STRUCT_INIT(gpushare_kernel_counters)

// Enqueues the work of a graph on `stream`, a cudaStream_t that is being captured, for a place of
// `sm_count` SMs. It runs once for each place, inside gpushare_kernel_register, on the registering
// thread. The device's primary context is current. Other threads may call the library meanwhile,
// except to register. The callback may call the library as well; functions that register or wait
// return FAILED_PRECONDITION inside it. A result other than 0 makes the registration fail with a
// message that states the number.
typedef int32_t (*gpushare_capture_callback)(void* user, void* stream, int32_t sm_count);

typedef int32_t gpushare_library_operation;
enum gpushare_library_operation_value {
  GPUSHARE_LIBRARY_MATMUL = 1,       // d = alpha a b + beta c, row-major, with cuBLASLt
  GPUSHARE_LIBRARY_CONVOLUTION = 2,  // cross-correlation; this and the rest with cuDNN
  GPUSHARE_LIBRARY_POOLING = 3,
  GPUSHARE_LIBRARY_ACTIVATION = 4,
  GPUSHARE_LIBRARY_SOFTMAX = 5
};

typedef int32_t gpushare_data_type;
enum gpushare_data_type_value { GPUSHARE_FLOAT32 = 0, GPUSHARE_FLOAT16 = 1, GPUSHARE_BFLOAT16 = 2 };

typedef int32_t gpushare_library_mode;
enum gpushare_library_mode_value {
  GPUSHARE_MODE_DEFAULT = 0,  // POOLING: maximum; ACTIVATION: ReLU
  GPUSHARE_MODE_MAX_POOLING = 1,
  GPUSHARE_MODE_AVERAGE_POOLING = 2,
  GPUSHARE_MODE_RELU = 3,
  GPUSHARE_MODE_TANH = 4,
  GPUSHARE_MODE_SIGMOID = 5
};

// A cuBLASLt or cuDNN call: the operation and its shapes, in elements. The algorithm is chosen at
// registration. The library has a handle and a workspace of its own for each lane.
typedef struct gpushare_library_call {
  uint32_t struct_size;
  gpushare_library_operation operation;
  gpushare_data_type type;
  gpushare_library_mode mode;
  gpushare_bool channels_last;  // 1: NHWC; 0: NCHW
  gpushare_bool transpose_a;
  gpushare_bool transpose_b;
  int32_t reserved;  // must be 0
  int64_t m;         // MATMUL: d has m rows and n columns; the sum runs over k
  int64_t n;
  int64_t k;
  int64_t batch;  // number of matrices or images; 0: 1
  int64_t channels;
  int64_t height;
  int64_t width;
  int64_t filters;
  int64_t filter_height;  // of a filter, or of the pooling window
  int64_t filter_width;   // of a filter, or of the pooling window
  int64_t padding;
  int64_t stride;    // 0: 1
  int64_t dilation;  // 0: 1
  int64_t groups;    // 0: 1
} gpushare_library_call;
#define GPUSHARE_LIBRARY_CALL_INIT GPUSHARE_STRUCT_INIT(gpushare_library_call)

// The arguments of a LIBRARY task: operands in device memory. Every LIBRARY task gives the whole
// struct; on simulated devices the operands may be null. It has no struct_size: it never changes.
typedef struct gpushare_library_arguments {
  const void* a;  // MATMUL: a; else the input
  const void* b;  // MATMUL: b; CONVOLUTION: the filters
  const void* c;  // what beta multiplies; may be null
  void* d;        // the result
  float alpha;
  float beta;
} gpushare_library_arguments;

// Memory of the runtime's GPU.
typedef struct gpushare_memory_range {
  const void* address;
  uint64_t size_bytes;
} gpushare_memory_range;

// What a function of a module was loaded from (docs/compiled-kernels.md).
typedef struct gpushare_function_image {
  const void* function;  // CUfunction, of the device's primary context; must be given
  const void* image;     // a cubin, of which the library copies what it needs
  uint64_t image_bytes;  // at most 256 MiB
  const char* name;      // of the kernel in the image
} gpushare_function_image;

// A kernel, graph or library call to register. A zero in a field whose comment names the profile
// takes the value of the kernel of that name in the runtime's profile, if there is one. Otherwise
// it takes what the comment says next. "The function" is original_function or worker_function.
// Fields that need CUDA (functions, graphs, shapes of blocks) are ignored on simulated devices.
typedef struct gpushare_kernel_options {
  uint32_t struct_size;
  gpushare_task_kind kind;       // KERNEL (default), GRAPH or LIBRARY
  const char* name;              // at most 63 bytes; must be given
  int32_t threads_per_block;     // 0: the profile's, else the function's, else 256
  int32_t registers_per_thread;  // 0: the profile's, else the function's, else 32
  // Of a block, static and dynamic; 0: the profile's, else the function's, else 0.
  int32_t shared_memory_bytes;
  // M of CapSM: most workers that fit in an SM. 0: the profile's, else what the function's
  // resources allow, else 8.
  int32_t workers_per_sm_max;
  // KERNEL: it has a worker form that reads an eviction word; default: the profile's, else no.
  gpushare_choice evictable;
  // It may run on a part of the device; default: the profile's, else yes.
  gpushare_choice confinable;
  // Blocks of other kernels fit beside it in an SM; default: the profile's, else no.
  gpushare_choice roomy;
  int32_t reserved;  // must be 0
  // Time between yield points inside a block task; 0: the profile's, else none.
  int64_t yield_interval_ns;
  // Estimate of one launch alone on the whole device; 0: the profile's, else none.
  int64_t solo_ns;
  void* original_function;  // CUfunction of the original grid; null on simulated devices
  void* worker_function;    // CUfunction of the worker form (docs/kernel-contract.md)
  void* graph;              // GRAPH: a cudaGraph_t, which is instantiated once for each place
  const gpushare_simulation_record* simulation;  // null: the profile's
  // GRAPH: enqueues the work; it is captured once for each place. Of graph, capture and graph_exec
  // at most one is given.
  gpushare_capture_callback capture;
  void* capture_user;
  // GRAPH: an instantiated cudaGraphExec_t; it runs on the whole device and is not confinable.
  void* graph_exec;
  int32_t block_x;  // shape of a block; three zeros: {threads_per_block, 1, 1}
  int32_t block_y;
  int32_t block_z;
  int32_t dynamic_shared_memory_bytes;
  const gpushare_library_call* library;  // LIBRARY: must be given; may be null on simulated devices
  void* slice_function;  // CUfunction of the slice form; null: the worker form runs slices
  // GRAPH: length of the segments that BE tasks of the graph run in and are evicted between; tasks
  // of LC apps run it whole, but those of an app that yields. 0: 100 us; -1: never cut. Segments
  // are longer where no LC app needs short ones. Longer nodes are segments of their own. A graph in
  // segments is submitted by apps of one kind (BE, LC, LC that yields); another kind needs a second
  // capture. On CUDA no node's duration is known without measure_nodes: a segment has as many nodes
  // as fit into segment_ns at their mean duration, solo_ns over their number, or 9 us each without
  // solo_ns. So segments whose nodes are longer than the mean take longer, as do those of a graph
  // that would need too many (docs/segments.md). gpushare_kernel_info has the resulting segments.
  int64_t segment_ns;
  // GRAPH: registering may execute the graph, twice and whole, which measures its nodes: then
  // segments are cut by duration. With segment_ns -1, tasks of LC apps may be cut at kernel nodes
  // that have a fused kernel, under a policy that fuses (docs/cut-graphs.md). Never for a
  // graph_exec.
  gpushare_bool measure_nodes;
  int32_t reserved2;  // must be 0
  // GRAPH: registering may execute the graph in each place, a few times and for about a second in
  // all, which measures its speed on fewer SMs. Without it that counts as in proportion to the SMs,
  // so a query is hardly ever confined. Nothing is measured of a graph that is not confinable, or
  // on a simulated device. Never for a graph_exec. If one execution takes more than 10 s, the
  // registration fails with DEADLINE_EXCEEDED and the graph still runs: its buffers are in use
  // until it ends.
  gpushare_bool measure_places;
  int32_t reserved3;  // must be 0
  // GRAPH that is never cut (segment_ns -1): what it reads each time and BE work displaces from the
  // L2 cache, such as the weights of a small network. The library's instances of the graph read it
  // beside their first nodes, all at once, which takes less time than a miss in each kernel. At
  // most 4096 ranges, together no more than the cache; of use up to about half of it. It must live
  // as long as the graph. Not for graphs with memory nodes or conditional nodes, which CUDA does
  // not copy. Simulated devices have no such cache.
  const gpushare_memory_range* warm_memory;
  uint32_t warm_memory_count;
  int32_t reserved4;  // must be 0
  // GRAPH: what its functions were loaded from, where CUDA knows no CUkernel of them: those of
  // Triton, Inductor and other users of cuModuleGetFunction. Such a kernel belongs to one context;
  // with its image the graph is confinable and cut into segments like any other. Functions that the
  // graph does not have are ignored, so all that are known may be given. Of two images of one
  // function the last one counts. Read during the registration. At most 65536. Ignored on simulated
  // devices.
  const gpushare_function_image* function_images;
  uint32_t function_image_count;
  int32_t reserved5;  // must be 0
  // KERNEL: what a profiler or gpushare_kernel_pre_run counted of it; null: the profile's, else
  // none. Without counters nothing is known of the kernel beside one that it never ran beside.
  const gpushare_kernel_counters* counters;
} gpushare_kernel_options;
#define GPUSHARE_KERNEL_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_kernel_options)

// Registers a kernel, a graph or a library call. Its modules and graphs stay the caller's and must
// live until the runtime's last task that uses them is complete.
// Threads: any, not in a capture callback. Owns: the caller gets one reference of *out_kernel,
// which holds one of the runtime. Blocks: while the device prepares it, and while earlier
// registrations finish.
// Errors: INVALID_ARGUMENT no name; a value that is negative, NaN or too large; a shape of a block
// that does not match its threads; two forms of one graph; shapes of a library call that do not fit
// together; a field that the kind does not use; warm memory that is not this GPU's; on a simulated
// device, no simulation record and none in the profile. ALREADY_EXISTS a kernel has this name;
// RESOURCE_EXHAUSTED 1024 kernels; DEADLINE_EXCEEDED the device takes nothing for 10 s, or the
// graph that is measured runs for longer: it still runs, and its buffers are in use; UNAVAILABLE
// cuBLASLt or cuDNN is not installed; UNIMPLEMENTED a confinable graph has a kernel that cannot
// leave its context: register it with confinable NO; FAILED_PRECONDITION shut down, or inside a
// capture callback.
GPUSHARE_API gpushare_status
gpushare_kernel_register(gpushare_runtime* runtime, const gpushare_kernel_options* options,
                         gpushare_kernel** out_kernel) GPUSHARE_NOEXCEPT;

// The forms that are made of a PTX text, as bits. GRAPH_NODES is no form: with it, long nodes of
// graphs that are registered later and launch original_function may run as the kernel's workers
// (docs/evictable-nodes.md); this has not run on a GPU yet.
enum gpushare_ptx_form_bit {
  GPUSHARE_PTX_FORM_WORKERS = 2,         // 1 << GPUSHARE_FORM_WORKERS
  GPUSHARE_PTX_FORM_SLICE = 4,           // 1 << GPUSHARE_FORM_SLICE
  GPUSHARE_PTX_FORM_GRAPH_NODES = 65536  // nodes of graphs may run as its workers
};

// A kernel of which only the PTX is known: one of Triton, TorchInductor, NVRTC or nvcc
// (docs/ptx-kernels.md).
typedef struct gpushare_ptx_code {
  uint32_t struct_size;
  uint32_t forms;       // twins to make, of gpushare_ptx_form_bit; no form: all
  const char* text;     // of one module; must be given
  uint64_t text_bytes;  // without a NUL, at most 16 MiB; 0: the text ends with a NUL
  const char* entry;    // name of the kernel in the text; null: the text has one kernel
} gpushare_ptx_code;
#define GPUSHARE_PTX_CODE_INIT GPUSHARE_STRUCT_INIT(gpushare_ptx_code)

// Registers a kernel from its PTX, and makes its worker and slice forms (twins). A form that cannot
// be made is refused, and the kernel runs in the forms that it has: gpushare_kernel_info says which
// line refuses it and why. With its worker form the kernel is evictable, unless `evictable` is NO.
// The arguments of its tasks are those of the original, packed as in C. A CUDA device assembles the
// text once and keeps the code on disk (GPUSHARE_CODE_CACHE, docs/environment.md).
// In `options`: the kind is KERNEL; worker_function and slice_function are null, and there are no
// yield points (yield_interval_ns 0). original_function may be the application's own function of
// this text, which then runs the original grid; else the original is assembled too. Without threads
// or a shape of a block, it is what the text requires (.reqntid).
// Threads: any, not in a capture callback. Owns: the caller gets one reference of *out_kernel,
// which holds one of the runtime; nothing of `code` is kept. Blocks: as gpushare_kernel_register;
// on a CUDA device 0.1 s to some seconds for a text that is not in the cache.
// Errors: as gpushare_kernel_register; also INVALID_ARGUMENT no text, one of more than 16 MiB, one
// that no assembler takes (the message has the assembler's first line), blocks of other threads
// than the text requires, another kind or a function that the text makes; NOT_FOUND the text has no
// kernel of this name, or several and no name is given; UNIMPLEMENTED `evictable` is YES and the
// worker form is refused; FAILED_PRECONDITION original_function is given and the text has variables
// of its own, which its copy would not share; UNAVAILABLE neither nvJitLink nor the driver can
// assemble.
GPUSHARE_API gpushare_status gpushare_kernel_register_ptx(
    gpushare_runtime* runtime, const gpushare_kernel_options* options,
    const gpushare_ptx_code* code, gpushare_kernel** out_kernel) GPUSHARE_NOEXCEPT;

// Writes the names of the kernels in `code->text`, one a line, in their order; `code->entry` is
// ignored. Empty where the text is not PTX that twins can be made of. A text function: see
// gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: about 10 ms for 100 KB of text.
// Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_ptx_entries(const gpushare_ptx_code* code, char* buffer,
                                                  size_t buffer_size_bytes,
                                                  size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

// Whether the kernel has this form, WORKERS or SLICE. Writes "" if it has, else why not, as a
// sentence; `code->forms` is ignored. *out_line is the line of the text that refuses it, from 1; 0:
// none, or the text as a whole. A text function: see gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: as gpushare_ptx_entries.
// Errors: OUT_OF_RANGE; INVALID_ARGUMENT also another form; NOT_FOUND as
// gpushare_kernel_register_ptx.
GPUSHARE_API gpushare_status gpushare_ptx_check(const gpushare_ptx_code* code, gpushare_form form,
                                                uint32_t* out_line, char* buffer,
                                                size_t buffer_size_bytes,
                                                size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

// Writes the module with the original and its twins of `code->forms`. A text function: see
// gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: as gpushare_ptx_entries.
// Errors: OUT_OF_RANGE; INVALID_ARGUMENT; NOT_FOUND as gpushare_kernel_register_ptx; UNIMPLEMENTED
// one of these forms is refused: the message has the line and the reason.
GPUSHARE_API gpushare_status gpushare_ptx_transform(const gpushare_ptx_code* code, char* buffer,
                                                    size_t buffer_size_bytes,
                                                    size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

// Adds one reference.
// Threads: any. Owns: the caller gets one more reference. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_kernel_retain(gpushare_kernel* kernel) GPUSHARE_NOEXCEPT;

// Gives one reference back. With the last one the kernel's name is free, and a graph takes no more
// tasks. When its last task is complete, another kernel may take its place: one of the same name,
// or any once 1024 are registered. What was learned of it stays until then. The next registration
// of a graph frees the instances and segments of such a graph. Null is allowed. Threads: any. Owns:
// takes one reference, unless it fails. Blocks: no; if it drops the last reference of the runtime,
// as gpushare_runtime_release. Errors: INVALID_ARGUMENT; FAILED_PRECONDITION the runtime's last
// reference inside a callback.
GPUSHARE_API gpushare_status gpushare_kernel_release(gpushare_kernel* kernel) GPUSHARE_NOEXCEPT;

// What the library knows of a kernel.
typedef struct gpushare_kernel_info {
  uint32_t struct_size;
  gpushare_task_kind kind;
  int32_t threads_per_block;
  int32_t registers_per_thread;
  int32_t shared_memory_bytes;
  int32_t workers_per_sm_max;
  gpushare_bool evictable;  // a registered GRAPH: it has several segments
  gpushare_bool confinable;
  gpushare_bool roomy;
  int32_t node_count;     // GRAPH: nodes, each counted as often as it repeats
  int64_t block_task_ns;  // KERNEL: one block task alone; 0: unknown
  int64_t yield_interval_ns;
  // One launch alone on the whole device: the caller's estimate, else the sum of a graph's nodes
  // and gaps; 0: unknown. For a KERNEL estimate it as rounds of block_task_ns, where one round
  // executes SMs times workers_per_sm_max block tasks.
  int64_t solo_ns;
  gpushare_resource_demand demand;
  // GRAPH: why it runs whole, a sentence; null: it has segments, is not registered, or is no graph.
  // Lives as long as the runtime.
  const char* whole_reason;
  int64_t longest_segment_ns;  // GRAPH: alone on the whole device; 0: unknown
  int32_t segment_count;       // GRAPH: 1: it runs whole; 0: it is not registered
  int32_t reserved;
  // Of a kernel of PTX: why it has no worker or slice form, a sentence; null: it has one, or nobody
  // asked for it, or it is none of PTX. The line is that of the text, from 1; 0: the text as a
  // whole. Both live until the calling thread's next gpushare_kernel_info_by_name, whatever becomes
  // of the kernel: another thread may release it meanwhile.
  const char* worker_refusal;
  const char* slice_refusal;
  uint32_t worker_refusal_line;
  uint32_t slice_refusal_line;
  // GRAPH: of its segments, those that are evicted between the block tasks of their one node.
  int32_t evictable_segments;
  int32_t reserved2;
} gpushare_kernel_info;
#define GPUSHARE_KERNEL_INFO_INIT GPUSHARE_STRUCT_INIT(gpushare_kernel_info)

// Says what is known of the kernel of a name: of a registered one, else of the one in the runtime's
// profile.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: NOT_FOUND, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_kernel_info_by_name(
    gpushare_runtime* runtime, const char* name, gpushare_kernel_info* out_info) GPUSHARE_NOEXCEPT;

// Writes the names of the kernels in the runtime's profile, one a line. A text function: see
// gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status
gpushare_profile_kernel_names(gpushare_runtime* runtime, char* buffer, size_t buffer_size_bytes,
                              size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

// A fused kernel: one precompiled kernel whose blocks hold warps of a Tensor-core kernel and of a
// CUDA-core kernel.
typedef struct gpushare_fused_kernel_options {
  uint32_t struct_size;
  int32_t tensor_blocks;  // blocks of the Tensor-core part in one fused block, at most 32; 0: 1
  int32_t cuda_blocks;    // blocks of the CUDA-core part in one fused block, at most 32; 0: 1
  int32_t reserved;       // must be 0
  const char* name;       // at most 63 bytes, unique among fused kernels; must be given
  gpushare_kernel* tensor_part;  // registered before; must be given
  gpushare_kernel* cuda_part;    // registered before; must be given
  // Load ratio at which both parts end together (Tacker). 0: the profile's for a fused kernel of
  // this name, else 1. What the profile measured at other load ratios counts in any case.
  double opportune_load_ratio;
  // Fused duration at that load ratio over the Tensor-core part's own duration; 0: likewise.
  double opportune_duration_ratio;
  // CUfunction that GPUSHARE_FUSED_KERNEL makes. Its parameters are a header and the arguments of
  // the Tensor-core part, then a header and the arguments of the CUDA-core part. Null on simulated
  // devices, and on a CUDA device for a pair that is never launched.
  void* function;
  int32_t threads_per_block;  // of a fused block; 0: what the device reads from the function
  int32_t dynamic_shared_memory_bytes;  // 0: none
  // Fused blocks that fit in an SM; 0: what the device computes from the function.
  int32_t blocks_per_sm;
  int32_t reserved2;  // must be 0
} gpushare_fused_kernel_options;
#define GPUSHARE_FUSED_KERNEL_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_fused_kernel_options)

// Registers a fused kernel of two registered kernels.
// Threads: any, not in a capture callback. Owns: the caller gets one reference of *out_fused, which
// holds one of the runtime. Blocks: as gpushare_kernel_register.
// Errors: INVALID_ARGUMENT no name; parts that are not two kernels of this runtime; blocks, ratios,
// threads or shared memory out of range; a function with other parameters. ALREADY_EXISTS a fused
// kernel has this name; RESOURCE_EXHAUSTED 1024 fused kernels; FAILED_PRECONDITION shut down, or
// inside a capture callback.
GPUSHARE_API gpushare_status gpushare_fused_kernel_register(
    gpushare_runtime* runtime, const gpushare_fused_kernel_options* options,
    gpushare_fused_kernel** out_fused) GPUSHARE_NOEXCEPT;

// Adds one reference.
// Threads: any. Owns: the caller gets one more reference. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_fused_kernel_retain(gpushare_fused_kernel* fused)
    GPUSHARE_NOEXCEPT;

// Gives one reference back. With the last one the name is free. The fused kernel stays in use until
// another one takes its place, of the same name, or any once 1024 are registered, or until another
// kernel takes the place of a part. Null is allowed.
// Threads: any. Owns: takes one reference, unless it fails. Blocks, Errors: as
// gpushare_kernel_release.
GPUSHARE_API gpushare_status gpushare_fused_kernel_release(gpushare_fused_kernel* fused)
    GPUSHARE_NOEXCEPT;

// --- queries -------------------------------------------------------------------------------------

// Begins a query on a queue of an LC app. Its latency counts from arrival_ns, when the request was
// meant to arrive; 0: now. The query is done when it was ended and all of its tasks are complete. A
// single task needs no query: an LC task without one is a query by itself. Sequence:
// gpushare_query_begin -> gpushare_submit_lc (one or more times) -> gpushare_query_end.
// Threads: any. Owns: the caller must end the query. Blocks: no.
// Errors: INVALID_ARGUMENT the queue is of a BE app, or the time is negative or more than an hour
// from now; RESOURCE_EXHAUSTED the app has tasks_max open queries; FAILED_PRECONDITION shut down;
// UNAVAILABLE the device is lost.
GPUSHARE_API gpushare_status gpushare_query_begin(gpushare_queue* queue, int64_t arrival_ns,
                                                  gpushare_query* out_query) GPUSHARE_NOEXCEPT;

// What the caller knows of a query when it begins.
typedef struct gpushare_query_options {
  uint32_t struct_size;
  uint32_t reserved;   // must be 0
  int64_t arrival_ns;  // as in gpushare_query_begin
  // Size of the query's input: tokens, images, bytes, in the same unit for all queries of the app;
  // at most 1e12. The library learns how long a query takes alone from its size, and predicts what
  // is left of an active query by it. 0: unknown, and the mean of the app's queries counts.
  double input_size;
} gpushare_query_options;
#define GPUSHARE_QUERY_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_query_options)

// Begins a query as gpushare_query_begin does.
// Threads: any. Owns: the caller must end the query. Blocks: no.
// Errors: as gpushare_query_begin; INVALID_ARGUMENT also a size that is negative, NaN or too large.
GPUSHARE_API gpushare_status gpushare_query_begin_with(gpushare_queue* queue,
                                                       const gpushare_query_options* options,
                                                       gpushare_query* out_query) GPUSHARE_NOEXCEPT;

// Says that the query gets no more tasks. Its tasks go on.
// Threads: any. Owns: takes the query; the value is stale afterwards. Blocks: no.
// Errors: INVALID_ARGUMENT unknown, or ended before.
GPUSHARE_API gpushare_status gpushare_query_end(gpushare_runtime* runtime,
                                                gpushare_query query) GPUSHARE_NOEXCEPT;

// Ends open queries of an app whose values are lost, as after a client has vanished: those that
// have had no task for idle_ns, in nanoseconds; 0: all open ones. Their tasks go on. Their
// latencies are in no statistics. It ends token streams likewise: those without a mark for idle_ns.
// Writes how many it ended, of both; out_count may be null. Threads: any.
// Owns: takes these queries and streams; their values are stale afterwards. Blocks: briefly.
// Errors: INVALID_ARGUMENT, also for a negative idle_ns.
GPUSHARE_API gpushare_status gpushare_query_abandon(gpushare_app* app, int64_t idle_ns,
                                                    int32_t* out_count) GPUSHARE_NOEXCEPT;

// --- token streams -------------------------------------------------------------------------------

// Begins the token stream of a request of an LC app, which arrived at arrival_ns; 0: now. A stream
// counts what a user of a language model waits for: from the arrival to the first token (TTFT) and
// between two tokens (TBT), in gpushare_app_guarantee and the metrics. An app has at most tasks_max
// open streams; when it has no more, those without a mark for its idle timeout are ended. A stream
// is no load. Sequence: gpushare_token_stream_begin -> for each step gpushare_submit_lc ->
// gpushare_token_stream_mark -> gpushare_token_stream_end.
// Threads: any, also in callbacks. Owns: the caller must end the stream. Blocks: briefly, until a
// pass of the scheduler's thread has ended; the first one of a runtime allocates.
// Errors: INVALID_ARGUMENT a BE app, or the time is negative or more than an hour from now;
// RESOURCE_EXHAUSTED the app has tasks_max open streams, or the runtime 16384.
GPUSHARE_API gpushare_status gpushare_token_stream_begin(
    gpushare_app* app, int64_t arrival_ns, gpushare_token_stream* out_stream) GPUSHARE_NOEXCEPT;

// Says that the task of the ticket, LC and of any app, gives each of `count` streams one token: at
// complete_ns of its record, if it ends with VERDICT_OK. A task may be marked by many streams and
// several times. Mark before the task ends where a bound counts tokens (bounds_tokens): a later
// mark is in the statistics, and no plan learns of it. All streams are marked or none. Threads,
// Blocks: as gpushare_token_stream_begin. Owns: nothing; the ticket must live until the call
// returns. Errors: INVALID_ARGUMENT a ticket or stream that is stale, or the ticket of a BE task;
// RESOURCE_EXHAUSTED 32768 marks wait for the ends of their tasks.
GPUSHARE_API gpushare_status gpushare_token_stream_mark(gpushare_runtime* runtime,
                                                        const gpushare_token_stream* streams,
                                                        uint32_t count,
                                                        gpushare_ticket ticket) GPUSHARE_NOEXCEPT;

// Ends the stream. Marks whose tasks have not ended count no more.
// Threads, Blocks: as gpushare_token_stream_begin. Owns: takes the stream; the value is stale
// afterwards.
// Errors: INVALID_ARGUMENT unknown, or ended before.
GPUSHARE_API gpushare_status gpushare_token_stream_end(
    gpushare_runtime* runtime, gpushare_token_stream stream) GPUSHARE_NOEXCEPT;

// --- submit --------------------------------------------------------------------------------------

// What happened to a task. Times are on the device's clock in nanoseconds; 0 for a step that the
// task did not reach. submit_ns is the time of the submit call.
typedef struct gpushare_completion_record {
  uint32_t struct_size;
  gpushare_verdict verdict;
  gpushare_ticket ticket;
  gpushare_query query;  // 0: none
  uint32_t app_id;       // gpushare_app_id
  uint32_t queue_id;
  uint32_t kernel_id;  // gpushare_kernel_id, 0: none
  gpushare_task_kind kind;
  int64_t submit_ns;
  int64_t admit_ns;      // the scheduler accepted it
  int64_t launch_ns;     // first launch call
  int64_t start_ns;      // first block starts, by the device; 0 where the device has no timestamps
  int64_t end_ns;        // last block ends, by the device
  int64_t complete_ns;   // the host saw the end
  int64_t predicted_ns;  // predicted duration alone on the whole device
  int64_t predicted_error_ns;  // error bar of predicted_ns
  // Device time, summed over its launches. Parts of the task on both sides of a split run at once,
  // so the sum may exceed end_ns - start_ns.
  int64_t measured_ns;
  int64_t evicted_ns;   // time between evictions and relaunches
  int64_t block_tasks;  // block tasks executed
  int32_t evictions;
  int32_t launches;
  gpushare_form form;  // of the last launch
  int32_t place;       // set of SMs of the last launch, an index; 0: the whole device
  gpushare_reason launch_reason;
  gpushare_reason hold_reason;  // why it last waited; NONE: it never did
  uint32_t beside_kernel_id;    // the first kernel that ran beside it; 0: none
  // CUresult of the CUDA call that failed it, or what it waited for; 0: none did.
  int32_t error_code;
  // VERDICT_FAILED: the first of its wait_tickets whose task did not end with VERDICT_OK. Value 0:
  // the task failed by itself. The ticket may be released already.
  gpushare_ticket failed_dependency;
  gpushare_verdict failed_dependency_verdict;  // how that task ended; PENDING: there is none
  int32_t reserved;
} gpushare_completion_record;
#define GPUSHARE_COMPLETION_RECORD_INIT GPUSHARE_STRUCT_INIT(gpushare_completion_record)

// Runs once, when the task is complete, on the thread that drives the flow: the scheduler's, or the
// one that polls or waits. It may submit and release. Waits, drains, polls and shutdowns return
// FAILED_PRECONDITION inside it. `record` lives for the call.
typedef void (*gpushare_completion_callback)(void* user, const gpushare_completion_record* record);

// Enqueues the caller's work on `stream`, a cudaStream_t; null on simulated devices. It runs once,
// on a thread that launches, or never if the task is never launched. It must enqueue and return: it
// must not wait, and of the library it may only call gpushare_enqueue_fail.
typedef void (*gpushare_enqueue_callback)(void* stream, void* user);

// One task. Fields that its kind does not use must be zero; comments of fields start with the kinds
// that use them.
typedef struct gpushare_task_options {
  uint32_t struct_size;
  gpushare_task_kind kind;  // DEFAULT: the kind of `kernel`
  // KERNEL, GRAPH, LIBRARY: not retained; must live until the submit returns.
  gpushare_kernel* kernel;
  // KERNEL: number of blocks of the original grid, 1 to 2^40; on CUDA devices 1 to 2^31 - 1.
  int64_t block_tasks;
  const void* arguments;          // KERNEL, LIBRARY: packed; copied at submit
  uint64_t arguments_size_bytes;  // at most 4096
  gpushare_query query;           // LC: 0 makes the task a query by itself; BE: must be 0
  // LC without a query: when the request was meant to arrive, at most an hour from now; 0: now. BE:
  // ignored.
  int64_t arrival_ns;
  int64_t declared_ns;      // LIBRARY, OPAQUE: caller's bound on the device time; 0: unknown
  void* copy_destination;   // MEMCPY: buffers stay the caller's until the ticket completes
  const void* copy_source;  // MEMCPY: both buffers may be null on the simulated device
  int64_t copy_size_bytes;  // MEMCPY: 1 to 2^42
  gpushare_copy_direction copy_direction;  // MEMCPY: must be given
  gpushare_bool copy_pageable;  // MEMCPY: 1 if the host memory is pageable, 0 if it is pinned
  // Tasks that must end with VERDICT_OK before this one starts; at most 8. If one ends otherwise,
  // this task fails and its record names the ticket. Tickets may be released after the submit.
  const gpushare_ticket* wait_tickets;
  void* const* wait_events;  // cudaEvent_t that the device waits for before it starts; at most 8
  uint32_t wait_ticket_count;
  uint32_t wait_event_count;
  // Event to record after it (cudaEvent_t), or null. A task with one is never fused. It is recorded
  // behind each launch of the task: an evicted task records it again, so wait for the ticket first.
  // If it cannot be recorded, the task runs and fails with the event's error code.
  void* signal_event;
  gpushare_bool detached;  // 1: the ticket is valid until the task is complete, then released
  int32_t reserved;        // must be 0
  gpushare_enqueue_callback enqueue;  // OPAQUE: must be given
  void* enqueue_user;
  gpushare_completion_callback callback;  // may be null
  void* callback_user;
  // KERNEL: the original grid, whose product is block_tasks; three zeros: {block_tasks, 1, 1}.
  int32_t grid_x;
  int32_t grid_y;
  int32_t grid_z;
  int32_t reserved2;  // must be 0
  // LC: the app's next query is submitted within this time of the end of this one, 1 ns to 100 ms,
  // as the next step of an engine is (docs/engines.md): BE work that would delay it too far does
  // not start in between. GPUSHARE_NO_NEXT: none follows, so that BE work may start at once; 0:
  // nothing is stated, and the library goes by earlier pauses. Of a query's tasks the one that
  // completes last with a statement counts, of an app the query that ends last. BE: must be 0.
  int64_t next_within_ns;
} gpushare_task_options;
// Of next_within_ns.
#define GPUSHARE_NO_NEXT (-1)
#define GPUSHARE_TASK_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_task_options)

// Submits a task of an LC app. If its lane is free, the task is on the device before the call
// returns. A null out_ticket makes the task detached. If the call fails, nothing was accepted and
// no callback runs.
// Threads: any, also in callbacks. Owns: the caller must release *out_ticket, unless it is
// detached.
// Blocks: never; it allocates nothing.
// Errors: INVALID_ARGUMENT the queue is of a BE app, a field is out of range, the arguments are too
// large, or a ticket or query is stale; RESOURCE_EXHAUSTED the app has tasks_max tasks, or 32 tasks
// with more than 512 bytes of arguments, or all callback slots are taken; FAILED_PRECONDITION shut
// down, or a graph in segments that an app of the other class submitted before; UNAVAILABLE the
// device is lost.
GPUSHARE_API gpushare_status gpushare_submit_lc(gpushare_queue* queue,
                                                const gpushare_task_options* options,
                                                gpushare_ticket* out_ticket) GPUSHARE_NOEXCEPT;

// Submits a task of a BE app. It runs when and where the policy finds room.
// Threads, Owns, Blocks, Errors: as gpushare_submit_lc, with LC and BE exchanged;
// FAILED_PRECONDITION also where nothing holds the task to the app's quota, or off the reserved
// SMs.
GPUSHARE_API gpushare_status gpushare_submit_be(gpushare_queue* queue,
                                                const gpushare_task_options* options,
                                                gpushare_ticket* out_ticket) GPUSHARE_NOEXCEPT;

// Fails the task whose enqueue callback runs on this thread: for callers that cannot throw. The
// task ends with VERDICT_FAILED behind what was enqueued, and error_code 0. The log names the
// ticket and `reason`, a UTF-8 text without a full stop at its end, which may be null. A second
// call changes nothing.
// Threads: one that is inside an enqueue callback. Owns: nothing. Blocks: no.
// Errors: FAILED_PRECONDITION outside of an enqueue callback.
GPUSHARE_API gpushare_status gpushare_enqueue_fail(const char* reason) GPUSHARE_NOEXCEPT;

typedef struct gpushare_region_options {
  uint32_t struct_size;
  int32_t reserved;  // must be 0
  // Upper bound on the device time of the region. 0: the longest of the queue's last regions, which
  // fades by a sixteenth with each; 10 ms before one has ended. Nothing ends a region that takes
  // longer (docs/engines.md).
  int64_t bound_ns;
  int64_t arrival_ns;  // LC: when the request arrived, as of a task; 0: now; BE: must be 0
  double input_size;   // LC: as in gpushare_query_options; 0: unknown; BE: must be 0
  // How long the call waits, by the device's clock, where the region may not start now; 0: not at
  // all. Its latency counts from the call, where no arrival is given.
  int64_t wait_ns;
  int64_t next_within_ns;  // LC: as in gpushare_task_options; BE: must be 0
} gpushare_region_options;
#define GPUSHARE_REGION_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_region_options)

// Begins a region: gives a stream on which the caller enqueues any work until gpushare_region_end.
// The region is one opaque task, and of an LC app one query. *out_stream is a cudaStream_t; null on
// simulated devices. A region that may not start within wait_ns is not queued: call again later.
// Sequence: gpushare_region_begin -> enqueue -> gpushare_region_end -> gpushare_ticket_wait ->
// gpushare_ticket_release.
// Threads: any, not in a callback. Owns: the caller must end the region, then release *out_ticket.
// Blocks: for wait_ns at most; it drives the flow where no scheduler thread does.
// Errors: as gpushare_submit_lc; FAILED_PRECONDITION inside a callback, or the BE app has a quota
// or an LC app a reservation, which nothing holds a region to; UNAVAILABLE the region may not start
// now. Causes: the runtime is quiesced; earlier tasks of the queue are not launched; for
// a BE region also LC work, work of its own queue, or a bound_ns above what the policy allows. A
// lost device is UNAVAILABLE too, and for ever: device_lost in gpushare_runtime_stats is 1 before
// any call returns that.
GPUSHARE_API gpushare_status gpushare_region_begin(gpushare_queue* queue,
                                                   const gpushare_region_options* options,
                                                   gpushare_ticket* out_ticket,
                                                   void** out_stream) GPUSHARE_NOEXCEPT;

// How much BE work may be on the device now, in front of the next LC query: as long a BE region may
// begin, and so much may an open one have launched and not complete. 0: none, because LC work runs
// or the runtime is quiesced. It costs a few nanoseconds, for a check before each launch. A region
// of one launch that is longer begins where the idle time of late has saved for it, or the tail
// accounts (docs/glossary.md) have credit for it; else it is UNAVAILABLE.
// Sequence: gpushare_region_begin -> for each launch: gpushare_region_room, launch or wait ->
// gpushare_region_end.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: FAILED_PRECONDITION shut down; UNAVAILABLE the device is lost.
GPUSHARE_API gpushare_status gpushare_region_room(gpushare_runtime* runtime,
                                                  int64_t* out_room_ns) GPUSHARE_NOEXCEPT;

// Says that nothing more is enqueued on the region's stream. The ticket completes when the stream
// has done its work.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: INVALID_ARGUMENT not a region, or ended before; RESOURCE_EXHAUSTED too many launches are
// in flight: end it again later.
GPUSHARE_API gpushare_status gpushare_region_end(gpushare_runtime* runtime,
                                                 gpushare_ticket region) GPUSHARE_NOEXCEPT;

// --- tickets -------------------------------------------------------------------------------------

// Waits until the task is complete. The result is OK for every verdict: gpushare_ticket_record
// says how the task ended. If another thread releases the ticket during the wait, the wait goes on
// and its result is the same; the record is gone then.
// Threads: any, not in a callback. Owns: nothing. Blocks: until deadline_ns at most;
// GPUSHARE_NEVER: no limit. Without a scheduler thread it drives the flow.
// Errors: DEADLINE_EXCEEDED; INVALID_ARGUMENT a stale ticket; FAILED_PRECONDITION inside a
// callback.
GPUSHARE_API gpushare_status gpushare_ticket_wait(gpushare_runtime* runtime, gpushare_ticket ticket,
                                                  int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Submits a task of an LC app and waits until it is complete: gpushare_submit_lc,
// gpushare_ticket_wait and gpushare_ticket_release in one call. Like the wait it is OK for every
// verdict, which *out_verdict gets (may be null); PENDING if the call fails. *out_ticket (may be
// null) is 0 if the task ended with VERDICT_OK, or was not accepted. Otherwise the ticket is the
// caller's: to read its record or, after DEADLINE_EXCEEDED, to wait again. Without out_ticket a
// task that the call does not wait for goes on, and its record is lost.
// Threads: any, not in a callback. Owns: the caller must release *out_ticket where it is not 0.
// Blocks: until deadline_ns at most; GPUSHARE_NEVER: no limit. Without a scheduler thread it drives
// the flow.
// Errors: those of gpushare_submit_lc, where nothing was accepted; DEADLINE_EXCEEDED the task was
// accepted and goes on; INVALID_ARGUMENT task_options.detached is 1, or a negative deadline;
// FAILED_PRECONDITION inside a callback.
GPUSHARE_API gpushare_status gpushare_run_lc(gpushare_queue* queue,
                                             const gpushare_task_options* options,
                                             int64_t deadline_ns, gpushare_verdict* out_verdict,
                                             gpushare_ticket* out_ticket) GPUSHARE_NOEXCEPT;

// Says whether the task is complete. It does not drive the flow.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: INVALID_ARGUMENT a stale ticket.
GPUSHARE_API gpushare_status gpushare_ticket_poll(gpushare_runtime* runtime, gpushare_ticket ticket,
                                                  gpushare_bool* out_complete) GPUSHARE_NOEXCEPT;

// Copies the record of a complete task.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: FAILED_PRECONDITION the task is not complete; INVALID_ARGUMENT a stale ticket.
GPUSHARE_API gpushare_status
gpushare_ticket_record(gpushare_runtime* runtime, gpushare_ticket ticket,
                       gpushare_completion_record* out_record) GPUSHARE_NOEXCEPT;

// Adds a completion callback to a task that was submitted without one. If the task is complete
// already, the callback runs at once, on this thread. A ticket has at most one callback or eventfd.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: INVALID_ARGUMENT a stale ticket; FAILED_PRECONDITION the ticket has a callback or
// eventfd; RESOURCE_EXHAUSTED all callback slots are taken.
GPUSHARE_API gpushare_status gpushare_ticket_set_callback(gpushare_runtime* runtime,
                                                          gpushare_ticket ticket,
                                                          gpushare_completion_callback callback,
                                                          void* user) GPUSHARE_NOEXCEPT;

// Makes a Linux eventfd that becomes readable, with value 1, when the task is complete.
// Threads: any. Owns: the caller closes *out_fd, at any time: the library writes to its own
// duplicate.
// Blocks: no.
// Errors: as gpushare_ticket_set_callback; RESOURCE_EXHAUSTED also when no file descriptor is left.
GPUSHARE_API gpushare_status gpushare_ticket_eventfd(gpushare_runtime* runtime,
                                                     gpushare_ticket ticket,
                                                     int* out_fd) GPUSHARE_NOEXCEPT;

// Asks the library not to run the task, or to evict it. OK means that the request came in time to
// try. A task that is not launched never runs and ends with VERDICT_CANCELLED. A task on the device
// leaves at its next block-task boundary and ends with VERDICT_CANCELLED; its record says how much
// it did. If all of its work was done first, it ends with VERDICT_OK. A failed launch or a lost
// device still gives its own verdict.
// Threads: any. Owns: the ticket stays the caller's. Blocks: until the current pass of the flow
// ends.
// Errors: FAILED_PRECONDITION the task is complete, or is on the device and cannot be evicted;
// INVALID_ARGUMENT a stale ticket.
GPUSHARE_API gpushare_status gpushare_ticket_cancel(gpushare_runtime* runtime,
                                                    gpushare_ticket ticket) GPUSHARE_NOEXCEPT;

// Gives the ticket back; its value is stale at once, for every function. A task that is not
// complete goes on, and so do tasks that wait for it. The task's slot is free when the task is
// complete and no task waits for it any more.
// Threads: any. Owns: takes the ticket, unless it fails. Blocks: no.
// Errors: INVALID_ARGUMENT a stale or detached ticket; FAILED_PRECONDITION the ticket is of a
// region that has not ended.
GPUSHARE_API gpushare_status gpushare_ticket_release(gpushare_runtime* runtime,
                                                     gpushare_ticket ticket) GPUSHARE_NOEXCEPT;

// --- observation ---------------------------------------------------------------------------------

typedef struct gpushare_device_info {
  uint32_t struct_size;
  gpushare_bool simulated;
  const char* name;            // of the device, as in the options; lives as long as the library
  const char* profile;         // name of the profile; lives as long as the runtime
  const char* policy;          // policy at creation; lives as long as the runtime
  gpushare_bool virtual_time;  // the clock moves only when the flow is driven
  gpushare_bool partitions;    // the device can confine work to a set of SMs
  gpushare_bool eviction;      // the device can evict worker launches
  gpushare_bool timestamps;    // records have start_ns and end_ns
  int32_t sm_count;
  int32_t sm_granularity;  // partitions are made of groups of this many SMs
  int32_t lanes_max;       // most streams of the library
  int32_t places_max;      // most sets of SMs, the whole device included
  int32_t threads_per_sm;
  int32_t registers_per_sm;
  int32_t shared_memory_per_sm_bytes;
  int32_t blocks_per_sm;
  int64_t launch_latency_ns;
  int64_t completion_latency_ns;
  int64_t eviction_write_latency_ns;
  double pinned_bytes_per_ns;  // copy rate of pinned host memory
} gpushare_device_info;
#define GPUSHARE_DEVICE_INFO_INIT GPUSHARE_STRUCT_INIT(gpushare_device_info)

// What the runtime's device is and can do.
// Threads: any. Owns: nothing; each string says how long it lives. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_device_info_get(
    gpushare_runtime* runtime, gpushare_device_info* out_info) GPUSHARE_NOEXCEPT;

// What the library guarantees for a task, as bits.
enum gpushare_guarantee_bit {
  GPUSHARE_GUARANTEE_EVICTABLE = 1,    // it leaves at its next block-task boundary for LC work
  GPUSHARE_GUARANTEE_CONFINABLE = 2,   // it stays on the SMs of its place
  GPUSHARE_GUARANTEE_TIMESTAMPED = 4,  // its record has the start and end by the device
  GPUSHARE_GUARANTEE_DIVISIBLE = 8     // it may be cut into slices or segments
};

// The guarantees, as bits, for tasks of a kind on this device, or for tasks of `kernel` if it is
// not null. `kind` is then DEFAULT or the kernel's kind.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_guarantees(gpushare_runtime* runtime, gpushare_task_kind kind,
                                                 gpushare_kernel* kernel,
                                                 uint32_t* out_guarantees) GPUSHARE_NOEXCEPT;

// Number and quantiles of durations, in nanoseconds.
typedef struct gpushare_latency_summary {
  int64_t count;
  int64_t p50_ns;
  int64_t p99_ns;
  int64_t max_ns;
} gpushare_latency_summary;

// Counters of a runtime since its creation.
typedef struct gpushare_runtime_stats {
  uint32_t struct_size;
  gpushare_bool simulated;
  int64_t ticks;  // passes of the flow
  int64_t plans;
  int64_t launches;
  int64_t fast_path_launches;  // LC launches by the submitting thread
  int64_t evictions;
  int64_t evictions_blocked;  // eviction writes that did not take effect in time
  int64_t hung;               // launches that never ended
  int64_t busy_sm_ns;         // sum over SMs of their busy time
  int64_t tasks_pending;
  int64_t prediction_samples;                 // durations that solo predictions were compared with
  double prediction_error;                    // mean absolute relative error of solo predictions
  gpushare_latency_summary eviction_latency;  // from the eviction call until the last worker left
  gpushare_latency_summary plan_time;         // host time of the plan stage; 0 in virtual time
  // An error made the device unusable, or launches hung until a class of work had no lane left.
  gpushare_bool device_lost;
  int32_t app_count;
} gpushare_runtime_stats;
#define GPUSHARE_RUNTIME_STATS_INIT GPUSHARE_STRUCT_INIT(gpushare_runtime_stats)

// Copies the counters of a runtime.
// Threads: any. Owns: nothing. Blocks: briefly.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_runtime_stats_get(
    gpushare_runtime* runtime, gpushare_runtime_stats* out_stats) GPUSHARE_NOEXCEPT;

// Counters of an app since its creation.
typedef struct gpushare_app_stats {
  uint32_t struct_size;
  gpushare_app_class app_class;
  int64_t submitted;
  int64_t completed;
  int64_t failed;
  int64_t dropped;
  int64_t cancelled;
  int64_t rejected;  // refused at submit, for any reason
  int64_t evictions;
  int64_t queue_depth;  // tasks submitted and not complete
  // Device time, summed over the launches of its tasks. Launches run at once, so apps together may
  // have more of it than time has passed.
  int64_t device_ns;
  int64_t work_ns;                   // predicted whole-device time of its completed work
  int64_t block_tasks;               // block tasks executed
  gpushare_latency_summary latency;  // from submit (queries: from arrival) to completion
  int64_t queries_open;              // now: gpushare_query_begin without its end, or not done
  int64_t queries_idle;              // of these: over idle_timeout_ns without work; no load
  int64_t regions_open;              // now: begun, and not complete
  int64_t regions_overdue;           // of these: open for too long (idle_timeout_ns); no load
} gpushare_app_stats;
#define GPUSHARE_APP_STATS_INIT GPUSHARE_STRUCT_INIT(gpushare_app_stats)

// Copies the counters of an app.
// Threads: any. Owns: nothing. Blocks: briefly.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status
gpushare_app_stats_get(gpushare_app* app, gpushare_app_stats* out_stats) GPUSHARE_NOEXCEPT;

// What an app was promised and what it got: an LC app over a window of its last 4,096 to 8,192
// queries, a BE app since its creation. Fields of the other class are 0.
typedef struct gpushare_app_guarantee {
  uint32_t struct_size;
  gpushare_app_class app_class;
  int64_t target_ns;  // promised, as in gpushare_app_options; 0: none
  double p99_bound;
  double p50_bound;
  int64_t queries;  // in the window
  int64_t p50_ns;   // delivered, from arrival to completion; to 1.6 %
  int64_t p99_ns;
  double p99_over_alone;  // p99_ns / p99_alone_ns, if p99_over_alone_known
  // Share of the window above the target, or above p99_bound x p99_alone_ns, if late_share_known.
  // The promise is kept up to 0.01.
  double late_share;
  // The tail account (docs/glossary.md): queries that BE work may still make late; negative: a
  // debt.
  double tail_credit;
  int64_t queries_late_for_be;  // queries that were late and met BE work on credit, since creation
  // BE: time that the planner held the app's queue heads, for GPUSHARE_REASON_HOLD_HEADROOM +
  // index.
  int64_t held_ns[GPUSHARE_HOLD_REASONS];
  int64_t p99_alone_ns;  // as the app states it; 0: unknown
  // 0: p99_over_alone, or late_share, is unknown and reads 0. No query has ended, or the app states
  // no p99 alone; for late_share it also states no target.
  gpushare_bool p99_over_alone_known;
  gpushare_bool late_share_known;
  // The library's own estimate of p99 alone: that of the queue that the app would have alone on the
  // same arrivals. No BE work is held for it. 0: no query has ended.
  int64_t p99_alone_estimate_ns;
  double p99_alone_error;  // standard error of the estimate, as a share of it
  // 1: a query alone on an idle device takes longer than p99_bound x p99_alone_ns. BE work then
  // keeps the bound on the estimate, until gpushare_app_update states another p99 alone.
  gpushare_bool bound_lost;
  // 1: a query alone on an idle device takes at least target_ns. Its late queries then hold no BE
  // work back, until gpushare_app_update states a longer target.
  gpushare_bool target_lost;
  // How long the app has yielded to LC apps of higher priority, since its creation. The estimate
  // above and the accounts of BE work are without that time; p50_ns, p99_ns and late_share have it.
  int64_t yielded_ns;
  int64_t next_lapsed;  // its statements of a next query (next_within_ns) that did not come true
  // Its open token streams, and of their last tokens: from an arrival to the first one (TTFT) and
  // between two (TBT), how many and how long. With bounds_tokens, p99_over_alone and late_share are
  // of the latter.
  int64_t token_streams;
  int64_t first_tokens;
  int64_t ttft_p50_ns;
  int64_t ttft_p99_ns;
  int64_t token_distances;
  int64_t tbt_p50_ns;
  int64_t tbt_p99_ns;
  // Of a periodic app in the plan of partitions in force; 0: it has no partition. No job takes
  // longer than response_bound_ns from its arrival to its end, and the rest counts since the plan:
  // the longest response, the jobs that have ended, those that ended behind their deadline, and
  // those that ran longer than their worst case.
  int32_t partition_sms;
  int32_t reserved;  // 0
  int64_t response_bound_ns;
  int64_t response_ns_max;
  int64_t jobs;
  int64_t deadlines_missed;
  int64_t overruns;
} gpushare_app_guarantee;
#define GPUSHARE_APP_GUARANTEE_INIT GPUSHARE_STRUCT_INIT(gpushare_app_guarantee)

// Copies what an app was promised and what it got.
// Threads: any. Owns: nothing. Blocks: briefly.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_app_guarantee_get(
    gpushare_app* app, gpushare_app_guarantee* out_guarantee) GPUSHARE_NOEXCEPT;

// The number that records, events and metrics use for an app or a kernel. 0 for an invalid handle.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: none.
GPUSHARE_API uint32_t gpushare_app_id(gpushare_app* app) GPUSHARE_NOEXCEPT;
GPUSHARE_API uint32_t gpushare_kernel_id(gpushare_kernel* kernel) GPUSHARE_NOEXCEPT;

// Writes all counters as OpenMetrics text. The label `simulated` of each sample is "true" on a
// simulated device. A text function: see gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: briefly.
// Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_metrics_text(gpushare_runtime* runtime, char* buffer,
                                                   size_t buffer_size_bytes,
                                                   size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

typedef struct gpushare_trace_options {
  uint32_t struct_size;
  int32_t reserved;            // must be 0
  const char* perfetto_path;   // null: no Perfetto trace
  const char* event_log_path;  // null: no event log
  // Events kept in memory, 64 bytes each; 0: 2^20. Further events are dropped and counted. With an
  // event log at most 2^22 are kept, as many as a file holds.
  int64_t records_max;
} gpushare_trace_options;
#define GPUSHARE_TRACE_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_trace_options)

typedef struct gpushare_trace_summary {
  uint32_t struct_size;
  int32_t reserved;
  int64_t records;
  int64_t dropped;           // events for which there was no room
  uint64_t decision_digest;  // equal for two runs with the same decisions
} gpushare_trace_summary;
#define GPUSHARE_TRACE_SUMMARY_INIT GPUSHARE_STRUCT_INIT(gpushare_trace_summary)

// Starts to record events in memory. Sequence: gpushare_trace_start -> work -> gpushare_trace_stop.
// Threads: any. Owns: nothing. Blocks: while it allocates the memory.
// Errors: INVALID_ARGUMENT no path, one path for both files, or records_max out of range; NOT_FOUND
// or UNAVAILABLE a path that cannot be written; FAILED_PRECONDITION a trace is running.
GPUSHARE_API gpushare_status gpushare_trace_start(
    gpushare_runtime* runtime, const gpushare_trace_options* options) GPUSHARE_NOEXCEPT;

// Stops the trace and writes its files. out_summary may be null.
// Threads: any, not in a callback. Owns: nothing. Blocks: while it writes the files.
// Errors: FAILED_PRECONDITION no trace is running; RESOURCE_EXHAUSTED no memory is left, and the
// trace goes on; others when a file cannot be written: the other one is, and the trace is over.
GPUSHARE_API gpushare_status gpushare_trace_stop(
    gpushare_runtime* runtime, gpushare_trace_summary* out_summary) GPUSHARE_NOEXCEPT;

// One record of the event log. docs/abi.md says what the fields a to d mean for each type.
typedef int32_t gpushare_event_type;
enum gpushare_event_type_value {
  GPUSHARE_EVENT_NONE = 0,
  GPUSHARE_EVENT_APP_CREATED = 1,
  GPUSHARE_EVENT_SUBMITTED = 2,
  GPUSHARE_EVENT_ADMITTED = 3,
  GPUSHARE_EVENT_REJECTED = 4,  // reserved: no library writes it
  GPUSHARE_EVENT_LAUNCHED = 5,
  GPUSHARE_EVENT_FAST_PATH_LAUNCHED = 6,
  GPUSHARE_EVENT_EVICTED = 7,
  GPUSHARE_EVENT_PART_DONE = 8,
  GPUSHARE_EVENT_COMPLETED = 9,
  GPUSHARE_EVENT_HELD = 10,
  GPUSHARE_EVENT_QUERY_BEGUN = 11,
  GPUSHARE_EVENT_QUERY_ENDED = 12,
  GPUSHARE_EVENT_QUEUE_DEPTH = 13,
  GPUSHARE_EVENT_QUOTA_CHANGED = 14,
  GPUSHARE_EVENT_DEVICE_LOST = 15,
  GPUSHARE_EVENT_LANE_ABANDONED = 16,
  GPUSHARE_EVENT_WAITS = 17,               // serves replay, as the next two do
  GPUSHARE_EVENT_QUERY_BEGIN_CALLED = 18,  // by the calling thread
  GPUSHARE_EVENT_QUERY_END_CALLED = 19,
  // What a plan chose between: the choice and the runner-up.
  GPUSHARE_EVENT_CHOICE = 20,
  // What both do to latencies; behind the CHOICE that it is about.
  GPUSHARE_EVENT_CHOICE_SHIFT = 21,
  GPUSHARE_EVENT_APP_UPDATED = 22,
  GPUSHARE_EVENT_NEXT_STATED = 23  // next_within_ns of a submission; serves replay
};

typedef struct gpushare_event {
  uint32_t struct_size;
  gpushare_event_type type;
  int64_t time_ns;
  uint64_t id;  // number of a ticket, query, app or lane
  int64_t a;
  int64_t b;
  int64_t c;
  int64_t d;
  uint32_t app_id;
  uint32_t kernel_id;
  int32_t place;  // index of a set of SMs; -1: none
  gpushare_reason reason;
  int32_t detail;  // form of a launch, outcome of a part, verdict of a completion, kind of a choice
  gpushare_app_class app_class;
} gpushare_event;
#define GPUSHARE_EVENT_INIT GPUSHARE_STRUCT_INIT(gpushare_event)

// The name of an event type: "launched", "evicted". "unknown" for any other number.
// Threads: any. Owns: nothing; the string is static. Blocks: no.
// Errors: none.
GPUSHARE_API const char* gpushare_event_type_name(gpushare_event_type type) GPUSHARE_NOEXCEPT;

// Reads a whole event log file. *out_count is its number of events.
// Threads: any. Owns: the caller gets one reference of *out_log. Blocks: while it reads.
// Errors: NOT_FOUND; DATA_LOSS or INVALID_ARGUMENT the file is truncated, corrupt or too large.
GPUSHARE_API gpushare_status gpushare_event_log_open(const char* path, gpushare_event_log** out_log,
                                                     int64_t* out_count) GPUSHARE_NOEXCEPT;

// Copies event number `index`. The first is 0; events are in order of time.
// Threads: any. Owns: nothing. Blocks: no.
// Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_event_log_get(gpushare_event_log* log, int64_t index,
                                                    gpushare_event* out_event) GPUSHARE_NOEXCEPT;

// Adds one reference.
// Threads: any. Owns: the caller gets one more reference. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_event_log_retain(gpushare_event_log* log) GPUSHARE_NOEXCEPT;

// Gives one reference back. Null is allowed.
// Threads: any. Owns: takes one reference. Blocks: no.
// Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_event_log_release(gpushare_event_log* log) GPUSHARE_NOEXCEPT;

// --- replay --------------------------------------------------------------------------------------

// Opens a runtime that puts the inputs of an event log through its scheduler again. Its device
// executes nothing and gives the answers that the log recorded. `options` must be those of the
// recorded run, with a device in virtual time; the policy may be another. `drive` is not read: the
// caller drives the runtime. The log must be from before the first submission, and without drops.
// Sequence: gpushare_event_log_open -> gpushare_replay_open -> apps, queues, kernels, reservations,
// in the order of the recorded run, and no submission -> gpushare_replay_run.
// Not replayed, so that the replay differs there: cancel, quiesce, shutdown, changes of the policy,
// regions, queries whose graph was cut at kernel nodes, and apps or kernels that were made after
// the first submission.
// Threads: any. Owns: the caller gets one reference of *out_runtime; the log may be released.
// Blocks: while it reads the profile.
// Errors: INVALID_ARGUMENT the log is empty, dropped events, begins inside a run or is not of
// virtual time, or the device is not; others as gpushare_runtime_create.
GPUSHARE_API gpushare_status gpushare_replay_open(gpushare_event_log* log,
                                                  const gpushare_runtime_options* options,
                                                  gpushare_runtime** out_runtime) GPUSHARE_NOEXCEPT;

// A replay ends with the log or at the first event that differs. Decisions are launches, evictions,
// holds and completions. CHOICE and QUEUE_DEPTH events are not compared.
typedef struct gpushare_replay_result {
  uint32_t struct_size;
  gpushare_bool matches;    // 1: every event came out the same
  int64_t events;           // of the log
  int64_t events_equal;     // of these, from the start; the next one is the first that differs
  int64_t decisions;        // of the log
  int64_t decisions_equal;  // of these, before the first event that differs
} gpushare_replay_result;
#define GPUSHARE_REPLAY_RESULT_INIT GPUSHARE_STRUCT_INIT(gpushare_replay_result)

// Replays the whole log, once. A replay that differs is a result, not an error. Whoever submits to
// the runtime or polls it meanwhile makes the replay differ.
// Threads: any, not in a callback. Owns: nothing. Blocks: while it replays.
// Errors: INVALID_ARGUMENT; FAILED_PRECONDITION the runtime is not of gpushare_replay_open, or its
// log was replayed already.
GPUSHARE_API gpushare_status gpushare_replay_run(
    gpushare_runtime* runtime, gpushare_replay_result* out_result) GPUSHARE_NOEXCEPT;

// The first difference of a replay that has run, as a sentence; empty if there is none. A text
// function: see gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: briefly.
// Errors: OUT_OF_RANGE, INVALID_ARGUMENT; FAILED_PRECONDITION no replay of the runtime has run.
GPUSHARE_API gpushare_status gpushare_replay_difference(gpushare_runtime* runtime, char* buffer,
                                                        size_t buffer_size_bytes,
                                                        size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

// --- calibration ---------------------------------------------------------------------------------

// A kernel to measure and one sample task of it. The task runs many times, so its result must not
// depend on how often it runs. Only block_tasks, the grid and the arguments of the task are read. A
// null task has no arguments.
typedef struct gpushare_calibration_item {
  const gpushare_kernel_options* kernel;
  const gpushare_task_options* task;
} gpushare_calibration_item;

// A fused kernel of two items. It has no struct_size: it never changes.
typedef struct gpushare_calibration_fused {
  const gpushare_fused_kernel_options* fused;  // tensor_part and cuda_part must be null here
  uint32_t tensor_item;                        // index into the options' items
  uint32_t cuda_item;                          // index into the options' items
  // Local memory of a thread; above 0 it spills registers and is not measured.
  int32_t local_bytes;
  uint32_t reserved;  // must be 0
} gpushare_calibration_fused;

// What bounds a kernel's speed. COMPUTE: it grows with the number of SMs. MEMORY: it stops growing
// at some number of SMs.
typedef int32_t gpushare_intensity;
enum gpushare_intensity_value {
  GPUSHARE_INTENSITY_UNKNOWN = 0,
  GPUSHARE_INTENSITY_COMPUTE = 1,
  GPUSHARE_INTENSITY_MEMORY = 2
};

// The measurements of one kernel. Pointers live for the callback.
typedef struct gpushare_kernel_calibration {
  uint32_t struct_size;
  gpushare_task_kind kind;
  const char* name;
  int64_t block_tasks;       // of the sample task
  int64_t solo_ns;           // one launch of the original form, alone on the whole device
  int64_t worker_solo_ns;    // one launch of the worker form; 0: it has none
  int64_t block_task_ns;     // one block task alone, with all workers of the SM resident
  int64_t eviction_p50_ns;   // from the eviction call to the end of the evicted launch
  int64_t eviction_p99_ns;   // 0: not evictable
  double block_task_spread;  // relative standard deviation of block_task_ns; 0: none seen
  double worker_overhead;    // extra time of the worker form, 0.003 = 0.3 %; below 0: it is faster
  double saturating_occupancy;
  const gpushare_speed_point* speed;  // ascending by sms
  const int32_t* knees;               // SM counts at which the kernel is unusually fast
  uint32_t speed_count;
  uint32_t knee_count;
  int32_t workers_per_sm_max;  // M of CapSM
  gpushare_bool kept;          // 1: from the checkpoint, not measured now
  int64_t slice_block_tasks;   // the smallest slice within slice_overhead_max; 0: none found
  double slice_overhead;       // extra time of the task in slices of that size, over one launch
  // The fewest workers an SM that give 99 % of full speed; 0: unknown.
  int32_t workers_per_sm_least;
  gpushare_intensity intensity;
} gpushare_kernel_calibration;
#define GPUSHARE_KERNEL_CALIBRATION_INIT GPUSHARE_STRUCT_INIT(gpushare_kernel_calibration)

typedef struct gpushare_calibration_progress {
  uint32_t struct_size;
  int32_t done;  // steps done of `total`: the device, each kernel, each pair, each fused kernel
  int32_t total;
  int32_t reserved;
  const char* what;  // "device", or the name of what is measured now or was just measured
  const gpushare_kernel_calibration* kernel;  // the kernel that was just measured, else null
  // After the last kernel: a sentence about something that could not be measured. Else null.
  const char* note;
} gpushare_calibration_progress;
#define GPUSHARE_CALIBRATION_PROGRESS_INIT GPUSHARE_STRUCT_INIT(gpushare_calibration_progress)

// Runs many times, between measurements, on the thread that called gpushare_calibrate. It must not
// call the library.
typedef void (*gpushare_calibration_callback)(void* user,
                                              const gpushare_calibration_progress* progress);

typedef struct gpushare_calibration_options {
  uint32_t struct_size;
  int32_t device_ordinal;  // which GPU, from 0
  const char* device;      // as in gpushare_runtime_options
  // Where values that are not measured come from; null: the built-in profile.
  const char* profile_path;
  const char* output_path;                 // the profile to write; must be given
  const gpushare_calibration_item* items;  // must be given
  // May be null. To stop soon, with CANCELLED, another thread or a signal handler sets it to a
  // non-zero value.
  const volatile int32_t* cancel;
  const char* sim_tier;    // as in gpushare_runtime_options
  const char* sim_faults;  // as in gpushare_runtime_options
  uint64_t seed;           // 0: 1
  int64_t kernel_time_ns;  // device time for each kernel; 0: 30 s
  int64_t hang_limit_ns;   // limit of one launch; 0: 10 s
  // Buffers to measure the rates of copies with. Without them the profile keeps its rates. They may
  // be null on simulated devices. pageable_buffer is ordinary host memory.
  void* device_buffer;
  void* pinned_buffer;
  void* pageable_buffer;
  int64_t buffer_size_bytes;  // size of each buffer; 128 MB is enough
  uint32_t item_count;
  int32_t repeats;    // samples of each duration, whose median is taken; 0: 7
  int32_t evictions;  // evictions of each kernel, at most 128; 0: 100
  // 1: continue from the checkpoint, output_path with ".partial", if it exists.
  gpushare_bool resume;
  const gpushare_calibration_fused* fused;  // may be null
  // Device time of this call; 0: no limit. Notes name what is not reached, and the checkpoint
  // stays.
  int64_t total_time_ns;
  double slice_overhead_max;  // limit for the smallest slice, 0.02 = 2 %; 0: 0.02
  uint32_t fused_count;
  uint32_t reserved;  // must be 0
  // A samples file (docs/samples.md) that measured durations are appended to, repeat by repeat;
  // null: none. With it, more sizes, load ratios and copies are measured. FAILED_PRECONDITION if
  // the file is of another GPU.
  const char* samples_path;
} gpushare_calibration_options;
#define GPUSHARE_CALIBRATION_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_calibration_options)

// Measures a device and kernels on it, and writes their profile (docs/calibration.md). The device
// must be idle, and no runtime may use it. A checkpoint is written after the durations of each
// kernel, and after other measurements at most once a second.
// Threads: any, not in a callback. Owns: nothing. Blocks: about kernel_time_ns for each kernel.
// Errors: INVALID_ARGUMENT; CANCELLED `cancel` was set; DEADLINE_EXCEEDED a launch hangs;
// UNAVAILABLE no such device, or it was lost; DATA_LOSS the profile or the checkpoint is corrupt;
// FAILED_PRECONDITION the checkpoint is of another GPU, or the sample work takes no time on the
// device. After CANCELLED and DEADLINE_EXCEEDED the checkpoint stays.
GPUSHARE_API gpushare_status gpushare_calibrate(const gpushare_calibration_options* options,
                                                gpushare_calibration_callback progress,
                                                void* user) GPUSHARE_NOEXCEPT;

typedef struct gpushare_pre_run_options {
  uint32_t struct_size;
  int32_t device_ordinal;  // which GPU, from 0
  const char* device;      // as in gpushare_runtime_options
  // Must be given, of kind KERNEL. Its worker or slice form, if it has one, runs a part of the
  // task.
  const gpushare_kernel_options* kernel;
  // A sample of the kernel, as in gpushare_calibration_item; must be given.
  const gpushare_task_options* task;
  int64_t hang_limit_ns;  // limit of one launch; 0: 10 s
} gpushare_pre_run_options;
#define GPUSHARE_PRE_RUN_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_pre_run_options)

// Runs some block tasks of a kernel, a few times, and counts what they do (Kernelet 4.4), with the
// GPU's own counters: *out_counters is what gpushare_kernel_options.counters takes. It reads them
// through CUPTI, NVIDIA's profiling library, which is opened at run time (docs/counters.md). The
// device must be idle, no runtime may use it, and no profiler may be attached to the process. CUPTI
// has one session a process, so that one pre-run counts at a time and another one is refused. The
// sample is as long as a launch of the kernel usually is, or longer: of a long one, about 2 ms run.
//   gpushare_kernel_pre_run -> kernel_options.counters = &counters -> gpushare_kernel_register
// Threads: any, not in a callback. Owns: nothing. Blocks: about a second.
// Errors: INVALID_ARGUMENT; PERMISSION_DENIED the driver lets only administrators count (the
// message says how to allow it); UNAVAILABLE no such device, no CUPTI, or a GPU that cannot be
// profiled; UNIMPLEMENTED the device counts nothing (every device but CUDA); FAILED_PRECONDITION
// the sample takes no time, or another profiler or pre-run has the counters; DEADLINE_EXCEEDED a
// launch hangs.
GPUSHARE_API gpushare_status gpushare_kernel_pre_run(const gpushare_pre_run_options* options,
                                                     gpushare_kernel_counters* out_counters)
    GPUSHARE_NOEXCEPT;

// --- models --------------------------------------------------------------------------------------

// A prediction of a model beside what was measured. No such row has trained the model. Pointers
// live for the callback.
typedef struct gpushare_judged_prediction {
  uint32_t struct_size;
  uint32_t reserved;
  const char* family;   // what is predicted: "workers", "pinned copies", "fused kernels"
  const char* model;    // which method predicts it
  const char* subject;  // the kernel, copy or query
  double predicted;     // ns; of fused kernels and pairs a ratio
  double measured;
} gpushare_judged_prediction;
#define GPUSHARE_JUDGED_PREDICTION_INIT GPUSHARE_STRUCT_INIT(gpushare_judged_prediction)

// Runs once for each prediction, on the thread that called gpushare_evaluate_models. It must not
// call the library.
typedef void (*gpushare_judge_callback)(void* user, const gpushare_judged_prediction* prediction);

// Trains the models with one part of a samples file (docs/samples.md) and reports what they predict
// for the other part.
// Threads: any, not in a callback. Owns: nothing. Blocks: while it reads and trains.
// Errors: INVALID_ARGUMENT it is no samples file, or too large; NOT_FOUND no such file; UNAVAILABLE
// it cannot be read; FAILED_PRECONDITION called in a callback; INTERNAL the callback threw.
GPUSHARE_API gpushare_status gpushare_evaluate_models(const char* samples_path,
                                                      gpushare_judge_callback judge,
                                                      void* user) GPUSHARE_NOEXCEPT;

// --- placement -----------------------------------------------------------------------------------

// In `running` and out_gpu of gpushare_place: on no GPU.
#define GPUSHARE_NO_GPU (-1)

// How BE instances find a GPU (docs/placement.md, Algorithms).
typedef int32_t gpushare_place_algorithm;
enum gpushare_place_algorithm_value {
  GPUSHARE_PLACE_ASSIGNMENT = 0,  // the flow of the largest value, or greedy where that is better
  GPUSHARE_PLACE_GREEDY = 1,      // pair by pair, the most valuable first
  GPUSHARE_PLACE_FIRST_FIT = 2,   // in the order of the arrays, on the first GPU that takes them
  GPUSHARE_PLACE_RANDOM = 3       // on a random GPU that takes them
};

// How several BE instances share one GPU.
typedef int32_t gpushare_place_together;
enum gpushare_place_together_value {
  GPUSHARE_PLACE_IN_TURNS = 0,  // one at a time, as in Baymax 7.6
  GPUSHARE_PLACE_AT_ONCE = 1    // all resident
};

typedef struct gpushare_place_options {
  uint32_t struct_size;
  gpushare_place_algorithm algorithm;
  gpushare_place_together together;
  int32_t be_per_gpu;           // most BE instances on a GPU, 1 to 64; 0: 1
  gpushare_bool ignore_bounds;  // 1: also beside LC apps whose bound is predicted to break
  int32_t reserved;             // must be 0
  int64_t moves_max;            // most running BE instances that change their GPU
  uint64_t seed;                // 0: 1
  // With how many error bars a predicted p99 counts, at most 100; 0: 1; -1: none.
  double error_bars;
  // How many error bars a BE rate loses in the value, at most 100; 0: 1; -1: none.
  double risk;
  // What a GPU with nothing on it is worth, in BE rate, at most 100; 0: 0.05; -1: nothing.
  double free_gpu;
} gpushare_place_options;
#define GPUSHARE_PLACE_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_place_options)

// A group of GPUs of one memory. All GPUs of a placement are of one model.
typedef struct gpushare_place_gpu {
  uint32_t struct_size;
  int32_t count;         // GPUs of the group, 1 or more; must be given
  const char* name;      // of the group, for messages; another one for each
  int64_t memory_bytes;  // of each GPU, 1 or more; must be given
} gpushare_place_gpu;
#define GPUSHARE_PLACE_GPU_INIT GPUSHARE_STRUCT_INIT(gpushare_place_gpu)

// An LC app. Each replica has a GPU without another LC replica. A `load` or memory_bytes that is
// left at 0 is an idle app, or one without memory.
typedef struct gpushare_place_lc {
  uint32_t struct_size;
  int32_t replicas;      // 0: none
  const char* name;      // for messages; another one for each LC and BE app
  const char* kind;      // `kind` and `load` choose the row of each pair
  double load;           // of one replica: share of the time that its queries take alone, 0 to 1
  int64_t memory_bytes;  // of a replica
  // What its p99 may be: so many times its p99 alone, 1 to 1e6, or target_ns, which needs
  // p99_alone_ns. With both the tighter counts. 0: not stated; with neither it is 1.05 times.
  double p99_bound;
  int64_t target_ns;
  int64_t p99_alone_ns;
} gpushare_place_lc;
#define GPUSHARE_PLACE_LC_INIT GPUSHARE_STRUCT_INIT(gpushare_place_lc)

// A BE app. A memory_bytes that is left at 0 is no memory.
typedef struct gpushare_place_be {
  uint32_t struct_size;
  int32_t instances;     // 0: none
  const char* name;      // for messages; another one for each LC and BE app
  const char* kind;      // of its pairs
  int64_t memory_bytes;  // of an instance
  double weight;         // share of the BE time where instances run at once, 0.001 to 1000; 0: 1
} gpushare_place_be;
#define GPUSHARE_PLACE_BE_INIT GPUSHARE_STRUCT_INIT(gpushare_place_be)

// What a BE kind does beside an LC kind at a load, both alone on a GPU: measured (`gpushare
// colocate`) or predicted. Between two loads values are interpolated, and below the least load its
// row counts. Above the largest load, and without a row, the pair is not allowed. Of two rows at
// one load the later counts. A `load` that is left at 0 is a row of the idle LC app, and a be_rate
// that is left at 0 says that BE gets nothing.
typedef struct gpushare_place_pair {
  uint32_t struct_size;
  int32_t reserved;  // must be 0
  const char* lc;    // kind of the LC app
  const char* be;    // kind of the BE app
  double load;       // of the LC app, 0 to 1
  double p99_ratio;  // the LC app's p99 over its p99 alone, up to 1e6; must be given
  double p99_error;  // one error bar of it
  double be_rate;    // BE throughput over that alone on the whole GPU, 0 to 1
  double be_error;   // one error bar of it
} gpushare_place_pair;
#define GPUSHARE_PLACE_PAIR_INIT GPUSHARE_STRUCT_INIT(gpushare_place_pair)

typedef struct gpushare_place_result {
  uint32_t struct_size;
  int32_t reserved;       // 0
  int64_t lc_placed;      // replicas that have a GPU
  int64_t be_placed;      // instances that have a GPU
  int64_t free_gpus;      // GPUs with nothing on them
  int64_t moved;          // running BE instances on another GPU than before
  int64_t bounds_broken;  // LC replicas whose predicted p99 is above what they allow
  double be_rate;         // sum over GPUs of the mean BE rate of their instances
  // The sum over GPUs of the mean of BE rate less `risk` error bars, and free_gpu for each GPU with
  // nothing on it. Of placements with as many BE instances the one of the larger value is better.
  double value;
  double upper_bound;  // no placement of BE beside these LC replicas is worth more
} gpushare_place_result;
#define GPUSHARE_PLACE_RESULT_INIT GPUSHARE_STRUCT_INIT(gpushare_place_result)

// Places LC replicas and BE instances on GPUs, by what pairs of them do (Baymax 7.6;
// docs/placement.md). It needs no runtime and starts nothing: the caller carries the placement out.
//   gpus, lc, be, pairs   one struct each, all of an array of one struct_size; null where the
//                         count is 0. Strings have at most 63 bytes
//   out_gpu               an entry for each replica of each LC app, then for each instance of each
//                         BE app, in order: the index of its GPU, or GPUSHARE_NO_GPU. Indices
//                         count the GPUs of all groups, in order, from 0
//   running               where each entry of out_gpu runs now, or GPUSHARE_NO_GPU; null: nothing
//                         runs. It may be out_gpu
//   out_count             entries of out_gpu and of `running`: the sum of replicas and instances
// Running apps keep their GPUs; at most moves_max BE instances change theirs. An instance that no
// longer fits where it runs moves to a place of its app before a new instance takes the place. If
// moves_max others move, or its app has no place left, its entry is GPUSHARE_NO_GPU: it has to
// stop. A replica or an instance that finds no GPU has GPUSHARE_NO_GPU too. That is no error, and
// `gpushare place` says why. After an error nothing is written. The same input gives the same
// placement on every machine.
// Limits: 100,000 GPUs, 100,000 apps, 100,000 replicas of an LC app, 1,000,000 of all, 1,000,000
// instances of all BE apps, 1,024 kinds of LC and of BE apps, 65,536 pairs.
// Threads: any. Owns: nothing. Blocks: for its own computation, 0.03 s for 1,024 apps on 1,024
// GPUs (docs/placement.md, Measured).
// Errors: INVALID_ARGUMENT a value outside its range, a name twice, a wrong out_count, or a
// `running` that cannot be: an index of no GPU, two LC replicas on one GPU, or apps that need more
// memory than their GPU has; UNIMPLEMENTED a field that this library does not know;
// RESOURCE_EXHAUSTED no memory for the computation.
GPUSHARE_API gpushare_status gpushare_place(
    const gpushare_place_options* options, const gpushare_place_gpu* gpus, size_t gpu_count,
    const gpushare_place_lc* lc, size_t lc_count, const gpushare_place_be* be, size_t be_count,
    const gpushare_place_pair* pairs, size_t pair_count, const int32_t* running, int32_t* out_gpu,
    size_t out_count, gpushare_place_result* out_result) GPUSHARE_NOEXCEPT;

// A launch of an LC app's query or of a BE app, for gpushare_predict_pair.
typedef struct gpushare_pair_launch {
  uint32_t struct_size;
  int32_t count;            // times in a row, at most 1e6; 0: 1. Of BE work it must be 0 or 1
  gpushare_kernel* kernel;  // registered in the runtime
  int64_t block_tasks;      // KERNEL: as in gpushare_task_options; GRAPH, LIBRARY: must be 0
} gpushare_pair_launch;
#define GPUSHARE_PAIR_LAUNCH_INIT GPUSHARE_STRUCT_INIT(gpushare_pair_launch)

// Predicts a pair that nobody measured, by the runtime's cost model: BE work that never ends beside
// queries that arrive at random, both alone on a GPU of the runtime's model. Of what adaptive would
// choose, BE on the whole device between queries or queries and BE each on SMs of their own, the
// one with the larger BE rate counts, of those that keep p99_bound with one error bar
// (docs/placement.md, Pairs from the cost model). On a simulated device with a GPU's profile it
// needs no GPU.
//   query       the launches of one query, in order; at most 64 entries
//   p99_bound   what the p99 may be, over the p99 alone; 1 to 1e6; 0: 1.05
//   inout_pair  its `load`, from 0 to below 63 / 64, is read. The ratio, the rate and their error
//               bars are written, and all else stays. Where nothing keeps the bound, p99_ratio and
//               p99_error are together above it
// A kernel that has neither run nor a record is predicted from defaults, of which the error bars
// know nothing: state `solo_ns`, run it first, or calibrate.
// Threads: any. A gpushare_cost_model_table is called on this thread. Owns: nothing. Blocks: until
// the current pass of the flow ends; the flow waits for the computation, microseconds for a few
// kernels and up to 0.3 ms for 64.
// Errors: INVALID_ARGUMENT a value outside its range, or a kernel of another runtime; UNIMPLEMENTED
// a field that this library does not know; FAILED_PRECONDITION the query's kernels take no time.
GPUSHARE_API gpushare_status
gpushare_predict_pair(gpushare_runtime* runtime, const gpushare_pair_launch* query,
                      size_t query_count, const gpushare_pair_launch* be, double p99_bound,
                      gpushare_place_pair* inout_pair) GPUSHARE_NOEXCEPT;

// --- profiles ------------------------------------------------------------------------------------

// Loads kernels and learned values from a profile of the same GPU model. It loads all or nothing.
// Kernels and fused kernels that are registered keep their records. Pairs that a calibration
// measured on the same SMs count only from the profile of gpushare_runtime_create.
// Threads: any. Owns: nothing. Blocks: while it reads, and until the current pass of the flow ends.
// Errors: NOT_FOUND; DATA_LOSS or INVALID_ARGUMENT the file is truncated, corrupt or out of range;
// FAILED_PRECONDITION the profile is of another GPU.
GPUSHARE_API gpushare_status gpushare_profile_load(gpushare_runtime* runtime,
                                                   const char* path) GPUSHARE_NOEXCEPT;

// Saves the runtime's profile with the learned values. After a crash the file is the old one or the
// new one, never a mix.
// Threads: any. Owns: nothing. Blocks: while it writes.
// Errors: NOT_FOUND no such folder; INVALID_ARGUMENT, UNAVAILABLE or PERMISSION_DENIED: the path
// cannot be written.
GPUSHARE_API gpushare_status gpushare_profile_save(gpushare_runtime* runtime,
                                                   const char* path) GPUSHARE_NOEXCEPT;

// Checks a profile file without a runtime, as gpushare_runtime_create does. After a failure
// gpushare_last_error_message says what is wrong with it.
// Threads: any. Owns: nothing. Blocks: while it reads.
// Errors: as gpushare_profile_load.
GPUSHARE_API gpushare_status gpushare_profile_validate(const char* path) GPUSHARE_NOEXCEPT;

typedef struct gpushare_profile_train_options {
  uint32_t struct_size;
  // 1: demands become those that were counted, also where the profile has some; 0: only where it
  // has none.
  gpushare_bool replace_demands;
  const char* profile_path;  // must be given
  const char* samples_path;  // a samples file (docs/samples.md); must be given
  // The profile to write; must be given. May be profile_path, not samples_path.
  const char* output_path;
} gpushare_profile_train_options;
#define GPUSHARE_PROFILE_TRAIN_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_profile_train_options)

// Writes a profile whose kernels are trained with the rows of a samples file: durations alone on
// the whole device, counters, demands, and durations of library calls by their parameters
// (docs/calibration.md). What the samples do not have stays as it is. After a crash the output is
// the old file or the new one, never a mix.
// Threads: any. Owns: nothing. Blocks: while it reads and writes.
// Errors: INVALID_ARGUMENT a file is of no such kind; NOT_FOUND; FAILED_PRECONDITION the samples
// are of another GPU; UNAVAILABLE or PERMISSION_DENIED the output cannot be written.
GPUSHARE_API gpushare_status gpushare_profile_train(const gpushare_profile_train_options* options)
    GPUSHARE_NOEXCEPT;

typedef struct gpushare_profile_like_options {
  uint32_t struct_size;
  uint32_t reserved;         // must be 0
  const char* profile_path;  // must be given
  const char* kernel;        // the kernel to fill, which has no simulation record; must be given
  const char* like;          // the kernel that it is like; null: the nearest by counters
  // A samples file with counters of `kernel`; null: those that the profile has, if any.
  const char* samples_path;
  // The profile to write; must be given. May be profile_path, not samples_path.
  const char* output_path;
} gpushare_profile_like_options;
#define GPUSHARE_PROFILE_LIKE_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_profile_like_options)

// Writes a profile in which a kernel that nobody calibrated has the record and the pairs of a
// kernel that is like it, scaled by counters where both have some (docs/calibration.md). A text
// function: writes the name of the kernel that it took. Where the buffer is too small, the profile
// is written nevertheless.
// Threads: any. Owns: nothing. Blocks: while it reads and writes.
// Errors: as gpushare_profile_train; also NOT_FOUND no kernel `like`; FAILED_PRECONDITION `kernel`
// has a record, `like` has none, or nothing is known by which a kernel is near; OUT_OF_RANGE the
// buffer is too small.
GPUSHARE_API gpushare_status gpushare_profile_like(const gpushare_profile_like_options* options,
                                                   char* buffer, size_t buffer_size_bytes,
                                                   size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GPUSHARE_GPUSHARE_H_
