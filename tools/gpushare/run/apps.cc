#include "tools/gpushare/run/apps.h"

#include <cstdint>
#include <vector>

namespace gpushare::tool {

namespace {

AppHandle CreateApp(gpushare_runtime* runtime, const gpushare_app_options& options) {
  gpushare_app* app = nullptr;
  Check(gpushare_app_create(runtime, &options, &app));
  return AppHandle(app);
}

void ReserveCapSms(gpushare_app* app, int capsms, bool packed) {
  if (capsms == 0) return;
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = capsms;
  options.packed = packed ? 1 : 0;
  Check(gpushare_reserve_capsm(app, &options));
}

}  // namespace

AppHandle CreateLcApp(gpushare_runtime* runtime, const LcPlan& plan, int tasks_max) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  options.name = plan.app->name.c_str();
  options.target_ns = plan.target_ns;
  options.p99_bound = plan.p99_bound;
  options.p50_bound = plan.p50_bound;
  options.p99_alone_ns = plan.p99_alone_ns;
  options.solo_ns = plan.solo_ns;
  options.tasks_max = tasks_max;
  options.priority = plan.app->priority;
  options.yield_ns_max =
      plan.app->yield_ns_max == kNoYieldLimit ? GPUSHARE_NEVER : plan.app->yield_ns_max;
  const RealTimeSpec& job = plan.app->real_time;
  std::vector<gpushare_worst_case> worst_cases;
  for (const JobWorstCase& one : job.worst_cases) worst_cases.push_back({one.sms, 0, one.ns});
  options.period_ns = job.period_ns;
  options.deadline_ns = job.deadline_ns;
  options.worst_cases = worst_cases.empty() ? nullptr : worst_cases.data();
  options.worst_case_count = static_cast<uint32_t>(worst_cases.size());
  if (job.IsPeriodic()) {
    options.job_eviction_ns = job.job_eviction_ns;
    options.neighbour_factor = job.neighbour_factor;
  }
  AppHandle app = CreateApp(runtime, options);
  if (plan.reserve) ReserveCapSms(app.get(), plan.app->reserve_capsms, plan.app->packed);
  return app;
}

void PlanPartitions(gpushare_runtime* runtime, const PartitionSpec& spec) {
  gpushare_partition_options options = GPUSHARE_PARTITION_OPTIONS_INIT;
  options.share = spec.share ? 1 : 0;
  options.slack_eviction_ns = spec.slack_eviction_ns;
  options.reserved_sms = spec.reserved_sms;
  gpushare_partition_plan plan = GPUSHARE_PARTITION_PLAN_INIT;
  Check(gpushare_plan_partitions(runtime, &options, &plan));
}

AppHandle CreateBeApp(gpushare_runtime* runtime, const BePlan& plan) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  options.name = plan.app->name.c_str();
  options.weight = plan.app->weight;
  // Twice the pending tasks: a slot becomes free only after its callback has returned.
  options.tasks_max = 2 * plan.app->queues * plan.app->depth + 16;
  AppHandle app = CreateApp(runtime, options);
  if (plan.quota) ReserveCapSms(app.get(), plan.app->quota_capsms, plan.app->packed);
  return app;
}

}  // namespace gpushare::tool
