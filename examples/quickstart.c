/* One latency-critical query beside best-effort work, in C. Without a GPU it runs simulated; with
   one set GPUSHARE_DEVICE=sim, as its kernels are names of the profile and bring no code
   (own_kernel/ does). */
#include <gpushare/gpushare.h>
#include <stdio.h>
#include <stdlib.h>

static void check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  fprintf(stderr, "%s: %s\n", gpushare_status_name(status), gpushare_last_error_message());
  exit(1);
}

static gpushare_queue* make_queue(gpushare_runtime* runtime, const gpushare_app_options* options) {
  gpushare_app* app;
  gpushare_queue* queue;
  check(gpushare_app_create(runtime, options, &app));
  check(gpushare_queue_create(app, &queue));
  check(gpushare_app_release(app)); /* the queue keeps it */
  return queue;
}

static gpushare_kernel* find_kernel(gpushare_runtime* runtime, const char* name) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_kernel* kernel = NULL;
  options.name = name; /* the built-in profile knows the rest */
  check(gpushare_kernel_register(runtime, &options, &kernel));
  return kernel;
}

int main(void) {
  gpushare_runtime* runtime = NULL;
  check(gpushare_runtime_create(NULL, &runtime));
  gpushare_app_options service = GPUSHARE_APP_OPTIONS_INIT, training = GPUSHARE_APP_OPTIONS_INIT;
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  service.name = "service";
  service.p99_bound = 1.05;
  service.p99_alone_ns = 2000000; /* measured without neighbours */
  training.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  training.name = "training";
  gpushare_queue* lc = make_queue(runtime, &service);
  gpushare_queue* be = make_queue(runtime, &training);
  gpushare_kernel* model = find_kernel(runtime, "chain1");
  gpushare_kernel* gradient = find_kernel(runtime, "sincos_27us");
  gpushare_task_options step = GPUSHARE_TASK_OPTIONS_INIT, request = GPUSHARE_TASK_OPTIONS_INIT;
  step.kernel = gradient;
  step.block_tasks = 100000;
  check(gpushare_submit_be(be, &step, NULL)); /* no ticket: detached */
  request.kernel = model;
  gpushare_ticket ticket;
  check(gpushare_submit_lc(lc, &request, &ticket));
  check(gpushare_ticket_wait(runtime, ticket, GPUSHARE_NEVER));
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  check(gpushare_ticket_record(runtime, ticket, &record));
  printf("query: %s in %lld us\n", gpushare_verdict_name(record.verdict),
         (long long)(record.complete_ns - record.submit_ns) / 1000);
  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  check(gpushare_ticket_release(runtime, ticket));
  check(gpushare_runtime_release(runtime)); /* what is left holds it until the process ends */
  return record.verdict == GPUSHARE_VERDICT_OK ? 0 : 1;
}
