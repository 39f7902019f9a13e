/* A latency-critical service beside best-effort work, in C. README.md shows what lies between the
   marks. It runs on the simulated device in real time, because its kernels are names of the
   built-in profile and bring no code (own_kernel/ does). */
#define _POSIX_C_SOURCE 200809L
#include <gpushare/gpushare.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { QUERIES = 100 };

static void check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  fprintf(stderr, "%s: %s\n", gpushare_status_name(status), gpushare_last_error_message());
  exit(1);
}

static gpushare_kernel* find_kernel(gpushare_runtime* runtime, const char* name) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_kernel* kernel = NULL;
  options.name = name; /* the built-in profile knows the rest */
  check(gpushare_kernel_register(runtime, &options, &kernel));
  return kernel;
}

/* A best-effort app with one step of 0.3 s in flight. */
static gpushare_app* start_training(gpushare_runtime* runtime) {
  gpushare_app_options training = GPUSHARE_APP_OPTIONS_INIT;
  training.name = "training";
  training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  gpushare_app* app = NULL;
  gpushare_queue* queue = NULL;
  check(gpushare_app_create(runtime, &training, &app));
  check(gpushare_queue_create(app, &queue));
  gpushare_task_options step = GPUSHARE_TASK_OPTIONS_INIT;
  step.kernel = find_kernel(runtime, "sincos_27us");
  step.block_tasks = 10000000;
  check(gpushare_submit_be(queue, &step, NULL)); /* no ticket: nobody waits for it */
  return app;
}

static int compare(const void* a, const void* b) {
  const int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

/* The p99 of queries with pauses of 1 ms. */
static int64_t p99_of_queries(gpushare_queue* queue, const gpushare_task_options* request) {
  static int64_t latency_ns[QUERIES];
  const struct timespec pause = {0, 1000000};
  for (int i = 0; i < QUERIES; ++i) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
    check(gpushare_run_lc(queue, request, GPUSHARE_NEVER, &verdict, NULL));
    clock_gettime(CLOCK_MONOTONIC, &end);
    latency_ns[i] = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
    nanosleep(&pause, NULL);
  }
  qsort(latency_ns, QUERIES, sizeof(latency_ns[0]), compare);
  return latency_ns[QUERIES * 99 / 100 - 1];
}

int main(void) {
  /* README begins */
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim:realtime"; /* simulated work takes its time; on a GPU "cuda" */
  gpushare_runtime* runtime = NULL;
  check(gpushare_runtime_create(&options, &runtime)); /* check() prints the error and exits */

  gpushare_app_options service = GPUSHARE_APP_OPTIONS_INIT;
  service.name = "service";
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  gpushare_app* app = NULL;
  gpushare_queue* queue = NULL;
  check(gpushare_app_create(runtime, &service, &app));
  check(gpushare_queue_create(app, &queue));
  gpushare_task_options request = GPUSHARE_TASK_OPTIONS_INIT;
  request.kernel = find_kernel(runtime, "chain1"); /* a name of the built-in profile */
  const int64_t alone_ns = p99_of_queries(queue, &request);

  gpushare_app_update_options promise = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  promise.fields = GPUSHARE_APP_FIELD_P99_BOUND | GPUSHARE_APP_FIELD_P99_ALONE_NS;
  promise.p99_bound = 1.05; /* p99 at most 5 % above running alone */
  promise.p99_alone_ns = alone_ns;
  check(gpushare_app_update(app, &promise));
  gpushare_app* training = start_training(runtime); /* a best-effort app, in the same file */
  const int64_t beside_ns = p99_of_queries(queue, &request);

  gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
  check(gpushare_app_stats_get(training, &stats));
  printf("p99 alone %lld us, beside training %lld us: %.3f; training was evicted %lld times\n",
         (long long)alone_ns / 1000, (long long)beside_ns / 1000,
         (double)beside_ns / (double)alone_ns, (long long)stats.evictions);
  /* README ends */
  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  check(gpushare_runtime_release(runtime)); /* what is left holds it until the process ends */
  return stats.evictions > 0 ? 0 : 1;
}
