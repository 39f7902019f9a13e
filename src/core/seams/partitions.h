// Partitions of the device for periodic LC apps: what a planner is asked and answers, and what a
// policy sees of the plan that is in force.
//
//   PartitionRequest -> PartitionPlanner::Plan -> PartitionLayout   at registration
//   PartitionsView                                                  in each snapshot
//
// The planner lives in src/models/partition. The core asks it through this seam, finds places for
// its answer (flow/places/partitioning.h) and shows them to the policy `partitioned`.
//
// Threads: a planner is pure, any thread. The view: the thread that runs Tick.

#ifndef GPUSHARE_SRC_CORE_SEAMS_PARTITIONS_H_
#define GPUSHARE_SRC_CORE_SEAMS_PARTITIONS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"

namespace gpushare::core {

// The longest that a job takes on so many SMs, with launch and completion.
struct WorstCase {
  int32_t sms = 0;
  int64_t ns = 0;
};

// What a periodic LC app states of its jobs. A job is one query.
struct RealTimeOptions {
  int64_t period_ns = 0;               // least distance of two jobs; 0: the app is not periodic
  int64_t deadline_ns = 0;             // from a job's arrival, at most the period; 0: the period
  std::vector<WorstCase> worst_cases;  // in ascending SMs
  // The longest that an eviction of a job takes. Its kernels then run as workers where it shares a
  // partition, and the worst cases are of workers. 0: a job runs to its end.
  int64_t eviction_ns = 0;
  double neighbour_factor = 1;  // the most by which work on other SMs lengthens a job

  bool IsPeriodic() const { return period_ns > 0; }
  int64_t Deadline() const { return deadline_ns > 0 ? deadline_ns : period_ns; }
};

// --- the planner --------------------------------------------------------------------------------

struct PartitionRequest {
  struct Job {
    std::string app;
    RealTimeOptions options;
  };
  std::vector<Job> jobs;
  int32_t sms = 0;      // that partitions may have together, a multiple of `grain`
  int32_t grain = 1;    // a partition has a multiple of these
  bool shares = false;  // apps may share a partition
  // Added to each worst case: what leaves a partition before a job, or behind it, takes so long.
  int64_t overhead_ns = 0;
};

struct PartitionLayout {
  struct Job {
    int32_t job = 0;          // index into PartitionRequest::jobs
    int64_t worst_ns = 0;     // without the overhead: the budget of a job
    int64_t response_ns = 0;  // no job takes longer from its arrival to its end
  };
  struct Partition {
    int32_t sms = 0;
    std::vector<Job> jobs;
  };
  bool admitted = false;
  std::string reason;  // of a no: one sentence
  std::vector<Partition> partitions;
};

class PartitionPlanner {
 public:
  virtual ~PartitionPlanner() = default;
  // INVALID_ARGUMENT: a job outside the ranges of the planner.
  virtual absl::StatusOr<PartitionLayout> Plan(const PartitionRequest& request) const = 0;
};

// --- the plan in force --------------------------------------------------------------------------

struct PartitionView {
  PlaceIndex place = kNoPlace;
  bool shared = false;  // several apps have it
};

// An LC app, beside LcAppView under the same index.
struct RealTimeView {
  static constexpr int32_t kNoPartition = -1;
  int32_t partition = kNoPartition;  // index into PartitionsView::partitions
  int64_t deadline_ns = 0;           // of a job, from its arrival
  bool evictable = false;            // its jobs run as workers where it shares a partition
  // Of its oldest task on the device; 0: none is.
  TicketId running;
  bool leaving = false;      // that task was evicted
  bool has_word = false;     // an eviction reaches that task
  TimeNs budget_end_ns = 0;  // when the job of that task has run for its worst case
  // Its oldest job has had its worst case and is not done: it runs when its partition is idle.
  bool overran = false;
};

struct PartitionsView {
  BoundedList<PartitionView, kMaxPartitions> partitions;
  std::array<RealTimeView, kMaxApps> apps;  // by index into Snapshot::lc_apps
  PlaceIndex rest = kNoPlace;               // the SMs that no partition has; kNoPlace: none
  // BE work may use an idle partition if it leaves within this time; 0: never.
  int64_t slack_eviction_ns = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_PARTITIONS_H_
