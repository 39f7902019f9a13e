/* A policy of the application's own, in C: BE runs only while no LC query is active. */
#include <gpushare/gpushare_policy.h>
#include <stdio.h>
#include <stdlib.h>

static void check(gpushare_status status) {
  if (status != GPUSHARE_OK) exit(fprintf(stderr, "%s\n", gpushare_last_error_message()) != 0);
}

static gpushare_form plain_form(gpushare_task_kind kind) {
  return kind == GPUSHARE_TASK_KERNEL ? GPUSHARE_FORM_ORIGINAL : (gpushare_form)(kind + 2);
}

static void make_plan(void* user, const gpushare_snapshot* s, gpushare_plan* plan) {
  ++*(long*)user;
  for (uint32_t i = 0; i < s->head_count && plan->launch_count < GPUSHARE_PLAN_ACTIONS_MAX; ++i) {
    const gpushare_head_view* head = GPUSHARE_AT(gpushare_head_view, s->heads, s->head_stride, i);
    const int lc = head->app_class == GPUSHARE_CLASS_LATENCY_CRITICAL;
    if (!lc && s->query_count > 0) continue;
    gpushare_planned_launch launch = {.task = head->task, .form = plain_form(head->kind)};
    launch.lane_class = lc ? GPUSHARE_LANE_LC : GPUSHARE_LANE_BE;
    if (!lc && head->evictable) launch.form = GPUSHARE_FORM_WORKERS;
    plan->launches[plan->launch_count++] = launch;
  }
}

int main(void) {
  long plans = 0;
  gpushare_runtime* runtime = NULL;
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  check(gpushare_runtime_create(&options, &runtime));
  gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT; /* and its version */
  table.name = "polite";
  table.make_plan = make_plan;
  table.user = &plans;
  check(gpushare_set_user_policy(runtime, &table));

  gpushare_app_options app_options = GPUSHARE_APP_OPTIONS_INIT;
  app_options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  app_options.name = "training";
  gpushare_app* app;
  gpushare_queue* queue;
  gpushare_kernel* kernel;
  gpushare_kernel_options kernel_options = GPUSHARE_KERNEL_OPTIONS_INIT;
  kernel_options.name = "sincos_27us";
  check(gpushare_app_create(runtime, &app_options, &app));
  check(gpushare_queue_create(app, &queue));
  check(gpushare_kernel_register(runtime, &kernel_options, &kernel));
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = kernel;
  task.block_tasks = 10000;
  check(gpushare_submit_be(queue, &task, NULL));
  check(gpushare_runtime_drain(runtime, GPUSHARE_NEVER));
  printf("one task, planned by the application's own policy in %ld plans\n", plans);
  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  return plans > 0 ? 0 : 1;
}
