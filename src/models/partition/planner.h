// Admission of a task set: a plan with a bound for each task, or no with the reason.
//
//   Check(set)                    ranges
//   MakePlan(set, options)        from nothing
//   RepairPlan(set, plan, ...)    after tasks came and went; few tasks change their partition
//
// A yes is a proof under the analysis that the options name; the tests simulate it. A no says which
// task or which sum is too large, or how many SMs the best partitioning found still needs. Threads:
// any.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_PLANNER_H_
#define GPUSHARE_SRC_MODELS_PARTITION_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/models/partition/portfolio.h"
#include "src/models/partition/schedulability.h"
#include "src/models/partition/task_set.h"
#include "src/models/partition/workload.h"

namespace gpushare::models::partition {

struct PlanOptions {
  Analysis analysis = Analysis::kEvictable;
  Priorities priorities = Priorities::kDeadlines;
  Beside beside = Beside::kBestEffort;
  int32_t reserved_sms = 0;  // no partition gets these
  bool apart = false;        // a partition for each task, so that an overrun harms no other one
  bool smallest = false;     // not the first that fits, but the fewest SMs that the search finds
  int64_t tests_max = kSearchTestsMax;
  uint64_t seed = 1;
};

struct PlannedTask {
  std::string name;
  int32_t source = 0;       // its place in the task set
  int64_t worst_ns = 0;     // C at this size, with the conflict and the neighbours that count
  int64_t response_ns = 0;  // no job takes longer from its release to its end
};

struct PlannedPartition {
  std::vector<PlannedTask> tasks;  // in the order of their deadlines
  int32_t sms = 0;
  Mode mode = Mode::kRunToEnd;
  double utilisation = 0;
};

struct Plan {
  bool admitted = false;
  // Of a no: the smallest that was found, or empty.
  std::vector<PlannedPartition> partitions;
  int32_t sms = 0;       // of all partitions
  std::string by;        // what found them
  std::string reason;    // of a no: one sentence
  double least_sms = 0;  // lemma 1: the tasks need at least these on average
  int moved = 0;         // of a repair: tasks that are in another partition than before
};

// INVALID_ARGUMENT: Check, or reserved SMs that leave no partition.
absl::StatusOr<Plan> MakePlan(const TaskSet& set, const PlanOptions& options);

// `before` planned an older set under the same options; tasks are the same where their names are.
// Tasks that went leave their partition smaller; each new one joins where it costs the fewest SMs.
// If that does not fit, tasks move, and at last all are planned anew.
absl::StatusOr<Plan> RepairPlan(const TaskSet& set, const Plan& before, const PlanOptions& options);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_PLANNER_H_
