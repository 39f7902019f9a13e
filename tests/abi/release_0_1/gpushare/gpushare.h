// gpushare: latency-critical (LC) and best-effort (BE) work on one GPU, from one process.
//
// This is the C ABI, version 1, frozen: docs/abi.md says what may still change and what may not. It
// is installed as <gpushare/gpushare.h>, compiles alone as C99 to C23 and as C++17 to C++23, and
// needs nothing but a 64-bit platform. <gpushare/gpushare.hpp> is the C++ API over it.
//
// Conventions
// - Every function returns a gpushare_status unless it cannot fail. On failure the reason, one full
//   sentence, is in gpushare_last_error_message() of the calling thread. Failures after submit are
//   in the ticket's completion record.
// - Runtime, app, queue, kernel, fused kernel and event log are opaque handles with create, retain
//   and release. A created handle has one reference. A handle that was released to zero is answered
//   with INVALID_ARGUMENT wherever the library can tell (docs/ownership.md says where it cannot).
// - Tickets and queries are plain values that hold a generation: a stale one is answered with
//   INVALID_ARGUMENT, never mistaken for another.
// - An options struct is made with its _INIT macro; zero (or null) in a field means its default.
//   Structs with a struct_size grow, and only at the end. The library reads min(struct_size, its
//   own size); a struct_size smaller than version 1 of the struct is INVALID_ARGUMENT; a non-zero
//   tail that this library does not know is UNIMPLEMENTED. Result structs carry struct_size too:
//   the caller sets it (by the _INIT macro), the library fills no more than that and says how much.
//   The other structs of this header never change. A reserved field must be 0 where the caller
//   fills it, or UNIMPLEMENTED is the answer; where the library does, it may mean something later.
// - A later library may answer enum values that this header does not name; its own gpushare_*_name
//   functions know them.
// - Durations and times are int64_t nanoseconds; times and deadlines are absolute, on the device's
//   monotonic clock, which gpushare_now_ns reads (virtual on a simulated device).
// - Strings are UTF-8, NUL-terminated, and copied by the library. Strings that the library returns
//   live as long as it says.
// - Callbacks must not throw; each says on which thread it runs, how often, and what it must not
//   call. A completion callback runs exactly once, with no lock held.
// - No function exits, aborts or throws, and none prints unless GPUSHARE_LOG asks for it. After
//   fork() every function that returns a status answers FAILED_PRECONDITION in the child, which may
//   only exec or exit, if the parent had made a runtime before.
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

// An options or result struct of `type`, zero but for its struct_size.
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

// The number in the SONAME, libgpushare.so.1. It changes only with a break of the ABI; what was
// added since is in bindings/c/CHANGELOG.md.
#define GPUSHARE_ABI_VERSION 1
#define GPUSHARE_VERSION_MAJOR 0
#define GPUSHARE_VERSION_MINOR 1
#define GPUSHARE_VERSION_PATCH 0

// The ABI version of the library that was loaded; it must equal GPUSHARE_ABI_VERSION.
// Threads: any. Owns: nothing. Blocks: no. Errors: none.
GPUSHARE_API uint32_t gpushare_abi_version(void) GPUSHARE_NOEXCEPT;

// "major.minor.patch" of the library that was loaded.
// Threads: any. Owns: static. Blocks: no. Errors: none.
GPUSHARE_API const char* gpushare_version_string(void) GPUSHARE_NOEXCEPT;

// A time that never comes: as a deadline, wait without limit.
#define GPUSHARE_NEVER INT64_MAX

// --- status --------------------------------------------------------------------------------------

// Values are frozen; docs/errors.md says which function answers what.
typedef int32_t gpushare_status;
enum gpushare_status_value {
  GPUSHARE_OK = 0,
  GPUSHARE_CANCELLED = 1,
  GPUSHARE_UNKNOWN = 2,
  GPUSHARE_INVALID_ARGUMENT = 3,  // the call is wrong whatever the state
  GPUSHARE_DEADLINE_EXCEEDED = 4,
  GPUSHARE_NOT_FOUND = 5,  // no such app, ticket, file, kernel of the profile
  GPUSHARE_ALREADY_EXISTS = 6,
  GPUSHARE_PERMISSION_DENIED = 7,
  GPUSHARE_RESOURCE_EXHAUSTED = 8,   // backpressure: a bounded queue or table is full
  GPUSHARE_FAILED_PRECONDITION = 9,  // not in this state: shut down, in a callback, after a fork
  GPUSHARE_ABORTED = 10,
  GPUSHARE_OUT_OF_RANGE = 11,   // a caller's buffer is too small
  GPUSHARE_UNIMPLEMENTED = 12,  // this library or device does not know it
  GPUSHARE_INTERNAL = 13,       // our own fault, or an exception inside
  GPUSHARE_UNAVAILABLE = 14,    // no such device here, or the device is lost
  GPUSHARE_DATA_LOSS = 15,      // a file is truncated or corrupt
  GPUSHARE_UNAUTHENTICATED = 16
};

// "OK", "INVALID_ARGUMENT", ...; "UNKNOWN_STATUS" for a value that is none.
// Threads: any. Owns: static. Blocks: no. Errors: none.
GPUSHARE_API const char* gpushare_status_name(gpushare_status status) GPUSHARE_NOEXCEPT;

// The reason of the last call that failed on this thread, one sentence; "" before the first. It is
// cut at 1023 bytes.
// Threads: any; each has its own. Owns: the library; valid until the next failing call on this
// thread. Blocks: no. Errors: none.
GPUSHARE_API const char* gpushare_last_error_message(void) GPUSHARE_NOEXCEPT;

// --- words ---------------------------------------------------------------------------------------

typedef int32_t gpushare_bool;  // 0 or 1; from the caller, any other value is INVALID_ARGUMENT

// A choice whose default comes from elsewhere (a kernel's record in the profile).
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
  GPUSHARE_TASK_DEFAULT = 0,  // the kind of the kernel that is named
  GPUSHARE_TASK_KERNEL = 1,   // a registered kernel with block tasks
  GPUSHARE_TASK_GRAPH = 2,    // a registered graph: a chain of nodes that one launch starts
  GPUSHARE_TASK_LIBRARY = 3,  // a registered cuBLAS or cuDNN call
  GPUSHARE_TASK_MEMCPY = 4,
  GPUSHARE_TASK_OPAQUE = 5  // a callback or a region on a stream that the library gives
};

// How a task was launched.
typedef int32_t gpushare_form;
enum gpushare_form_value {
  GPUSHARE_FORM_ORIGINAL = 0,
  GPUSHARE_FORM_WORKERS = 1,
  GPUSHARE_FORM_SLICE = 2,
  GPUSHARE_FORM_FUSED = 3,
  GPUSHARE_FORM_GRAPH = 4,
  GPUSHARE_FORM_LIBRARY = 5,
  GPUSHARE_FORM_MEMCPY = 6,
  GPUSHARE_FORM_OPAQUE = 7
};

typedef int32_t gpushare_copy_direction;
enum gpushare_copy_direction_value {
  GPUSHARE_COPY_NONE = 0,
  GPUSHARE_COPY_HOST_TO_DEVICE = 1,
  GPUSHARE_COPY_DEVICE_TO_HOST = 2,
  GPUSHARE_COPY_PEER = 3  // device memory to device memory: of one GPU, or of two
};

// What a ticket ended with.
typedef int32_t gpushare_verdict;
enum gpushare_verdict_value {
  GPUSHARE_VERDICT_PENDING = 0,
  GPUSHARE_VERDICT_OK = 1,
  GPUSHARE_VERDICT_FAILED = 2,
  GPUSHARE_VERDICT_CANCELLED = 3,
  GPUSHARE_VERDICT_DROPPED = 4,    // late, and its app asked to drop late queries
  GPUSHARE_VERDICT_TIMED_OUT = 5,  // the device never completed it; its lane was given up
  GPUSHARE_VERDICT_DEVICE_LOST = 6,
  GPUSHARE_VERDICT_SHUTDOWN = 7  // the runtime was shut down before it ran
};

// Why the planner did what it did: launches (1 to 31), holds (32 to 63), evictions (64 to 95).
typedef int32_t gpushare_reason;
enum gpushare_reason_value {
  GPUSHARE_REASON_NONE = 0,
  GPUSHARE_REASON_LC_FIRST = 1,
  GPUSHARE_REASON_FAST_PATH = 2,
  GPUSHARE_REASON_BASELINE = 3,
  GPUSHARE_REASON_IDLE_DEVICE = 4,
  GPUSHARE_REASON_FITS_HEADROOM = 5,
  GPUSHARE_REASON_FITS_BLOCKING_BUDGET = 6,
  GPUSHARE_REASON_BESIDE_PARTITION = 7,
  GPUSHARE_REASON_ELASTIC_RETURN = 8,
  GPUSHARE_REASON_RESUME = 9,
  GPUSHARE_REASON_QUOTA = 10,
  GPUSHARE_REASON_FILLS_GAP = 11,
  GPUSHARE_REASON_HOLD_HEADROOM = 32,
  GPUSHARE_REASON_HOLD_BLOCKING = 33,
  GPUSHARE_REASON_HOLD_LC_ACTIVE = 34,
  GPUSHARE_REASON_HOLD_QUEUED_TIME = 35,
  GPUSHARE_REASON_HOLD_COPIES = 36,
  GPUSHARE_REASON_HOLD_WINDOW = 37,
  GPUSHARE_REASON_HOLD_CAPSM = 38,
  GPUSHARE_REASON_HOLD_HYSTERESIS = 39,
  GPUSHARE_REASON_HOLD_QUIESCED = 40,
  GPUSHARE_REASON_EVICT_FOR_LC = 64,
  GPUSHARE_REASON_EVICT_FOR_RESERVATION = 65,
  GPUSHARE_REASON_EVICT_FOR_LAYOUT = 66,
  GPUSHARE_REASON_EVICT_FOR_QUOTA = 67,
  GPUSHARE_REASON_USER_POLICY = 96
};

// Lower-case words for the values above ("latency_critical", "memcpy", "fits_headroom");
// "unknown" for a value that is none.
// Threads: any. Owns: static. Blocks: no. Errors: none.
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

// What a submit returns; completes exactly once. 0 is none.
typedef struct gpushare_ticket {
  uint64_t value;
} gpushare_ticket;

// One LC request: tasks between begin and end. 0 is none.
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

// Runs on the thread that has something to say, possibly inside a call of the API. It must not call
// the API. `message` is a sentence without a newline and lives for the call.
typedef void (*gpushare_log_callback)(void* user, gpushare_log_level level, const char* message);

typedef int32_t gpushare_drive;
enum gpushare_drive_value {
  GPUSHARE_DRIVE_THREAD = 0,  // the library's own scheduler thread
  GPUSHARE_DRIVE_POLL = 1     // none: the caller drives gpushare_poll, poll_until and waits
};

typedef struct gpushare_runtime_options {
  uint32_t struct_size;
  gpushare_drive drive;
  // "auto", "cuda", "sim" or "null". Null: the environment's GPUSHARE_DEVICE, else "auto", which is
  // CUDA where there is a GPU and else the simulated device: that is logged once and stamps metrics
  // and traces SIMULATED.
  const char* device;
  const char* policy;        // null: "adaptive"; gpushare_policy_names lists them
  const char* profile_path;  // null: the H200 profile that is built in
  uint64_t seed;             // of what the simulated device draws; 0: 1
  const char* sim_tier;      // "kernel" (default) or "block"
  const char* sim_faults;    // faults of the simulated device, for tests; docs/abi.md, null: none
  int32_t device_ordinal;    // which GPU, from 0
  int32_t splits_max;        // partition candidates to create; 0: 16, -1: no partitions
  int64_t hang_floor_ns;     // least time after which a launch is reported hung; 0: 10 s
  double hang_factor;        // times its prediction, if that is more; 0: 20
  int64_t be_return_hysteresis_ns;  // BE returns so long after the last LC query; 0: 2 us, -1: none
  int64_t shutdown_timeout_ns;      // of the last release, without an explicit shutdown; 0: 10 s
  gpushare_log_callback log;  // null: GPUSHARE_LOG=error|warning|info prints to stderr, else silent
  void* log_user;
} gpushare_runtime_options;
#define GPUSHARE_RUNTIME_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_runtime_options)

// Opens a device and starts its scheduler. `options` may be null: all defaults.
// Threads: any. Owns: the caller one reference of *out_runtime. Blocks: while the device is opened.
// Errors: INVALID_ARGUMENT unknown device, policy, tier or fault, value out of range; NOT_FOUND no
// such profile file; DATA_LOSS or INVALID_ARGUMENT the profile is rejected; UNAVAILABLE "cuda" was
// asked for and there is no GPU; UNIMPLEMENTED unknown tail.
GPUSHARE_API gpushare_status gpushare_runtime_create(
    const gpushare_runtime_options* options, gpushare_runtime** out_runtime) GPUSHARE_NOEXCEPT;

// One more reference.
// Threads: any. Owns: the caller one more reference. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_runtime_retain(gpushare_runtime* runtime) GPUSHARE_NOEXCEPT;

// One reference less. Apps, queues and kernels hold one each; with the last the runtime is shut
// down within shutdown_timeout_ns, and every accepted task completes first. Null is allowed.
// Threads: any but a callback's. Owns: takes one reference. Blocks: with the last, up to
// shutdown_timeout_ns. Errors: INVALID_ARGUMENT, FAILED_PRECONDITION last reference in a callback.
GPUSHARE_API gpushare_status gpushare_runtime_release(gpushare_runtime* runtime) GPUSHARE_NOEXCEPT;

// Refuses new work and completes every accepted task exactly once by the deadline, those that did
// not run with GPUSHARE_VERDICT_SHUTDOWN. Idempotent. Tickets and stats stay readable.
// Threads: any but a callback's. Owns: nothing. Blocks: until the deadline at most. Errors:
// FAILED_PRECONDITION in a callback; DEADLINE_EXCEEDED work was cut off.
GPUSHARE_API gpushare_status gpushare_runtime_shutdown(gpushare_runtime* runtime,
                                                       int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Until no task is pending. New work may still come.
// Threads: any but a callback's. Owns: nothing. Blocks: until the deadline at most; drives the flow
// itself when there is no scheduler thread. Errors: DEADLINE_EXCEEDED, FAILED_PRECONDITION.
GPUSHARE_API gpushare_status gpushare_runtime_drain(gpushare_runtime* runtime,
                                                    int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Holds new launches, evicts BE and waits until the device is idle, so that the caller can
// synchronise the device; gpushare_runtime_resume ends it. Submits are still accepted.
// Threads: any but a callback's. Owns: nothing. Blocks: until the deadline at most. Errors:
// DEADLINE_EXCEEDED (launches stay held), FAILED_PRECONDITION.
GPUSHARE_API gpushare_status gpushare_runtime_quiesce(gpushare_runtime* runtime,
                                                      int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Ends a quiesce.
// Threads: any. Owns: nothing. Blocks: no. Errors: FAILED_PRECONDITION not quiesced, shut down.
GPUSHARE_API gpushare_status gpushare_runtime_resume(gpushare_runtime* runtime) GPUSHARE_NOEXCEPT;

// One pass of the flow; with nothing due on a virtual-time device, time moves to the next event.
// *out_progress (may be null) says whether anything happened.
// Threads: one at a time, not a callback's. Owns: nothing. Blocks: no. Errors: FAILED_PRECONDITION
// the runtime has its own thread, in a callback.
GPUSHARE_API gpushare_status gpushare_poll(gpushare_runtime* runtime,
                                           gpushare_bool* out_progress) GPUSHARE_NOEXCEPT;

// Polls until the device clock reaches time_ns; in virtual time it ends there exactly.
// Threads: one at a time, not a callback's. Owns: nothing. Blocks: until time_ns. Errors:
// FAILED_PRECONDITION as gpushare_poll; INVALID_ARGUMENT time_ns is negative or GPUSHARE_NEVER.
GPUSHARE_API gpushare_status gpushare_poll_until(gpushare_runtime* runtime,
                                                 int64_t time_ns) GPUSHARE_NOEXCEPT;

// The device's clock.
// Threads: any. Owns: nothing. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_now_ns(gpushare_runtime* runtime,
                                             int64_t* out_time_ns) GPUSHARE_NOEXCEPT;

// Changes the policy between two plans.
// Threads: any. Owns: nothing. Blocks: until the pass of the flow in progress is done. Errors:
// INVALID_ARGUMENT names the known ones.
GPUSHARE_API gpushare_status gpushare_set_policy(gpushare_runtime* runtime,
                                                 const char* name) GPUSHARE_NOEXCEPT;

// The names of the policies, one a line. Text functions write at most buffer_size_bytes with the
// NUL and always set *out_size_bytes to the size of the whole text with its NUL. Threads: any.
// Owns: nothing. Blocks: no. Errors: OUT_OF_RANGE the buffer is too small (a null buffer of size 0
// only asks for the size and is OK).
GPUSHARE_API gpushare_status gpushare_policy_names(char* buffer, size_t buffer_size_bytes,
                                                   size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

// --- apps and queues -----------------------------------------------------------------------------

typedef struct gpushare_app_options {
  uint32_t struct_size;
  gpushare_app_class app_class;  // must be given
  const char* name;              // at most 63 bytes, unique in the runtime; must be given
  int64_t target_ns;             // LC: absolute latency target, 0: none
  double p99_bound;              // LC: bound on p99 over p99 alone (1.05 = 5 %), 0: none, else >= 1
  int64_t p99_alone_ns;          // LC: hint, p99 alone at the expected load; 0: unknown
  int64_t solo_ns;               // LC: hint, one query alone on the device; 0: unknown
  double weight;                 // BE: share among BE apps, 0: 1
  gpushare_bool drop_late;       // LC: a query that is late at admission is dropped
  int32_t tasks_max;             // accepted and not released at once; 0: 1024, at most 16384
} gpushare_app_options;
#define GPUSHARE_APP_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_app_options)

// Threads: any. Owns: the caller one reference of *out_app, which holds one of the runtime. Blocks:
// briefly, on the registry's lock. Errors: INVALID_ARGUMENT no class or name, negative, NaN or too
// large value; ALREADY_EXISTS the name; RESOURCE_EXHAUSTED 64 apps, or 65536 tasks_max of all
// together; FAILED_PRECONDITION shut down.
GPUSHARE_API gpushare_status gpushare_app_create(gpushare_runtime* runtime,
                                                 const gpushare_app_options* options,
                                                 gpushare_app** out_app) GPUSHARE_NOEXCEPT;

// Threads: any. Owns: one more reference. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_app_retain(gpushare_app* app) GPUSHARE_NOEXCEPT;

// One reference less; with the last the app is gone. Null is allowed.
// Threads: any. Owns: takes one reference unless it fails. Blocks: briefly; where it drops the last
// reference to the runtime, as gpushare_runtime_release. Errors: INVALID_ARGUMENT;
// FAILED_PRECONDITION the last reference, while tasks of it are not complete, or the runtime's last
// in a callback (the reference stays).
GPUSHARE_API gpushare_status gpushare_app_release(gpushare_app* app) GPUSHARE_NOEXCEPT;

typedef struct gpushare_reservation_options {
  uint32_t struct_size;
  int32_t capsms;        // LC: reserved; BE: quota; in CapSMs (capacity of one SM). 0 removes it
  gpushare_bool packed;  // on whole SMs that nobody else uses; else spread
  int32_t reserved;      // must be 0
} gpushare_reservation_options;
#define GPUSHARE_RESERVATION_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_reservation_options)

// Reserves CapSMs for an LC app or bounds a BE app (SMGuard 4.1). Packed ones get a side of a
// partition: a reservation the next larger, a quota the next smaller. Where a reservation is
// packed, any that would leave less than the smallest BE side gets all that is not reserved.
// Threads: any. Owns: nothing. Blocks: briefly. Errors: INVALID_ARGUMENT negative or more than the
// device has; RESOURCE_EXHAUSTED with the other reservations it is more; FAILED_PRECONDITION.
GPUSHARE_API gpushare_status gpushare_reserve_capsm(
    gpushare_app* app, const gpushare_reservation_options* options) GPUSHARE_NOEXCEPT;

// A FIFO of the app's tasks. Tasks of different queues order only by tickets and events.
// Threads: any. Owns: the caller one reference of *out_queue, which holds one of the app. Blocks:
// briefly. Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED 256 queues; FAILED_PRECONDITION shut down.
GPUSHARE_API gpushare_status gpushare_queue_create(gpushare_app* app,
                                                   gpushare_queue** out_queue) GPUSHARE_NOEXCEPT;

// Threads: any. Owns: one more reference. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_queue_retain(gpushare_queue* queue) GPUSHARE_NOEXCEPT;

// As gpushare_app_release, for a queue.
// Threads: any. Owns: takes one reference unless it fails. Blocks, Errors: as gpushare_app_release.
GPUSHARE_API gpushare_status gpushare_queue_release(gpushare_queue* queue) GPUSHARE_NOEXCEPT;

// --- kernels -------------------------------------------------------------------------------------

// Speed on `sms` SMs relative to the whole device, alone. Need not be monotone.
typedef struct gpushare_speed_point {
  int32_t sms;
  int32_t reserved;  // must be 0
  double speed;
} gpushare_speed_point;

// Share of capacity that a kernel uses alone at full occupancy, 0 to 1. issue, tensor and special
// are of each SM that it runs on; dram and l2 of the device when it runs on all SMs.
typedef struct gpushare_resource_demand {
  double issue;
  double tensor;
  double special;
  double dram;
  double l2;
} gpushare_resource_demand;

// One node of a graph, `repeat` times in a row; an ordinary grid of `blocks` blocks.
typedef struct gpushare_graph_node {
  int64_t duration_ns;  // alone on the whole device, without the gap to the next node
  int32_t blocks;
  int32_t repeat;            // 0: 1
  gpushare_choice whole_sm;  // a block takes all of an SM; default yes
  int32_t reserved;          // must be 0
  gpushare_resource_demand demand;
} gpushare_graph_node;

// What the simulated device needs to know of a kernel; the cost model takes it as its prior.
typedef struct gpushare_simulation_record {
  uint32_t struct_size;
  uint32_t speed_count;         // at most 32
  int64_t block_task_ns;        // one block task, all workers of the SM resident, alone
  double block_task_spread;     // relative standard deviation between block tasks
  double worker_overhead;       // worker form over original grid, 0.003 = 0.3 %; -0.5 to 10
  double memory_parallelism;    // outstanding memory requests, relative to a streaming kernel
  double saturating_occupancy;  // below it an SM's speed falls in proportion; 0: 1
  gpushare_resource_demand demand;
  const gpushare_speed_point* speed;  // by sms, ascending; none: proportional to SMs
  const gpushare_graph_node* nodes;   // graphs only
  uint32_t node_count;                // at most 4096
  uint32_t reserved;                  // must be 0
  int64_t node_gap_ns;                // between dependent nodes
} gpushare_simulation_record;
#define GPUSHARE_SIMULATION_RECORD_INIT GPUSHARE_STRUCT_INIT(gpushare_simulation_record)

// Enqueues a graph's work for a place of `sm_count` SMs on `stream`, a cudaStream_t that is being
// captured. Runs once per place inside gpushare_kernel_register, on the caller's thread, with the
// device's primary context current and no lock held that other threads' calls need, registrations
// aside. It may call gpushare, as every callback; registrations and what waits answer
// FAILED_PRECONDITION. Not 0: the registration fails and says the code.
typedef int32_t (*gpushare_capture_callback)(void* user, void* stream, int32_t sm_count);

typedef int32_t gpushare_library_operation;
enum gpushare_library_operation_value {
  GPUSHARE_LIBRARY_MATMUL = 1,       // d = alpha a b + beta c, row-major, cuBLASLt
  GPUSHARE_LIBRARY_CONVOLUTION = 2,  // cross-correlation, cuDNN, as those below
  GPUSHARE_LIBRARY_POOLING = 3,
  GPUSHARE_LIBRARY_ACTIVATION = 4,
  GPUSHARE_LIBRARY_SOFTMAX = 5
};

typedef int32_t gpushare_data_type;
enum gpushare_data_type_value { GPUSHARE_FLOAT32 = 0, GPUSHARE_FLOAT16 = 1, GPUSHARE_BFLOAT16 = 2 };

typedef int32_t gpushare_library_mode;
enum gpushare_library_mode_value {
  GPUSHARE_MODE_DEFAULT = 0,  // maximum pooling, ReLU
  GPUSHARE_MODE_MAX_POOLING = 1,
  GPUSHARE_MODE_AVERAGE_POOLING = 2,
  GPUSHARE_MODE_RELU = 3,
  GPUSHARE_MODE_TANH = 4,
  GPUSHARE_MODE_SIGMOID = 5
};

// A cuBLAS or cuDNN call: what it computes and its shapes, in elements. The algorithm is found at
// registration; workspace and handle are the library's own, one each a lane.
typedef struct gpushare_library_call {
  uint32_t struct_size;
  gpushare_library_operation operation;
  gpushare_data_type type;
  gpushare_library_mode mode;
  gpushare_bool channels_last;  // NHWC, else NCHW
  gpushare_bool transpose_a;
  gpushare_bool transpose_b;
  int32_t reserved;  // must be 0
  int64_t m;         // MATMUL: d is m x n, the sum runs over k
  int64_t n;
  int64_t k;
  int64_t batch;  // matrices or images; 0: 1
  int64_t channels;
  int64_t height;
  int64_t width;
  int64_t filters;
  int64_t filter_height;  // or of the pooling window
  int64_t filter_width;
  int64_t padding;
  int64_t stride;    // 0: 1
  int64_t dilation;  // 0: 1
  int64_t groups;    // 0: 1
} gpushare_library_call;
#define GPUSHARE_LIBRARY_CALL_INIT GPUSHARE_STRUCT_INIT(gpushare_library_call)

// The packed arguments of a LIBRARY task: operands in device memory. All of it is given, also with
// null operands on simulated devices. It has no struct_size: it never changes.
typedef struct gpushare_library_arguments {
  const void* a;  // or the input
  const void* b;  // or the filters
  const void* c;  // added with beta; may be null
  void* d;        // the result
  float alpha;
  float beta;
} gpushare_library_arguments;

typedef struct gpushare_kernel_options {
  uint32_t struct_size;
  gpushare_task_kind kind;       // KERNEL (default), GRAPH or LIBRARY
  const char* name;              // at most 63 bytes; must be given
  int32_t threads_per_block;     // 0: the profile's, else the function's, else 256
  int32_t registers_per_thread;  // 0: the profile's, else the function's, else 32
  int32_t shared_memory_bytes;   // static and dynamic, of a block; 0: as threads_per_block
  int32_t workers_per_sm_max;  // M of CapSM: workers that an SM holds; 0: the profile's, else what
                               // the function's resources allow, else 8
  gpushare_choice
      evictable;  // has a worker form that reads an eviction word; else the profile's, else no
  gpushare_choice confinable;  // may be launched in a partition; else the profile's, else yes
  gpushare_choice
      roomy;         // other kernels' blocks fit beside it in an SM; else the profile's, else no
  int32_t reserved;  // must be 0
  int64_t yield_interval_ns;  // distance of yield points inside a block task, 0: the profile's,
                              // else none
  int64_t solo_ns;  // the caller's estimate of one launch alone, 0: the profile's, else none
  void* original_function;  // CUfunction of the original grid; null on simulated devices
  void* worker_function;    // CUfunction of the worker form (docs/kernel-contract.md)
  void* graph;              // cudaGraph_t, instantiated once per place
  const gpushare_simulation_record* simulation;  // null: the profile's
  // As all below, of no use on simulated devices. GRAPH: captured once per place. At most one of
  // graph, capture and graph_exec.
  gpushare_capture_callback capture;
  void* capture_user;
  void* graph_exec;  // GRAPH: a bare cudaGraphExec_t: whole device, not confinable
  int32_t block_x;   // shape of a block; zeros: {threads_per_block, 1, 1}
  int32_t block_y;
  int32_t block_z;
  int32_t dynamic_shared_memory_bytes;
  const gpushare_library_call* library;  // LIBRARY: must be given; may be null on simulated devices
  void* slice_function;  // CUfunction of the slice form; null: the worker form runs slices
} gpushare_kernel_options;
#define GPUSHARE_KERNEL_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_kernel_options)

// Registers a kernel, graph or library call. When the runtime's profile has a kernel of that name,
// its record fills what the caller leaves zero. Modules and graphs stay the caller's and must
// outlive the runtime's last task of it.
// Threads: any but a capture callback's. Owns: the caller one reference of *out_kernel, which holds
// one of the runtime. Blocks: while the device prepares it, and registrations before it. Errors:
// INVALID_ARGUMENT no name, negative, NaN or too large value, a block's shape that is not its
// threads, two forms of one graph, a library call whose shapes do not fit together, a field that
// the kind does not use, no simulation record on a simulated device and none in the profile;
// ALREADY_EXISTS the name; RESOURCE_EXHAUSTED 1024 kernels; UNAVAILABLE cuBLASLt or cuDNN is not
// installed; FAILED_PRECONDITION shut down, in a capture callback.
GPUSHARE_API gpushare_status
gpushare_kernel_register(gpushare_runtime* runtime, const gpushare_kernel_options* options,
                         gpushare_kernel** out_kernel) GPUSHARE_NOEXCEPT;

// Threads: any. Owns: one more reference. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_kernel_retain(gpushare_kernel* kernel) GPUSHARE_NOEXCEPT;

// One reference less. The registration itself lives as long as the runtime. Null is allowed.
// Threads: any. Owns: takes one reference unless it fails. Blocks: no, unless it drops the last
// reference to the runtime: then as gpushare_runtime_release. Errors: INVALID_ARGUMENT;
// FAILED_PRECONDITION the runtime's last reference in a callback.
GPUSHARE_API gpushare_status gpushare_kernel_release(gpushare_kernel* kernel) GPUSHARE_NOEXCEPT;

typedef struct gpushare_kernel_info {
  uint32_t struct_size;
  gpushare_task_kind kind;
  int32_t threads_per_block;
  int32_t registers_per_thread;
  int32_t shared_memory_bytes;
  int32_t workers_per_sm_max;
  gpushare_bool evictable;
  gpushare_bool confinable;
  gpushare_bool roomy;
  int32_t node_count;     // graphs; repeats counted
  int64_t block_task_ns;  // kernels; 0 unknown
  int64_t yield_interval_ns;
  // One launch alone on the whole device: the hint if there is one, else the sum of a graph's nodes
  // and gaps; 0 unknown (kernels: block tasks / SMs / workers_per_sm_max rounds of block_task_ns).
  int64_t solo_ns;
  gpushare_resource_demand demand;
} gpushare_kernel_info;
#define GPUSHARE_KERNEL_INFO_INIT GPUSHARE_STRUCT_INIT(gpushare_kernel_info)

// What is known of a kernel by name: a registered one, else the one of the runtime's profile.
// Threads: any. Owns: nothing. Blocks: no. Errors: NOT_FOUND, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_kernel_info_by_name(
    gpushare_runtime* runtime, const char* name, gpushare_kernel_info* out_info) GPUSHARE_NOEXCEPT;

// The names of the kernels in the runtime's profile, one a line. Text function: see
// gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: no. Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status
gpushare_profile_kernel_names(gpushare_runtime* runtime, char* buffer, size_t buffer_size_bytes,
                              size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

typedef struct gpushare_fused_kernel_options {
  uint32_t struct_size;
  int32_t tensor_blocks;  // blocks of the Tensor-core part in a fused block, at most 32; 0: 1
  int32_t cuda_blocks;    // blocks of the CUDA-core part, at most 32; 0: 1
  int32_t reserved;       // must be 0
  const char* name;       // at most 63 bytes, unique among fused kernels; must be given
  gpushare_kernel* tensor_part;     // registered before; must be given
  gpushare_kernel* cuda_part;       // registered before; must be given
  double opportune_load_ratio;      // Tacker: load ratio where both parts end together; 0: 1
  double opportune_duration_ratio;  // fused duration there over the Tensor-core part's own; 0: 1
  // CUfunction (header, tensor arguments, header, CUDA-core arguments) of GPUSHARE_FUSED_KERNEL;
  // null on simulated devices, and on a CUDA device where the pair is never launched.
  void* function;
  // Of a fused block; 0: what the device reads from the function.
  int32_t threads_per_block;
  int32_t dynamic_shared_memory_bytes;  // 0: none
  int32_t blocks_per_sm;                // fused blocks that an SM holds; 0: as threads_per_block
  int32_t reserved2;                    // must be 0
} gpushare_fused_kernel_options;
#define GPUSHARE_FUSED_KERNEL_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_fused_kernel_options)

// Registers one precompiled fused kernel of two registered kernels.
// Threads: any but a capture callback's. Owns: the caller one reference of *out_fused, which holds
// one of the runtime. Blocks: as gpushare_kernel_register. Errors: INVALID_ARGUMENT no name, parts
// that are not two kernels of this runtime, blocks, ratios, threads or shared memory out of range,
// a function with other parameters; ALREADY_EXISTS the name; RESOURCE_EXHAUSTED 1024 fused kernels;
// FAILED_PRECONDITION in a capture callback.
GPUSHARE_API gpushare_status gpushare_fused_kernel_register(
    gpushare_runtime* runtime, const gpushare_fused_kernel_options* options,
    gpushare_fused_kernel** out_fused) GPUSHARE_NOEXCEPT;

// Threads: any. Owns: one more reference. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_fused_kernel_retain(gpushare_fused_kernel* fused)
    GPUSHARE_NOEXCEPT;

// As gpushare_kernel_release, for a fused kernel.
// Threads: any. Owns: takes one reference unless it fails. Blocks, Errors: as
// gpushare_kernel_release.
GPUSHARE_API gpushare_status gpushare_fused_kernel_release(gpushare_fused_kernel* fused)
    GPUSHARE_NOEXCEPT;

// --- queries -------------------------------------------------------------------------------------

// Begins a query on an LC app's queue. Its latency counts from arrival_ns, the intended arrival; 0:
// now. It is done when it was ended and all of its tasks are complete. A task that names no query
// is a query of its own. Threads: any. Owns: the caller ends it. Blocks: no. Errors:
// INVALID_ARGUMENT a BE app's queue, negative time; RESOURCE_EXHAUSTED; FAILED_PRECONDITION shut
// down.
GPUSHARE_API gpushare_status gpushare_query_begin(gpushare_queue* queue, int64_t arrival_ns,
                                                  gpushare_query* out_query) GPUSHARE_NOEXCEPT;

// No more tasks come.
// Threads: any. Owns: the value is stale afterwards. Blocks: no. Errors: INVALID_ARGUMENT unknown
// or ended before.
GPUSHARE_API gpushare_status gpushare_query_end(gpushare_runtime* runtime,
                                                gpushare_query query) GPUSHARE_NOEXCEPT;

// --- submit --------------------------------------------------------------------------------------

// How a task went. Times are on the device's clock; 0 where it did not get so far.
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
  int64_t admit_ns;
  int64_t launch_ns;    // first launch call
  int64_t start_ns;     // first block, device's view; 0 where the device has no timestamps
  int64_t end_ns;       // last block, device's view
  int64_t complete_ns;  // seen by the host
  int64_t predicted_ns;
  int64_t predicted_error_ns;
  int64_t measured_ns;  // time on the device, evicted spells left out
  int64_t evicted_ns;   // between an eviction and the next launch
  int64_t block_tasks;  // executed
  int32_t evictions;
  int32_t launches;
  gpushare_form form;  // of the last launch
  int32_t place;       // index of the set of SMs of the last launch, 0: the whole device
  gpushare_reason launch_reason;
  gpushare_reason hold_reason;  // the last reason to wait, NONE if it never did
  uint32_t beside_kernel_id;    // the kernel that ran beside it longest, 0: none
  int32_t error_code;           // native code when it failed
} gpushare_completion_record;
#define GPUSHARE_COMPLETION_RECORD_INIT GPUSHARE_STRUCT_INIT(gpushare_completion_record)

// Runs once, on the thread that completes the task: the scheduler's, or the one that polls or
// waits. It may submit and release; it must not wait, drain, poll or shut down
// (FAILED_PRECONDITION). `record` lives for the call.
typedef void (*gpushare_completion_callback)(void* user, const gpushare_completion_record* record);

// Enqueues the caller's work on `stream` (a cudaStream_t; null on simulated devices). Runs once
// unless the task never launches, on a thread that launches. It enqueues and returns: it must not
// call gpushare or wait for anything.
typedef void (*gpushare_enqueue_callback)(void* stream, void* user);

// One task of any kind. Fields that the kind does not use must be zero.
typedef struct gpushare_task_options {
  uint32_t struct_size;
  gpushare_task_kind kind;  // default: the kernel's
  gpushare_kernel* kernel;  // KERNEL, GRAPH, LIBRARY; not retained: keep it until submit returns
  int64_t block_tasks;      // KERNEL: blocks of the original grid, 1 to 2^40
  const void* arguments;    // KERNEL, LIBRARY: packed, copied at submit
  uint64_t arguments_size_bytes;  // at most 4096
  gpushare_query query;           // LC: 0: a query of its own; BE: must be 0
  int64_t arrival_ns;             // LC without query: intended arrival, 0: now
  int64_t declared_ns;      // LIBRARY, OPAQUE: the caller's bound on the device time, 0: unknown
  void* copy_destination;   // MEMCPY; buffers stay the caller's until the ticket completes
  const void* copy_source;  // MEMCPY; both may be null on the simulated device
  int64_t copy_size_bytes;  // MEMCPY: 1 to 2^42
  gpushare_copy_direction copy_direction;  // MEMCPY: must be given
  gpushare_bool copy_pageable;             // MEMCPY: host memory is pageable, not pinned
  const gpushare_ticket* wait_tickets;     // run after these; at most 8
  void* const* wait_events;                // cudaEvent_t to wait for on the device; at most 8
  uint32_t wait_ticket_count;
  uint32_t wait_event_count;
  void* signal_event;                 // cudaEvent_t to record after it, or null; never fused then
  gpushare_bool detached;             // the ticket is released by itself once the task is complete
  int32_t reserved;                   // must be 0
  gpushare_enqueue_callback enqueue;  // OPAQUE: must be given
  void* enqueue_user;
  gpushare_completion_callback callback;  // may be null
  void* callback_user;
  int32_t grid_x;  // KERNEL: dimensions of the original grid, whose product is block_tasks; zeros:
  int32_t grid_y;  // {block_tasks, 1, 1}
  int32_t grid_z;
  int32_t reserved2;  // must be 0
} gpushare_task_options;
#define GPUSHARE_TASK_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_task_options)

// Submits a latency-critical task; when its lane is free it is on the device before the call
// returns. With a null out_ticket the task is detached.
// Threads: any, callbacks too. Owns: the caller releases *out_ticket unless it is detached. Blocks:
// never; allocates nothing. Errors: INVALID_ARGUMENT (BE app, field out of range, oversized
// arguments, stale ticket or query); RESOURCE_EXHAUSTED the app has tasks_max tasks, or 32 with
// more than 512 bytes of arguments, or too many callbacks wait; FAILED_PRECONDITION shut down;
// UNAVAILABLE the device is lost. On error nothing was accepted and no callback runs.
GPUSHARE_API gpushare_status gpushare_submit_lc(gpushare_queue* queue,
                                                const gpushare_task_options* options,
                                                gpushare_ticket* out_ticket) GPUSHARE_NOEXCEPT;

// Submits a best-effort task: it runs where the policy finds room.
// Threads, Owns, Blocks, Errors: as gpushare_submit_lc, with the classes exchanged.
GPUSHARE_API gpushare_status gpushare_submit_be(gpushare_queue* queue,
                                                const gpushare_task_options* options,
                                                gpushare_ticket* out_ticket) GPUSHARE_NOEXCEPT;

typedef struct gpushare_region_options {
  uint32_t struct_size;
  int32_t reserved;  // must be 0
  int64_t bound_ns;  // time on the device that the region takes at most; must be given
} gpushare_region_options;
#define GPUSHARE_REGION_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_region_options)

// Gives a stream on which the caller enqueues anything until gpushare_region_end: one opaque task.
// *out_stream is a cudaStream_t, null on simulated devices. A region that may not start now is not
// queued: the caller tries again.
// Threads: any but a callback's. Owns: the caller ends the region, then releases the ticket.
// Blocks: no. Errors: as gpushare_submit_lc; UNAVAILABLE it may not start now: the runtime is
// quiesced, earlier tasks of the queue are not launched, or a best-effort region finds LC work,
// work of its own queue or a bound_ns above what the policy allows; FAILED_PRECONDITION in a
// callback. A lost device is UNAVAILABLE too, for ever: device_lost of gpushare_runtime_stats_get
// is 1 before any call answers so.
GPUSHARE_API gpushare_status gpushare_region_begin(gpushare_queue* queue,
                                                   const gpushare_region_options* options,
                                                   gpushare_ticket* out_ticket,
                                                   void** out_stream) GPUSHARE_NOEXCEPT;

// Nothing more is enqueued; the ticket completes when the stream has done it.
// Threads: any. Owns: nothing. Blocks: no. Errors: INVALID_ARGUMENT not a region, or ended before;
// RESOURCE_EXHAUSTED too many launches are in flight: end it again.
GPUSHARE_API gpushare_status gpushare_region_end(gpushare_runtime* runtime,
                                                 gpushare_ticket region) GPUSHARE_NOEXCEPT;

// --- tickets -------------------------------------------------------------------------------------

// Until the ticket is complete. The verdict is in its record.
// Threads: any but a callback's. Owns: nothing. Blocks: until deadline_ns (GPUSHARE_NEVER: no
// limit); drives the flow itself when there is no scheduler thread. Errors: DEADLINE_EXCEEDED;
// INVALID_ARGUMENT stale; FAILED_PRECONDITION in a callback.
GPUSHARE_API gpushare_status gpushare_ticket_wait(gpushare_runtime* runtime, gpushare_ticket ticket,
                                                  int64_t deadline_ns) GPUSHARE_NOEXCEPT;

// Whether the ticket is complete.
// Threads: any. Owns: nothing. Blocks: no. Errors: INVALID_ARGUMENT stale.
GPUSHARE_API gpushare_status gpushare_ticket_poll(gpushare_runtime* runtime, gpushare_ticket ticket,
                                                  gpushare_bool* out_complete) GPUSHARE_NOEXCEPT;

// The record of a ticket that is complete.
// Threads: any. Owns: nothing. Blocks: no. Errors: FAILED_PRECONDITION it is not complete;
// INVALID_ARGUMENT stale.
GPUSHARE_API gpushare_status
gpushare_ticket_record(gpushare_runtime* runtime, gpushare_ticket ticket,
                       gpushare_completion_record* out_record) GPUSHARE_NOEXCEPT;

// Adds a callback to a ticket that was submitted without one; a complete one runs it at once on
// this thread. One callback or eventfd a ticket. Threads: any. Owns: nothing. Blocks: no. Errors:
// INVALID_ARGUMENT stale; FAILED_PRECONDITION it has one; RESOURCE_EXHAUSTED.
GPUSHARE_API gpushare_status gpushare_ticket_set_callback(gpushare_runtime* runtime,
                                                          gpushare_ticket ticket,
                                                          gpushare_completion_callback callback,
                                                          void* user) GPUSHARE_NOEXCEPT;

// A Linux eventfd that becomes readable (value 1) when the ticket is complete.
// Threads: any. Owns: the caller closes *out_fd, at any time (the library writes to a duplicate of
// its own). Blocks: no. Errors: as gpushare_ticket_set_callback; RESOURCE_EXHAUSTED no file
// descriptor is left.
GPUSHARE_API gpushare_status gpushare_ticket_eventfd(gpushare_runtime* runtime,
                                                     gpushare_ticket ticket,
                                                     int* out_fd) GPUSHARE_NOEXCEPT;

// Asks that the task does not run, or leaves the device. OK: it was asked in time to try. A task
// that is not launched never runs and completes with VERDICT_CANCELLED; one on the device leaves at
// its next block-task boundary and completes with VERDICT_CANCELLED, with what it had done by then
// in its record, unless all of its work was done first: then it is complete with VERDICT_OK. The
// record tells; the other verdicts stay possible (a launch that fails, a device that is lost).
// Threads: any. Owns: the ticket stays the caller's. Blocks: until the pass of the flow in progress
// is done. Errors: FAILED_PRECONDITION it is complete, or on the device and cannot leave;
// INVALID_ARGUMENT stale.
GPUSHARE_API gpushare_status gpushare_ticket_cancel(gpushare_runtime* runtime,
                                                    gpushare_ticket ticket) GPUSHARE_NOEXCEPT;

// Gives the ticket back; the value is stale afterwards. The task goes on if it is not complete.
// Threads: any. Owns: takes the ticket. Blocks: no. Errors: INVALID_ARGUMENT stale.
GPUSHARE_API gpushare_status gpushare_ticket_release(gpushare_runtime* runtime,
                                                     gpushare_ticket ticket) GPUSHARE_NOEXCEPT;

// --- observation ---------------------------------------------------------------------------------

typedef struct gpushare_device_info {
  uint32_t struct_size;
  gpushare_bool simulated;
  const char* name;     // of the device: "cuda", "sim", "null"; lives as long as the library
  const char* profile;  // name of the profile; lives as long as the runtime
  const char* policy;   // static name of the policy at creation; lives as long as the runtime
  gpushare_bool virtual_time;
  gpushare_bool partitions;
  gpushare_bool eviction;
  gpushare_bool timestamps;
  int32_t sm_count;
  int32_t sm_granularity;  // partitions come in groups of so many SMs
  int32_t lanes_max;
  int32_t places_max;
  int32_t threads_per_sm;
  int32_t registers_per_sm;
  int32_t shared_memory_per_sm_bytes;
  int32_t blocks_per_sm;
  int64_t launch_latency_ns;
  int64_t completion_latency_ns;
  int64_t eviction_write_latency_ns;
  double pinned_bytes_per_ns;
} gpushare_device_info;
#define GPUSHARE_DEVICE_INFO_INIT GPUSHARE_STRUCT_INIT(gpushare_device_info)

// Threads: any. Owns: strings as said. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_device_info_get(
    gpushare_runtime* runtime, gpushare_device_info* out_info) GPUSHARE_NOEXCEPT;

// What the library can promise of a task. Bits.
enum gpushare_guarantee_bit {
  GPUSHARE_GUARANTEE_EVICTABLE = 1,  // it leaves at its next block-task boundary when LC work comes
  GPUSHARE_GUARANTEE_CONFINABLE = 2,   // it stays on the SMs of its partition
  GPUSHARE_GUARANTEE_TIMESTAMPED = 4,  // its record has the device's own start and end
  GPUSHARE_GUARANTEE_DIVISIBLE = 8     // it may be cut into slices or pieces
};

// The guarantees of a kind of task on this device; with `kernel` (may be null) of that kernel's
// tasks: `kind` is then DEFAULT or the kernel's.
// Threads: any. Owns: nothing. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_guarantees(gpushare_runtime* runtime, gpushare_task_kind kind,
                                                 gpushare_kernel* kernel,
                                                 uint32_t* out_guarantees) GPUSHARE_NOEXCEPT;

typedef struct gpushare_latency_summary {
  int64_t count;
  int64_t p50_ns;
  int64_t p99_ns;
  int64_t max_ns;
} gpushare_latency_summary;

typedef struct gpushare_runtime_stats {
  uint32_t struct_size;
  gpushare_bool simulated;
  int64_t ticks;
  int64_t plans;
  int64_t launches;
  int64_t fast_path_launches;
  int64_t evictions;
  int64_t evictions_blocked;  // the eviction write did not take effect in time
  int64_t hung;
  int64_t busy_sm_ns;  // SMs that were busy times nanoseconds, since creation
  int64_t tasks_pending;
  int64_t prediction_samples;
  double prediction_error;                    // mean absolute relative error of solo predictions
  gpushare_latency_summary eviction_latency;  // eviction call to last worker gone
  gpushare_latency_summary plan_time;         // host time of the plan stage; 0 in virtual time
  gpushare_bool device_lost;
  int32_t app_count;
} gpushare_runtime_stats;
#define GPUSHARE_RUNTIME_STATS_INIT GPUSHARE_STRUCT_INIT(gpushare_runtime_stats)

// Threads: any. Owns: nothing. Blocks: briefly. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_runtime_stats_get(
    gpushare_runtime* runtime, gpushare_runtime_stats* out_stats) GPUSHARE_NOEXCEPT;

typedef struct gpushare_app_stats {
  uint32_t struct_size;
  gpushare_app_class app_class;
  int64_t submitted;
  int64_t completed;
  int64_t failed;
  int64_t dropped;
  int64_t cancelled;
  int64_t rejected;  // refused at submit
  int64_t evictions;
  int64_t queue_depth;
  int64_t device_ns;                 // time of its tasks on the device
  int64_t work_ns;                   // predicted whole-device time of what it completed
  int64_t block_tasks;               // executed
  gpushare_latency_summary latency;  // submit (arrival for queries) to complete
} gpushare_app_stats;
#define GPUSHARE_APP_STATS_INIT GPUSHARE_STRUCT_INIT(gpushare_app_stats)

// Threads: any. Owns: nothing. Blocks: briefly. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status
gpushare_app_stats_get(gpushare_app* app, gpushare_app_stats* out_stats) GPUSHARE_NOEXCEPT;

// The number that records, events and metrics use for an app or a kernel; 0 for a bad handle.
// Threads: any. Owns: nothing. Blocks: no. Errors: none.
GPUSHARE_API uint32_t gpushare_app_id(gpushare_app* app) GPUSHARE_NOEXCEPT;
GPUSHARE_API uint32_t gpushare_kernel_id(gpushare_kernel* kernel) GPUSHARE_NOEXCEPT;

// All counters as OpenMetrics text, with a SIMULATED label where the device is. Text function: see
// gpushare_policy_names.
// Threads: any. Owns: nothing. Blocks: briefly. Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_metrics_text(gpushare_runtime* runtime, char* buffer,
                                                   size_t buffer_size_bytes,
                                                   size_t* out_size_bytes) GPUSHARE_NOEXCEPT;

typedef struct gpushare_trace_options {
  uint32_t struct_size;
  int32_t reserved;            // must be 0
  const char* perfetto_path;   // null: no Perfetto trace
  const char* event_log_path;  // null: no event log
  int64_t records_max;  // kept in memory, 64 bytes each; 0: 2^20; more are counted as dropped
} gpushare_trace_options;
#define GPUSHARE_TRACE_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_trace_options)

typedef struct gpushare_trace_summary {
  uint32_t struct_size;
  int32_t reserved;
  int64_t records;
  int64_t dropped;
  uint64_t decision_digest;  // equal for two runs that decided the same
} gpushare_trace_summary;
#define GPUSHARE_TRACE_SUMMARY_INIT GPUSHARE_STRUCT_INIT(gpushare_trace_summary)

// Starts to record events in memory.
// Threads: any. Owns: nothing. Blocks: allocates the records. Errors: INVALID_ARGUMENT no path,
// records_max out of range; FAILED_PRECONDITION a trace runs already.
GPUSHARE_API gpushare_status gpushare_trace_start(
    gpushare_runtime* runtime, const gpushare_trace_options* options) GPUSHARE_NOEXCEPT;

// Stops and writes the files. out_summary may be null.
// Threads: any but a callback's. Owns: nothing. Blocks: while the files are written. Errors:
// FAILED_PRECONDITION no trace runs; others from writing, and the trace is then over too.
GPUSHARE_API gpushare_status gpushare_trace_stop(
    gpushare_runtime* runtime, gpushare_trace_summary* out_summary) GPUSHARE_NOEXCEPT;

// What happened, one record of the event log. docs/abi.md says what a to d mean for each type.
typedef int32_t gpushare_event_type;
enum gpushare_event_type_value {
  GPUSHARE_EVENT_NONE = 0,
  GPUSHARE_EVENT_APP_CREATED = 1,
  GPUSHARE_EVENT_SUBMITTED = 2,
  GPUSHARE_EVENT_ADMITTED = 3,
  GPUSHARE_EVENT_REJECTED = 4,
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
  GPUSHARE_EVENT_LANE_ABANDONED = 16
};

typedef struct gpushare_event {
  uint32_t struct_size;
  gpushare_event_type type;
  int64_t time_ns;
  uint64_t id;  // ticket, query, app or lane
  int64_t a;
  int64_t b;
  int64_t c;
  int64_t d;
  uint32_t app_id;
  uint32_t kernel_id;
  int32_t place;  // -1: none
  gpushare_reason reason;
  int32_t detail;  // form of launches, outcome of parts, verdict of completions
  gpushare_app_class app_class;
} gpushare_event;
#define GPUSHARE_EVENT_INIT GPUSHARE_STRUCT_INIT(gpushare_event)

// "launched", "evicted", ...; "unknown" for a value that is none.
// Threads: any. Owns: static. Blocks: no. Errors: none.
GPUSHARE_API const char* gpushare_event_type_name(gpushare_event_type type) GPUSHARE_NOEXCEPT;

// Reads an event log file whole. *out_count is the number of events.
// Threads: any. Owns: the caller one reference of *out_log. Blocks: while it reads. Errors:
// NOT_FOUND; DATA_LOSS or INVALID_ARGUMENT truncated, corrupt or oversized.
GPUSHARE_API gpushare_status gpushare_event_log_open(const char* path, gpushare_event_log** out_log,
                                                     int64_t* out_count) GPUSHARE_NOEXCEPT;

// Event `index`, from 0, in order of time.
// Threads: any. Owns: nothing. Blocks: no. Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_event_log_get(gpushare_event_log* log, int64_t index,
                                                    gpushare_event* out_event) GPUSHARE_NOEXCEPT;

// Threads: any. Owns: one more reference. Blocks: no. Errors: INVALID_ARGUMENT.
GPUSHARE_API gpushare_status gpushare_event_log_retain(gpushare_event_log* log) GPUSHARE_NOEXCEPT;

// Threads: any. Owns: takes one reference. Blocks: no. Errors: INVALID_ARGUMENT. Null is allowed.
GPUSHARE_API gpushare_status gpushare_event_log_release(gpushare_event_log* log) GPUSHARE_NOEXCEPT;

// --- calibration ---------------------------------------------------------------------------------

// A kernel and one sample task of it, which runs many times: its result must not depend on how
// often. Of the task only block_tasks, arguments and the grid are read; null: no arguments.
typedef struct gpushare_calibration_item {
  const gpushare_kernel_options* kernel;
  const gpushare_task_options* task;
} gpushare_calibration_item;

// A fused kernel of two items. It has no struct_size: it never changes.
typedef struct gpushare_calibration_fused {
  const gpushare_fused_kernel_options* fused;  // tensor_part and cuda_part are null here
  uint32_t tensor_item;                        // of the options' items, from 0
  uint32_t cuda_item;
  int32_t local_bytes;  // local memory of a thread; above 0: it spills and is not measured
  uint32_t reserved;    // must be 0
} gpushare_calibration_fused;

// Whether a kernel's speed follows the SMs that it has, or stops growing at some number of them.
typedef int32_t gpushare_intensity;
enum gpushare_intensity_value {
  GPUSHARE_INTENSITY_UNKNOWN = 0,
  GPUSHARE_INTENSITY_COMPUTE = 1,
  GPUSHARE_INTENSITY_MEMORY = 2
};

// What was measured of one kernel. Pointers live for the callback.
typedef struct gpushare_kernel_calibration {
  uint32_t struct_size;
  gpushare_task_kind kind;
  const char* name;
  int64_t block_tasks;       // of the sample task
  int64_t solo_ns;           // one launch of the original form on the whole device
  int64_t worker_solo_ns;    // of the worker form, 0: it has none
  int64_t block_task_ns;     // all workers of an SM resident, alone
  int64_t eviction_p50_ns;   // from the eviction call to the end of the evicted launch
  int64_t eviction_p99_ns;   // 0: not evictable
  double block_task_spread;  // relative standard deviation, 0: none seen
  double worker_overhead;    // PTB overhead, 0.003 = 0.3 %; below 0: workers are faster
  double saturating_occupancy;
  const gpushare_speed_point* speed;  // by sms, ascending
  const int32_t* knees;               // SM counts at which it is unusually fast
  uint32_t speed_count;
  uint32_t knee_count;
  int32_t workers_per_sm_max;  // M
  gpushare_bool kept;          // taken from the checkpoint, not measured now
  int64_t slice_block_tasks;   // the smallest slice within the overhead allowed; 0: none was found
  double slice_overhead;       // of the task in such slices over one launch
  int32_t workers_per_sm_least;  // the fewest workers an SM within 1 % of full speed; 0: unknown
  gpushare_intensity intensity;
} gpushare_kernel_calibration;
#define GPUSHARE_KERNEL_CALIBRATION_INIT GPUSHARE_STRUCT_INIT(gpushare_kernel_calibration)

typedef struct gpushare_calibration_progress {
  uint32_t struct_size;
  int32_t done;  // of `total`: the device, each kernel, each pair of them, each fused kernel
  int32_t total;
  int32_t reserved;
  const char* what;  // "device", or what is measured now or was just measured
  const gpushare_kernel_calibration* kernel;  // what was just measured, else null
  const char* note;  // after the last kernel: a sentence on what could not be measured, else null
} gpushare_calibration_progress;
#define GPUSHARE_CALIBRATION_PROGRESS_INIT GPUSHARE_STRUCT_INIT(gpushare_calibration_progress)

// Runs many times, on the caller's thread, between measurements. It must not call the API.
typedef void (*gpushare_calibration_callback)(void* user,
                                              const gpushare_calibration_progress* progress);

typedef struct gpushare_calibration_options {
  uint32_t struct_size;
  int32_t device_ordinal;                  // which GPU, from 0
  const char* device;                      // as in gpushare_runtime_options
  const char* profile_path;                // what is not measured; null: the one that is built in
  const char* output_path;                 // the profile to write; must be given
  const gpushare_calibration_item* items;  // must be given
  const volatile int32_t* cancel;          // may be null; not 0: stop soon, with CANCELLED
  const char* sim_tier;                    // as in gpushare_runtime_options
  const char* sim_faults;                  // as in gpushare_runtime_options
  uint64_t seed;                           // 0: 1
  int64_t kernel_time_ns;                  // device time for each kernel; 0: 30 s
  int64_t hang_limit_ns;                   // of one launch; 0: 10 s
  // For the rates of copies; without them those of the profile are kept. May be null on simulated
  // devices. `pageable_buffer` is ordinary host memory.
  void* device_buffer;
  void* pinned_buffer;
  void* pageable_buffer;
  int64_t buffer_size_bytes;  // of each; 128 MB is enough
  uint32_t item_count;
  int32_t repeats;       // samples of each duration, of which the median counts; 0: 7
  int32_t evictions;     // of each kernel, at most 128; 0: 100
  gpushare_bool resume;  // go on from the checkpoint, output_path with ".partial", if there is one
  const gpushare_calibration_fused* fused;  // may be null
  // Device time of this call; 0: no bound. What it does not reach is noted, and the checkpoint
  // stays.
  int64_t total_time_ns;
  double slice_overhead_max;  // of the smallest slice, 0.02 = 2 %; 0: 0.02
  uint32_t fused_count;
  uint32_t reserved;  // must be 0
} gpushare_calibration_options;
#define GPUSHARE_CALIBRATION_OPTIONS_INIT GPUSHARE_STRUCT_INIT(gpushare_calibration_options)

// Measures a device and kernels on it, and writes their profile (docs/calibration.md). The device
// must be idle, and no runtime may use it. After the durations of each kernel a checkpoint is
// written, of the rest at most once a second.
// Threads: any but a callback's. Owns: nothing. Blocks: about kernel_time_ns a kernel. Errors:
// INVALID_ARGUMENT; CANCELLED and DEADLINE_EXCEEDED (a launch hangs) the checkpoint stays;
// UNAVAILABLE no such device, or it was lost; DATA_LOSS the profile or the checkpoint is corrupt;
// FAILED_PRECONDITION the checkpoint is of another GPU, or work takes no time on the device.
GPUSHARE_API gpushare_status gpushare_calibrate(const gpushare_calibration_options* options,
                                                gpushare_calibration_callback progress,
                                                void* user) GPUSHARE_NOEXCEPT;

// --- profiles ------------------------------------------------------------------------------------

// Loads kernels and what was learned from a profile of the same GPU model. All or nothing; kernels
// that are registered keep their records.
// Threads: any. Owns: nothing. Blocks: while it reads and the flow is quiet. Errors: NOT_FOUND;
// DATA_LOSS or INVALID_ARGUMENT truncated, corrupt or out of range; FAILED_PRECONDITION another
// GPU.
GPUSHARE_API gpushare_status gpushare_profile_load(gpushare_runtime* runtime,
                                                   const char* path) GPUSHARE_NOEXCEPT;

// Saves the runtime's profile with what was learned. A crash leaves the old file or the new one.
// Threads: any. Owns: nothing. Blocks: while it writes. Errors: INVALID_ARGUMENT, UNAVAILABLE or
// PERMISSION_DENIED the path cannot be written.
GPUSHARE_API gpushare_status gpushare_profile_save(gpushare_runtime* runtime,
                                                   const char* path) GPUSHARE_NOEXCEPT;

// Reads a profile file and says what is wrong with it, without a runtime.
// Threads: any. Owns: nothing. Blocks: while it reads. Errors: as gpushare_profile_load.
GPUSHARE_API gpushare_status gpushare_profile_validate(const char* path) GPUSHARE_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GPUSHARE_GPUSHARE_H_
