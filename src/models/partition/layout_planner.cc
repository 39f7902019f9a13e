// From jobs to a layout. See layout_planner.h.

#include "src/models/partition/layout_planner.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/base/status.h"
#include "src/models/partition/planner.h"

namespace gpushare::models::partition {
namespace {

// As the application stated it.
Task TaskOf(const core::PartitionRequest::Job& job) {
  Task task;
  task.name = job.app;
  task.period_ns = job.options.period_ns;
  task.deadline_ns = job.options.Deadline();
  task.neighbour_factor = job.options.neighbour_factor;
  for (const core::WorstCase& point : job.options.worst_cases) {
    task.alone.push_back({.sms = point.sms, .ns = point.ns});
  }
  return task;
}

// Worst cases beyond the SMs of all partitions say nothing here. One that exceeds kTaskNsMax with
// the overhead meets no deadline, which is at most kTaskNsMax.
std::vector<WorstCase> WithOverhead(const core::PartitionRequest& request,
                                    const std::vector<WorstCase>& stated) {
  std::vector<WorstCase> curve;
  for (const WorstCase& point : stated) {
    if (point.sms > request.sms || point.ns > kTaskNsMax - request.overhead_ns) continue;
    curve.push_back({.sms = point.sms, .ns = point.ns + request.overhead_ns});
  }
  return curve;
}

}  // namespace

absl::StatusOr<core::PartitionLayout> LayoutPlanner::Plan(
    const core::PartitionRequest& request) const {
  TaskSet set = {.sms = request.sms, .grain = request.grain, .tasks = {}};
  core::PartitionLayout layout;
  for (const core::PartitionRequest::Job& job : request.jobs) set.tasks.push_back(TaskOf(job));
  // What is stated is checked before it is changed: a refusal names a number of the application.
  TaskSet stated = set;
  stated.sms = kSmsMax;
  GPUSHARE_RETURN_IF_ERROR(Check(stated));
  for (Task& task : set.tasks) {
    task.alone = WithOverhead(request, task.alone);
    if (!task.alone.empty()) continue;
    layout.reason =
        absl::StrCat("App '", task.name, "' has no worst case at ", request.sms,
                     " SMs or fewer that is at most ", kTaskNsMax, " ns with the overhead of ",
                     request.overhead_ns, " ns of a job; measure one.");
    return layout;
  }
  PlanOptions options;
  options.analysis = Analysis::kExclusive;
  options.apart = !request.shares;
  options.smallest = request.shares;  // the rest is for BE work
  GPUSHARE_ASSIGN_OR_RETURN(const models::partition::Plan plan, MakePlan(set, options));
  layout.admitted = plan.admitted;
  layout.reason = plan.reason;
  if (!plan.admitted) return layout;
  for (const PlannedPartition& partition : plan.partitions) {
    core::PartitionLayout::Partition out = {.sms = partition.sms, .jobs = {}};
    for (const PlannedTask& task : partition.tasks) {
      out.jobs.push_back({.job = task.source,
                          .worst_ns = task.worst_ns - request.overhead_ns,
                          .response_ns = task.response_ns});
    }
    layout.partitions.push_back(std::move(out));
  }
  return layout;
}

}  // namespace gpushare::models::partition
