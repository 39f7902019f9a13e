/* Uses the installed C header and library: one LC task on the null device. */
#include <gpushare/gpushare.h>
#include <stdio.h>

static int check(gpushare_status status, const char* what) {
  if (status == GPUSHARE_OK) return 0;
  fprintf(stderr, "%s: %s: %s\n", what, gpushare_status_name(status),
          gpushare_last_error_message());
  return 1;
}

int main(void) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  gpushare_app_options app_options = GPUSHARE_APP_OPTIONS_INIT;
  gpushare_kernel_options kernel_options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  gpushare_runtime* runtime = NULL;
  gpushare_app* app = NULL;
  gpushare_queue* queue = NULL;
  gpushare_kernel* kernel = NULL;
  gpushare_ticket ticket;
  int failures = 0;

  options.device = "null";
  options.drive = GPUSHARE_DRIVE_POLL;
  if (check(gpushare_runtime_create(&options, &runtime), "runtime_create")) return 1;
  app_options.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  app_options.name = "service";
  if (check(gpushare_app_create(runtime, &app_options, &app), "app_create")) return 1;
  if (check(gpushare_queue_create(app, &queue), "queue_create")) return 1;
  kernel_options.name = "kernel";
  if (check(gpushare_kernel_register(runtime, &kernel_options, &kernel), "kernel_register"))
    return 1;
  task.kernel = kernel;
  task.block_tasks = 16;
  if (check(gpushare_submit_lc(queue, &task, &ticket), "submit_lc")) return 1;
  failures += check(gpushare_ticket_wait(runtime, ticket, GPUSHARE_NEVER), "ticket_wait");
  failures += check(gpushare_ticket_record(runtime, ticket, &record), "ticket_record");
  if (record.verdict != GPUSHARE_VERDICT_OK || record.block_tasks != 16) {
    fprintf(stderr, "verdict %s with %lld block tasks, and 16 were asked for\n",
            gpushare_verdict_name(record.verdict), (long long)record.block_tasks);
    ++failures;
  }
  failures += check(gpushare_ticket_release(runtime, ticket), "ticket_release");
  failures += check(gpushare_kernel_release(kernel), "kernel_release");
  failures += check(gpushare_queue_release(queue), "queue_release");
  failures += check(gpushare_app_release(app), "app_release");
  failures += check(gpushare_runtime_release(runtime), "runtime_release");
  if (failures == 0) printf("consumer in C: gpushare %s works\n", gpushare_version_string());
  return failures != 0;
}
