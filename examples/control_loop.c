/* A control loop with a period and a deadline beside perception and training on one GPU, in C, with
   bounds that are proved before it starts (docs/partition-planner.md). It runs on the simulated
   device in virtual time, so that it needs no GPU; control_loop.py is the same in Python.

     create the periodic apps -> plan their partitions -> release a job each period -> read what
     was promised and what it got

   A program on a GPU has the device "cuda" and GPUSHARE_DRIVE_THREAD, and releases each job by its
   own timer: there virtual time and gpushare_poll_until() do not pace it. Its worst cases are
   measured there: the maximum of at least 500 runs on so many SMs, with launch and completion,
   beside the same best-effort work. */
#include <gpushare/gpushare.h>
#include <stdio.h>
#include <stdlib.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
enum { JOBS = 2 };

struct job {
  const char* name;
  int64_t period_ns;
  int64_t deadline_ns;
  int64_t block_tasks; /* of a job */
  gpushare_worst_case worst_cases[2];
  gpushare_queue* queue;
  gpushare_app* app;
};

static void check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  fprintf(stderr, "%s: %s\n", gpushare_status_name(status), gpushare_last_error_message());
  exit(1);
}

static void create(gpushare_runtime* runtime, struct job* job) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  options.name = job->name;
  options.period_ns = job->period_ns;     /* two jobs arrive at least this far apart */
  options.deadline_ns = job->deadline_ns; /* from a job's arrival to its end */
  options.worst_cases = job->worst_cases;
  options.worst_case_count = 2;
  check(gpushare_app_create(runtime, &options, &job->app));
  check(gpushare_queue_create(job->app, &job->queue));
}

static void start_training(gpushare_runtime* runtime, gpushare_kernel* kernel) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  options.name = "training";
  gpushare_app* app = NULL;
  gpushare_queue* queue = NULL;
  check(gpushare_app_create(runtime, &options, &app));
  check(gpushare_queue_create(app, &queue));
  gpushare_task_options step = GPUSHARE_TASK_OPTIONS_INIT;
  step.kernel = kernel;
  step.block_tasks = 20000000;
  check(gpushare_submit_be(queue, &step, NULL));
}

/* Releases a job of each app every period. No ticket is kept; the guarantee counts the jobs. */
static void run_for(gpushare_runtime* runtime, gpushare_kernel* kernel, struct job* jobs,
                    int64_t span_ns) {
  for (int64_t now_ns = 0; now_ns < span_ns; now_ns += MS) {
    check(gpushare_poll_until(runtime, now_ns));
    for (int i = 0; i < JOBS; ++i) {
      if (now_ns % jobs[i].period_ns != 0) continue;
      gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
      task.kernel = kernel;
      task.block_tasks = jobs[i].block_tasks;
      check(gpushare_submit_lc(jobs[i].queue, &task, NULL));
    }
  }
  check(gpushare_poll_until(runtime, span_ns + 40 * MS));
}

/* Prints what became of the jobs. Returns whether all kept their deadline and their bound. */
static int report(const struct job* job) {
  gpushare_app_guarantee got = GPUSHARE_APP_GUARANTEE_INIT;
  check(gpushare_app_guarantee_get(job->app, &got));
  printf("%s: %lld jobs on %d SMs, %lld late; longest %.2f ms of the bound %.2f ms\n", job->name,
         (long long)got.jobs, got.partition_sms, (long long)got.deadlines_missed,
         (double)got.response_ns_max / (double)MS, (double)got.response_bound_ns / (double)MS);
  return got.jobs > 0 && got.deadlines_missed == 0 && got.response_ns_max <= got.response_bound_ns;
}

int main(void) {
  struct job jobs[JOBS] = {
      {"control", 2 * MS, 1500 * US, 2000, {{8, 0, 1050 * US}, {16, 0, 560 * US}}, NULL, NULL},
      {"perception", 33 * MS, 30 * MS, 100000, {{16, 0, 26 * MS}, {32, 0, 14 * MS}}, NULL, NULL},
  };
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  options.policy = "partitioned";
  gpushare_runtime* runtime = NULL;
  check(gpushare_runtime_create(&options, &runtime));
  for (int i = 0; i < JOBS; ++i) create(runtime, &jobs[i]);

  gpushare_partition_options how = GPUSHARE_PARTITION_OPTIONS_INIT;
  gpushare_partition_plan plan = GPUSHARE_PARTITION_PLAN_INIT;
  check(gpushare_plan_partitions(runtime, &how, &plan)); /* RESOURCE_EXHAUSTED says why it is no */
  printf("%d partitions of %d SMs, %d for training\n", plan.partitions, plan.partition_sms,
         plan.rest_sms);

  gpushare_kernel_options known = GPUSHARE_KERNEL_OPTIONS_INIT;
  known.name = "sincos_27us"; /* a name of the built-in profile */
  gpushare_kernel* kernel = NULL;
  check(gpushare_kernel_register(runtime, &known, &kernel));
  start_training(runtime, kernel);
  run_for(runtime, kernel, jobs, 500 * MS);
  int kept = 1;
  for (int i = 0; i < JOBS; ++i) kept = report(&jobs[i]) && kept;
  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  check(gpushare_runtime_release(runtime)); /* what is left holds it until the process ends */
  return kept ? 0 : 1;
}
