/* One latency-critical query beside best-effort work, in C. README.md shows what lies between the
   marks. Without a GPU it runs simulated. With one, set GPUSHARE_DEVICE=sim: its kernels are names
   of the built-in profile and bring no code (own_kernel/ does). */
#include <gpushare/gpushare.h>
#include <stdio.h>
#include <stdlib.h>

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

/* A best-effort app with one step in flight. */
static void start_training(gpushare_runtime* runtime) {
  gpushare_app_options training = GPUSHARE_APP_OPTIONS_INIT;
  training.name = "training";
  training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  gpushare_app* app = NULL;
  gpushare_queue* queue = NULL;
  check(gpushare_app_create(runtime, &training, &app));
  check(gpushare_queue_create(app, &queue));
  gpushare_task_options step = GPUSHARE_TASK_OPTIONS_INIT;
  step.kernel = find_kernel(runtime, "sincos_27us");
  step.block_tasks = 100000;
  check(gpushare_submit_be(queue, &step, NULL)); /* no ticket: nobody waits for it */
}

int main(void) {
  /* README begins */
  gpushare_runtime* runtime = NULL;
  check(gpushare_runtime_create(NULL, &runtime)); /* check() prints the error and exits */
  start_training(runtime);                        /* a best-effort app, in the same file */

  gpushare_app_options service = GPUSHARE_APP_OPTIONS_INIT;
  service.name = "service";
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  service.p99_bound = 1.05;       /* p99 at most 5 % above running alone, */
  service.p99_alone_ns = 2000000; /* which was measured before: 2 ms */
  gpushare_app* app = NULL;
  gpushare_queue* queue = NULL;
  check(gpushare_app_create(runtime, &service, &app));
  check(gpushare_queue_create(app, &queue));

  gpushare_task_options request = GPUSHARE_TASK_OPTIONS_INIT;
  request.kernel = find_kernel(runtime, "chain1"); /* a name of the built-in profile */
  gpushare_ticket ticket;
  check(gpushare_submit_lc(queue, &request, &ticket)); /* launched before it returns */
  check(gpushare_ticket_wait(runtime, ticket, GPUSHARE_NEVER));

  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  check(gpushare_ticket_record(runtime, ticket, &record));
  printf("query: %s in %lld us\n", gpushare_verdict_name(record.verdict),
         (long long)(record.complete_ns - record.submit_ns) / 1000);
  /* README ends */
  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  check(gpushare_ticket_release(runtime, ticket));
  check(gpushare_runtime_release(runtime)); /* what is left holds it until the process ends */
  return record.verdict == GPUSHARE_VERDICT_OK ? 0 : 1;
}
