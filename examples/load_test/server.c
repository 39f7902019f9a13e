/* A server under load beside best-effort work, in C and without a GPU (docs/load-tests.md).

     load_test_c                    200 queries of 5 ms on the simulated device in real time
     load_test_c 5000 400           400 queries of 5,000 us
     load_test_c chain1 400         400 queries of a graph of the built-in profile
     load_test_c 5000 400 virtual   the same arrivals in virtual time, which this thread moves

   Queries arrive whether or not earlier ones are answered, and callbacks answer them. The first
   line is the service alone, the second one beside steps of training. */
#define _GNU_SOURCE
#include <gpushare/gpushare.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUERIES_MAX = 10000, STEPS_OUTSTANDING = 2 };

static const char* kernel_name = "5000";
static int queries = 200;
static int is_virtual = 0;

static gpushare_runtime* runtime;
static gpushare_queue* training_queue;
static gpushare_kernel* step;
static int64_t latency_ns[QUERIES_MAX];
static atomic_int stop;
static atomic_long evictions;

static void check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  fprintf(stderr, "%s: %s\n", gpushare_status_name(status), gpushare_last_error_message());
  exit(1);
}

/* A name of the built-in profile, or a graph of 50 us kernels that takes so many microseconds. */
static gpushare_kernel* register_kernel(const char* name) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  gpushare_graph_node node = {.duration_ns = 50000, .blocks = 132, .repeat = atoi(name) / 50};
  gpushare_kernel* kernel = NULL;
  options.name = name;
  if (node.repeat > 0) {
    options.kind = GPUSHARE_TASK_GRAPH;
    record.nodes = &node;
    record.node_count = 1;
    options.simulation = &record;
    options.solo_ns = (int64_t)node.repeat * node.duration_ns;
  }
  check(gpushare_kernel_register(runtime, &options, &kernel));
  return kernel;
}

static gpushare_queue* open_queue(gpushare_app_options options, gpushare_app** app) {
  gpushare_queue* queue = NULL;
  check(gpushare_app_create(runtime, &options, app));
  check(gpushare_queue_create(*app, &queue));
  return queue;
}

static void on_step(void* user, const gpushare_completion_record* record);

/* A callback may pass its look at `stop` just before the shutdown, which then refuses the step. */
static void submit_step(void) {
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = step;
  task.block_tasks = 100000;
  task.callback = on_step;
  const gpushare_status status = gpushare_submit_be(training_queue, &task, NULL);
  if (status == GPUSHARE_FAILED_PRECONDITION && atomic_load(&stop)) return;
  check(status);
}

static void on_step(void* user, const gpushare_completion_record* record) {
  (void)user;
  atomic_fetch_add(&evictions, record->evictions);
  if (!atomic_load(&stop)) submit_step();
}

static void on_answer(void* user, const gpushare_completion_record* record) {
  *(int64_t*)user = record->complete_ns - record->submit_ns;
}

/* Until this time of the device's clock: in real time that is CLOCK_MONOTONIC. */
static void sleep_until(int64_t time_ns) {
  if (is_virtual) {
    check(gpushare_poll_until(runtime, time_ns));
    return;
  }
  struct timespec until = {(time_t)(time_ns / 1000000000), (long)(time_ns % 1000000000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Poisson arrivals, the same in each run and in each of the three programs. */
static double next_gap(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return -log(1 - (double)(*state >> 11) / 9007199254740992.0);
}

static int compare(const void* a, const void* b) {
  const int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

static int64_t quantile_ns(int percent) { return latency_ns[(queries * percent + 99) / 100 - 1]; }

/* Returns the p99 of the queries. `alone_ns`: that of a run without steps; 0: this is that run. */
static int64_t serve(int64_t alone_ns) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = is_virtual ? "sim" : "sim:realtime";
  options.drive = is_virtual ? GPUSHARE_DRIVE_POLL : GPUSHARE_DRIVE_THREAD;
  check(gpushare_runtime_create(&options, &runtime));
  gpushare_app_options service = GPUSHARE_APP_OPTIONS_INIT, training = GPUSHARE_APP_OPTIONS_INIT;
  gpushare_app *service_app = NULL, *training_app = NULL;
  service.name = "service";
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  service.p99_bound = alone_ns > 0 ? 1.05 : 0;
  service.p99_alone_ns = alone_ns;
  training.name = "training";
  training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  gpushare_queue* service_queue = open_queue(service, &service_app);
  training_queue = open_queue(training, &training_app);
  gpushare_kernel* model = register_kernel(kernel_name);
  step = register_kernel("sincos_27us");
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  check(gpushare_kernel_info_by_name(runtime, kernel_name, &info));

  atomic_store(&stop, 0);
  for (int i = 0; alone_ns > 0 && i < STEPS_OUTSTANDING; ++i) submit_step();
  uint64_t state = 7;
  int64_t arrival_ns = 0;
  check(gpushare_now_ns(runtime, &arrival_ns));
  for (int i = 0; i < queries; ++i) {
    arrival_ns += (int64_t)(next_gap(&state) * (double)info.solo_ns / 0.3); /* a load of 0.3 */
    sleep_until(arrival_ns);
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = model;
    task.callback = on_answer;
    task.callback_user = &latency_ns[i];
    check(gpushare_submit_lc(service_queue, &task, NULL));
  }
  atomic_store(&stop, 1);
  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER)); /* answers what was submitted */
  gpushare_queue_release(service_queue);
  gpushare_queue_release(training_queue);
  gpushare_kernel_release(model);
  gpushare_kernel_release(step);
  gpushare_app_release(service_app);
  gpushare_app_release(training_app);
  check(gpushare_runtime_release(runtime));
  qsort(latency_ns, (size_t)queries, sizeof(latency_ns[0]), compare);
  return quantile_ns(99);
}

int main(int argc, char** argv) {
  if (argc > 1) kernel_name = argv[1];
  if (argc > 2) queries = atoi(argv[2]);
  if (argc > 3) is_virtual = strcmp(argv[3], "virtual") == 0;
  if (queries < 1 || queries > QUERIES_MAX) {
    fprintf(stderr, "The number of queries is %d, and it must lie between 1 and %d.\n", queries,
            QUERIES_MAX);
    return 2;
  }
  const int64_t alone_ns = serve(0);
  printf("alone: p50 %.1f us, p99 %.1f us\n", (double)quantile_ns(50) / 1e3,
         (double)alone_ns / 1e3);
  const int64_t beside_ns = serve(alone_ns);
  printf("beside training: p50 %.1f us, p99 %.1f us, %.3f of alone; steps evicted %ld times\n",
         (double)quantile_ns(50) / 1e3, (double)beside_ns / 1e3,
         (double)beside_ns / (double)alone_ns, atomic_load(&evictions));
  return 0;
}
