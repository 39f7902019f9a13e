// Whether the tasks of one partition keep their deadlines at a size (thesis 3.5.5, left open
// there).
//
// Three analyses, because the thesis's conflict and its scheduler do not describe one system:
//
//   kConcurrent  the thesis's: C^c for a task beside another of its kind, EDF that preempts at
//   once.
//                Serial EDF has no co-runner, so k has no cause in it; two kernels at once have.
//   kExclusive   C^n, one task at a time, a job runs to its end and blocks by its whole length.
//   kEvictable   C^n, one task at a time; for each partition what holds: as kExclusive, or
//   evicting.
//                An eviction costs its latency and the resume. Each job that can preempt is charged
//                with both, and one latency more blocks. Tasks that are not evictable block by C.
//
// Inside a partition: EDF by processor demand, or fixed priorities by deadlines.
// Threads: one a tester.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_SCHEDULABILITY_H_
#define GPUSHARE_SRC_MODELS_PARTITION_SCHEDULABILITY_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "src/core/queueing/edf_demand.h"
#include "src/models/partition/workload.h"

namespace gpushare::models::partition {

enum class Analysis : uint8_t { kConcurrent, kExclusive, kEvictable };
enum class Priorities : uint8_t { kDeadlines, kFixed };

// How a partition treats a running job when one with an earlier deadline comes.
enum class Mode : uint8_t { kPreempt, kRunToEnd, kEvict };

// Tasks in ascending order.
using TaskList = std::vector<int32_t>;

// What a mode makes of the tasks at a size: an entry for each task, in the order of the list.
// False: one of them does not run at this size, or not within its deadline.
bool DemandOf(const Workload& workload, Mode mode, std::span<const int32_t> tasks, int size,
              std::vector<core::DemandClass>& demand);

class Tester {
 public:
  Tester(const Workload& workload, Analysis analysis, Priorities priorities);

  const Workload& workload() const { return workload_; }
  Analysis analysis() const { return analysis_; }
  // Tests so far: what bounds a search.
  int64_t tests() const { return tests_; }

  // Whether `tasks` hold at `size`; then mode() says how.
  bool Holds(std::span<const int32_t> tasks, int size);
  Mode mode() const { return mode_; }
  // The least size from `low` to `high` at which they hold; 0: none. A larger size never holds
  // less, because worst cases do not rise.
  int LeastSize(std::span<const int32_t> tasks, int low, int high);

  // C of one of `tasks`, with the conflict that counts.
  int64_t WorstNs(std::span<const int32_t> tasks, int32_t task, int size) const;
  // sum of C / T.
  double Utilisation(std::span<const int32_t> tasks, int size) const;

 private:
  bool HoldsIn(Mode mode, std::span<const int32_t> tasks, int size);

  const Workload& workload_;
  const Analysis analysis_;
  const Priorities priorities_;
  Mode mode_ = Mode::kRunToEnd;
  int64_t tests_ = 0;
  std::array<int64_t, 3> suspect_ns_ = {};  // by mode: the interval of the last no
  std::vector<core::DemandClass> demand_;
};

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_SCHEDULABILITY_H_
