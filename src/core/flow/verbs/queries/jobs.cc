// Accounts of jobs. See jobs.h.

#include "src/core/flow/verbs/queries/jobs.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/seams/policy.h"

namespace gpushare::core {
namespace {

// `what`: of the job, as the end of a sentence.
template <class... What>
void CountOverrun(Flow& flow, QueryState& query, const What&... what) {
  if (std::exchange(query.overran, true)) return;
  if (query.app->real_time.overruns++ > 0) return;
  try {
    flow.reports.push_back(
        absl::StrCat("A job of app '", query.app->options.name, "' ", what...,
                     " Further overruns are counted (gpushare_app_guarantee), and not logged."));
  } catch (const std::bad_alloc&) {  // for the sentence
  }
}

}  // namespace

void FollowPlan(Flow& flow) {
  ++flow.partition_plan;
  flow.plan_in_force.store(flow.has_partitions && flow.policy->properties().uses_partitions);
}

bool IsJob(const Flow& flow, const QueryState& query) {
  return flow.PlanInForce() && query.app->real_time.partition >= 0 &&
         query.partition_plan == flow.partition_plan;
}

void NoteOverrun(Flow& flow, QueryState& query) {
  CountOverrun(
      flow, query, "runs longer than the ", query.app->real_time.worst_ns,
      " ns of its worst case on its SMs, so its bounds do not hold; measure its worst case "
      "again.");
}

void NoteJobTask(Flow& flow, const Task& task) {
  const bool everywhere = task.work.kernel != nullptr && !task.work.kernel->confinable;
  if (!everywhere || task.record.launches == 0 || !IsJob(flow, *task.query)) return;
  CountOverrun(
      flow, *task.query,
      "has a kernel or graph that no partition holds (confinable), and it runs on all SMs, so "
      "the bounds of no app hold; give it a kernel that a partition holds.");
}

void NoteJobEnded(Flow& flow, QueryState& query) {
  App& app = *query.app;
  RealTimeShare& share = app.real_time;
  if (query.abandoned || !IsJob(flow, query)) return;
  // Beside what leaves its SMs a job takes as much longer as the plan charged.
  if (query.done_ns > share.worst_ns + flow.partition_overhead_ns) NoteOverrun(flow, query);
  const int64_t response_ns = flow.now_ns - query.arrival_ns;
  ++share.jobs;
  share.response_ns_max = std::max(share.response_ns_max, response_ns);
  if (response_ns > app.options.real_time.Deadline()) ++share.deadlines_missed;
}

}  // namespace gpushare::core
