// A client that was compiled with the headers of release 0.1 runs with the library of today.
//
// It includes only release_0_1/: its structs have the sizes of then. Behind each result struct lies
// a guard that the library must not touch, and each option struct lies at the end of its page, so
// that a read beyond its size faults. Exit code 0: all is well.

#define _GNU_SOURCE
#include <gpushare/gpushare.h>
#include <gpushare/gpushare_policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD UINT64_C(0x5ca1ab1e5ca1ab1e)
#define GUARDED(type)   \
  struct {              \
    type value;         \
    uint64_t guards[8]; \
  }

static int failures;

static void Check(int good, const char* what, int line) {
  if (good) return;
  fprintf(stderr, "old_client_test.c:%d: %s: %s\n", line, what, gpushare_last_error_message());
  ++failures;
}
#define CHECK(condition) Check((condition), #condition, __LINE__)
#define OK(call) Check((call) == GPUSHARE_OK, #call, __LINE__)

// Calls with a result struct of the old size: it keeps its size, and the guards stay.
#define READ(guarded, call)                                                                 \
  do {                                                                                      \
    for (size_t guard_ = 0; guard_ < 8; ++guard_) (guarded).guards[guard_] = GUARD;         \
    OK(call);                                                                               \
    CHECK((guarded).value.struct_size == sizeof((guarded).value));                          \
    for (size_t guard_ = 0; guard_ < 8; ++guard_) CHECK((guarded).guards[guard_] == GUARD); \
  } while (0)

// A copy of an option struct that ends where its page ends; the next page cannot be read.
static void* AtPageEnd(const void* options, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* const pages =
      mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || size > page) abort();
  mprotect(pages + page, page, PROT_NONE);
  return memcpy(pages + page - size, options, size);
}
#define AT_PAGE_END(options) AtPageEnd(&(options), sizeof(options))

static int completions;
static void OnComplete(void* user, const gpushare_completion_record* record) {
  (void)user;
  CHECK(record->struct_size >= sizeof(gpushare_completion_record));
  CHECK(record->verdict == GPUSHARE_VERDICT_OK);
  ++completions;
}

static void PlanNothing(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  (void)user;
  (void)snapshot;
  (void)plan;
}

static gpushare_app* MakeApp(gpushare_runtime* runtime, gpushare_app_class app_class,
                             const char* name) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  gpushare_app* app = NULL;
  options.app_class = app_class;
  options.name = name;
  OK(gpushare_app_create(runtime, AT_PAGE_END(options), &app));
  return app;
}

static gpushare_kernel* Register(gpushare_runtime* runtime, const char* name) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_kernel* kernel = NULL;
  options.name = name;
  OK(gpushare_kernel_register(runtime, AT_PAGE_END(options), &kernel));
  return kernel;
}

static void RunTasks(gpushare_runtime* runtime, gpushare_queue* lc, gpushare_queue* be,
                     gpushare_kernel* graph, gpushare_kernel* kernel) {
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  gpushare_ticket tickets[2];
  GUARDED(gpushare_completion_record) record = {.value = GPUSHARE_COMPLETION_RECORD_INIT};
  task.kernel = kernel;
  task.block_tasks = 1000;
  task.callback = OnComplete;
  OK(gpushare_submit_be(be, AT_PAGE_END(task), &tickets[0]));
  memset(&task, 0, sizeof(task));
  task.struct_size = sizeof(task);
  task.kernel = graph;
  OK(gpushare_submit_lc(lc, AT_PAGE_END(task), &tickets[1]));
  OK(gpushare_runtime_drain(runtime, GPUSHARE_NEVER));
  for (int i = 0; i < 2; ++i) {
    READ(record, gpushare_ticket_record(runtime, tickets[i], &record.value));
    CHECK(record.value.verdict == GPUSHARE_VERDICT_OK);
    OK(gpushare_ticket_release(runtime, tickets[i]));
  }
  CHECK(completions == 1);
}

static void ReadEverything(gpushare_runtime* runtime, gpushare_app* app) {
  GUARDED(gpushare_device_info) device = {.value = GPUSHARE_DEVICE_INFO_INIT};
  GUARDED(gpushare_runtime_stats) stats = {.value = GPUSHARE_RUNTIME_STATS_INIT};
  GUARDED(gpushare_app_stats) app_stats = {.value = GPUSHARE_APP_STATS_INIT};
  GUARDED(gpushare_kernel_info) info = {.value = GPUSHARE_KERNEL_INFO_INIT};
  READ(device, gpushare_device_info_get(runtime, &device.value));
  READ(stats, gpushare_runtime_stats_get(runtime, &stats.value));
  READ(app_stats, gpushare_app_stats_get(app, &app_stats.value));
  READ(info, gpushare_kernel_info_by_name(runtime, "sincos_27us", &info.value));
  CHECK(stats.value.tasks_pending == 0);
  CHECK(app_stats.value.submitted == 1);
}

static void TraceAndRead(gpushare_runtime* runtime) {
  char path[64];
  gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
  GUARDED(gpushare_trace_summary) summary = {.value = GPUSHARE_TRACE_SUMMARY_INIT};
  GUARDED(gpushare_event) event = {.value = GPUSHARE_EVENT_INIT};
  gpushare_event_log* log = NULL;
  int64_t count = 0;
  gpushare_app* app = NULL;
  snprintf(path, sizeof path, "old_client_%d.log", (int)getpid());
  options.event_log_path = path;
  options.records_max = 64;
  OK(gpushare_trace_start(runtime, AT_PAGE_END(options)));
  app = MakeApp(runtime, GPUSHARE_CLASS_BEST_EFFORT, "traced");
  OK(gpushare_app_release(app));
  READ(summary, gpushare_trace_stop(runtime, &summary.value));
  OK(gpushare_event_log_open(path, &log, &count));
  CHECK(count == summary.value.records && count > 0);
  READ(event, gpushare_event_log_get(log, 0, &event.value));
  OK(gpushare_event_log_release(log));
  unlink(path);
}

static void SetOwnPolicy(gpushare_runtime* runtime) {
  gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
  table.name = "old";
  table.make_plan = PlanNothing;
  OK(gpushare_set_user_policy(runtime, AT_PAGE_END(table)));
  OK(gpushare_set_policy(runtime, "adaptive"));
}

static void Run(const char* device) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  gpushare_reservation_options reservation = GPUSHARE_RESERVATION_OPTIONS_INIT;
  gpushare_runtime* runtime = NULL;
  gpushare_app* apps[2];
  gpushare_queue* queues[2];
  gpushare_kernel* kernels[2];
  completions = 0;
  options.device = device;
  options.drive = GPUSHARE_DRIVE_POLL;
  OK(gpushare_runtime_create(AT_PAGE_END(options), &runtime));
  apps[0] = MakeApp(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
  apps[1] = MakeApp(runtime, GPUSHARE_CLASS_BEST_EFFORT, "training");
  OK(gpushare_queue_create(apps[0], &queues[0]));
  OK(gpushare_queue_create(apps[1], &queues[1]));
  OK(gpushare_reserve_capsm(apps[1], AT_PAGE_END(reservation)));
  kernels[0] = Register(runtime, "chain1");
  kernels[1] = Register(runtime, "sincos_27us");
  RunTasks(runtime, queues[0], queues[1], kernels[0], kernels[1]);
  ReadEverything(runtime, apps[1]);
  TraceAndRead(runtime);
  SetOwnPolicy(runtime);
  OK(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  for (int i = 0; i < 2; ++i) {
    OK(gpushare_queue_release(queues[i]));
    OK(gpushare_app_release(apps[i]));
    OK(gpushare_kernel_release(kernels[i]));
  }
  OK(gpushare_runtime_release(runtime));
}

int main(void) {
  CHECK(gpushare_abi_version() == GPUSHARE_ABI_VERSION);
  Run("sim");
  Run("null");
  return failures == 0 ? 0 : 1;
}
