/* A cost model of the application's own, in C: the mean of what each kernel took per block task. */
#include <gpushare/gpushare_cost_model.h>
#include <stdio.h>
#include <stdlib.h>

enum { KERNELS = 64 };
typedef struct Model {
  double ns[KERNELS]; /* sums, by kernel */
  double block_tasks[KERNELS];
} Model;

static void check(gpushare_status status) {
  if (status != GPUSHARE_OK) exit(fprintf(stderr, "%s\n", gpushare_last_error_message()) != 0);
}

static int knows(const gpushare_task_features* task) {
  return task->kind == GPUSHARE_TASK_KERNEL && task->kernel_id < KERNELS;
}

static gpushare_bool predict_solo(void* user, const gpushare_task_features* task,
                                  gpushare_prediction* out) {
  const Model* model = user;
  const uint32_t k = task->kernel_id;
  if (!knows(task) || model->block_tasks[k] == 0) return 0; /* the built-in model answers */
  out->duration_ns =
      (int64_t)(model->ns[k] / model->block_tasks[k] * (double)task->block_tasks) + 1;
  out->error_ns = out->duration_ns / 10;
  out->trained = 1;
  return 1;
}

static gpushare_bool observe(void* user, const gpushare_observation* seen) {
  Model* model = user;
  if (!knows(seen->task) || seen->evicted || seen->beside_count > 0) return 0;
  model->ns[seen->task->kernel_id] += (double)seen->measured_ns;
  model->block_tasks[seen->task->kernel_id] += (double)seen->task->block_tasks;
  return 0; /* no speed beside a neighbour has changed */
}

int main(void) {
  Model model = {{0}, {0}};
  gpushare_runtime* runtime = NULL;
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  check(gpushare_runtime_create(&options, &runtime));
  gpushare_cost_model_table table = GPUSHARE_COST_MODEL_TABLE_INIT; /* and its version */
  table.name = "mean";
  table.predict_solo = predict_solo;
  table.observe = observe;
  table.user = &model;
  check(gpushare_set_user_cost_model(runtime, &table));

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
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  for (task.block_tasks = 10000; task.block_tasks <= 40000; task.block_tasks *= 2) {
    gpushare_ticket ticket;
    check(gpushare_submit_be(queue, &task, &ticket));
    check(gpushare_ticket_wait(runtime, ticket, GPUSHARE_NEVER));
    check(gpushare_ticket_record(runtime, ticket, &record));
    printf("%lld block tasks: predicted %.1f us, measured %.1f us\n", (long long)task.block_tasks,
           (double)record.predicted_ns / 1e3, (double)record.measured_ns / 1e3);
  }
  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  const double ratio = (double)record.predicted_ns / (double)record.measured_ns;
  return ratio > 0.9 && ratio < 1.1 && model.ns[gpushare_kernel_id(kernel)] > 0 ? 0 : 1;
}
