#include "tools/gpushare/run/run_result.h"

#include <cmath>
#include <string>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

namespace {

// The fields that every row has.
RunResult CommonResult(const RunOutcome& outcome) {
  RunResult result;
  result.realised_load = outcome.realised_load;
  result.utilisation = outcome.utilisation;
  result.prediction_error = outcome.stats.prediction_error;
  result.prediction_samples = outcome.stats.prediction_samples;
  result.evictions.count = outcome.stats.evictions;
  result.evictions.p50_ns = outcome.stats.eviction_latency.p50_ns;
  result.evictions.p99_ns = outcome.stats.eviction_latency.p99_ns;
  result.evictions_blocked = outcome.stats.evictions_blocked;
  result.launches = outcome.stats.launches;
  result.fast_path_launches = outcome.stats.fast_path_launches;
  result.span_ns = outcome.span_ns;
  result.verified = outcome.verified;
  result.unstable = outcome.unstable;
  return result;
}

LcResult LatenciesOf(const RunPlan& plan, const RunOutcome& outcome, size_t app) {
  LcResult result = SummariseLatencies(plan.lc[app].app->name, outcome.lc[app].latencies_ns);
  result.unanswered = outcome.lc[app].unanswered;
  result.solo_ns = plan.lc[app].solo_ns;
  return result;
}

PartitionResult PartitionOf(const gpushare_app_guarantee& guarantee) {
  return {guarantee.partition_sms, guarantee.response_bound_ns, guarantee.response_ns_max,
          guarantee.jobs,          guarantee.deadlines_missed,  guarantee.overruns};
}

std::vector<HeldTime> HeldTimesOf(const gpushare_app_guarantee& guarantee) {
  std::vector<HeldTime> held;
  for (int i = 0; i < GPUSHARE_HOLD_REASONS; ++i) {
    if (guarantee.held_ns[i] <= 0) continue;
    held.push_back({GPUSHARE_REASON_HOLD_HEADROOM + i, guarantee.held_ns[i]});
  }
  SortLongestFirst(held);
  return held;
}

}  // namespace

double BoundOf(const Case& one, const LcApp& app) {
  return one.p99_bound > 0 ? one.p99_bound : app.p99_bound;
}

int64_t TargetOf(const LcPlan& plan) {
  if (plan.app->real_time.IsPeriodic()) return plan.app->real_time.deadline_ns;
  if (plan.app->target_ns > 0) return plan.app->target_ns;
  return std::llround(plan.app->target_solo_factor * static_cast<double>(plan.solo_ns));
}

RunResult LcAloneResult(const RunPlan& plan, const RunOutcome& outcome) {
  RunResult result = CommonResult(outcome);
  for (size_t i = 0; i < outcome.lc.size(); ++i) {
    LcResult app = LatenciesOf(plan, outcome, i);
    CompareWithAlone(LcResult(app), outcome.lc[i].latencies_ns, 0, 0, app);
    result.lc.push_back(app);
  }
  FillThroughput(result);
  return result;
}

RunResult BeAloneResult(const RunPlan& plan, const RunOutcome& outcome) {
  RunResult result = CommonResult(outcome);
  const std::string& name = plan.be[0].app->name;
  const BeWork& work = outcome.be[0];
  if (work.work_per_second <= 0) {
    throw RunError("BE app '" + name + "' does no work alone within " +
                   std::to_string(plan.span_ns) + " ns of device time.");
  }
  result.be.push_back({name, 1, work.work_per_second, work.tasks, 0});
  return result;
}

RunResult JoinBeAlone(const std::vector<const RunResult*>& be_alone) {
  RunResult all;
  all.verified = true;
  for (const RunResult* const single : be_alone) {
    all.be.push_back(single->be[0]);
    all.utilisation += single->utilisation / static_cast<double>(be_alone.size());
    all.launches += single->launches;
    all.span_ns = single->span_ns;
    all.verified = all.verified && single->verified;
  }
  FillThroughput(all);
  return all;
}

RunResult PolicyResult(const Case& one, const RunPlan& plan, const RunOutcome& outcome,
                       const RunResult& lc_alone, const std::vector<const RunResult*>& be_alone) {
  RunResult result = CommonResult(outcome);
  for (size_t i = 0; i < plan.lc.size(); ++i) {
    LcResult app = LatenciesOf(plan, outcome, i);
    app.target_ns = plan.lc[i].target_ns;
    app.p50_bound = outcome.lc[i].guarantee.p50_bound;
    app.tail_credit = outcome.lc[i].guarantee.tail_credit;
    app.queries_late_for_be = outcome.lc[i].guarantee.queries_late_for_be;
    app.partition = PartitionOf(outcome.lc[i].guarantee);
    CompareWithAlone(lc_alone.lc[i], outcome.lc[i].latencies_ns, BoundOf(one, *plan.lc[i].app),
                     TargetOf(plan.lc[i]), app);
    result.lc.push_back(app);
  }
  for (size_t i = 0; i < plan.be.size(); ++i) {
    const BeWork& work = outcome.be[i];
    const double alone_per_second = be_alone[i]->be[0].work_per_second;
    result.be.push_back({plan.be[i].app->name, work.work_per_second / alone_per_second,
                         work.work_per_second, work.tasks, work.evictions,
                         HeldTimesOf(work.guarantee)});
  }
  FillThroughput(result);
  return result;
}

}  // namespace gpushare::tool
