// Admission. See planner.h.

#include "src/models/partition/planner.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/status.h"
#include "src/core/base/types.h"
#include "src/core/queueing/edf_demand.h"
#include "src/core/queueing/edf_response.h"
#include "src/core/queueing/fixed_priority.h"
#include "src/models/partition/repair.h"

namespace gpushare::models::partition {
namespace {

// Visits of a class for the bounds of one plan: about 20 ms.
constexpr int64_t kResponseStepsMax = 5'000'000;

// A bound for each task of the partition.
std::vector<int64_t> ResponsesNs(const Workload& workload, const PlanOptions& options,
                                 const Partition& partition, int64_t& steps) {
  std::vector<core::DemandClass> demand;
  DemandOf(workload, partition.mode, partition.tasks, partition.size, demand);
  if (options.priorities == Priorities::kDeadlines) {
    return core::ResponseBoundsNs(demand, steps);
  }
  std::vector<int64_t> out;
  out.reserve(demand.size());
  for (size_t i = 0; i < demand.size(); ++i) {
    // Tasks of one deadline may be served in any order, so the last of them bounds all.
    size_t last = i;
    while (last + 1 < demand.size() && demand[last + 1].deadline_ns == demand[i].deadline_ns) {
      ++last;
    }
    const int64_t response = core::FixedPriorityResponseNs(demand, last);
    out.push_back(std::min(response, demand[i].deadline_ns));
  }
  return out;
}

PlannedPartition Describe(const TaskSet& set, const Tester& tester, const PlanOptions& options,
                          const Partition& partition, int64_t& steps) {
  const Workload& workload = tester.workload();
  PlannedPartition out = {.tasks = {},
                          .sms = workload.SmsOf(partition.size),
                          .mode = partition.mode,
                          .utilisation = tester.Utilisation(partition.tasks, partition.size)};
  const std::vector<int64_t> responses = ResponsesNs(workload, options, partition, steps);
  for (size_t i = 0; i < partition.tasks.size(); ++i) {
    const int32_t task = partition.tasks[i];
    const int32_t source = workload.task(task).source;
    out.tasks.push_back({.name = set.tasks[static_cast<size_t>(source)].name,
                         .source = source,
                         .worst_ns = tester.WorstNs(partition.tasks, task, partition.size),
                         .response_ns = responses[i]});
  }
  return out;
}

std::string ReasonOf(const TaskSet& set, const Tester& tester, const Found& found, int goal) {
  const Workload& workload = tester.workload();
  const int32_t all = workload.SmsOf(workload.sizes());
  if (found.unrunnable >= 0) {
    const TaskRow& row = workload.task(found.unrunnable);
    const Task& task = set.tasks[static_cast<size_t>(row.source)];
    const int64_t least = workload.WorkNs(found.unrunnable, workload.sizes(), false);
    if (least == kNotRunnableNs) {
      return absl::StrCat("Task '", task.name, "' has no worst case at ", all,
                          " SMs or fewer; measure one.");
    }
    return absl::StrCat("Task '", task.name, "' takes up to ", least, " ns on all ", all,
                        " SMs, and its deadline is ", row.deadline_ns, " ns.");
  }
  if (found.least_sms > all) {
    return absl::StrCat("The tasks need ", std::round(100 * found.least_sms) / 100,
                        " SMs on average at their most efficient sizes, and the device has ", all,
                        ".");
  }
  return absl::StrCat("The smallest partitioning found, by ", found.by, ", needs ",
                      workload.SmsOf(1) * SizeOf(found.partitions), " SMs, and the plan has ",
                      goal == workload.sizes() ? all : workload.SmsOf(goal), ".");
}

Plan Describe(const TaskSet& set, const Tester& tester, const PlanOptions& options,
              const Found& found, int goal) {
  Plan plan;
  plan.admitted = found.fits;
  plan.by = found.by;
  plan.least_sms = found.least_sms;
  int64_t steps = kResponseStepsMax;
  for (const Partition& partition : found.partitions) {
    plan.partitions.push_back(Describe(set, tester, options, partition, steps));
    plan.sms += plan.partitions.back().sms;
  }
  if (!plan.admitted) plan.reason = ReasonOf(set, tester, found, goal);
  return plan;
}

// The sizes that the partitions may have together.
absl::StatusOr<int> GoalOf(const TaskSet& set, const Workload& workload,
                           const PlanOptions& options) {
  if (options.reserved_sms == 0) return workload.sizes();
  const int goal = (set.sms - options.reserved_sms) / set.grain;
  if (options.reserved_sms < 0 || goal < 1) {
    return absl::InvalidArgumentError(absl::StrCat(options.reserved_sms, " SMs are reserved of ",
                                                   set.sms, ", and at least the ", set.grain,
                                                   " of one partition must be left."));
  }
  return goal;
}

// Lemma 2 alone.
Found FindApart(Tester& tester, int goal) {
  Found found;
  found.by = "one-each";
  found.least_sms = LeastSms(tester);
  found.partitions = OneEach(tester, found.unrunnable);
  found.fits = !found.partitions.empty() && SizeOf(found.partitions) <= goal;
  return found;
}

// A search for one size goes on to its end.
Found Find(Tester& tester, const PlanOptions& options, int goal) {
  Found found = Search(tester, {.tests_max = options.tests_max,
                                .seed = options.seed,
                                .size_goal = options.smallest ? 1 : goal});
  found.fits = !found.partitions.empty() && SizeOf(found.partitions) <= goal;
  return found;
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const TaskSet& set, const PlanOptions& options) {
  GPUSHARE_RETURN_IF_ERROR(Check(set));
  const Workload workload(set, options.beside);
  GPUSHARE_ASSIGN_OR_RETURN(const int goal, GoalOf(set, workload, options));
  Tester tester(workload, options.analysis, options.priorities);
  const Found found = options.apart ? FindApart(tester, goal) : Find(tester, options, goal);
  return Describe(set, tester, options, found, goal);
}

absl::StatusOr<Plan> RepairPlan(const TaskSet& set, const Plan& before,
                                const PlanOptions& options) {
  GPUSHARE_RETURN_IF_ERROR(Check(set));
  const Workload workload(set, options.beside);
  GPUSHARE_ASSIGN_OR_RETURN(const int goal, GoalOf(set, workload, options));
  Tester tester(workload, options.analysis, options.priorities);
  std::vector<std::vector<std::string>> names;
  for (const PlannedPartition& partition : before.partitions) {
    names.emplace_back();
    for (const PlannedTask& task : partition.tasks) names.back().push_back(task.name);
  }
  const Repaired repaired =
      Repair(set, tester, names,
             {.tests_max = options.tests_max, .seed = options.seed, .size_goal = goal});
  Plan plan = Describe(set, tester, options, repaired.found, goal);
  plan.moved = repaired.moved;
  return plan;
}

}  // namespace gpushare::models::partition
