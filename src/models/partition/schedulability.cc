// The test inside a partition. See schedulability.h.

#include "src/models/partition/schedulability.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/core/queueing/edf_demand.h"
#include "src/core/queueing/fixed_priority.h"

namespace gpushare::models::partition {
namespace {

using core::DemandClass;

// Whether each kind has a task that conflicts: two of it or more.
std::array<bool, kKinds> ConflictsOf(const Workload& workload, std::span<const int32_t> tasks) {
  std::array<int, kKinds> count = {};
  for (const int32_t task : tasks) ++count[static_cast<size_t>(workload.task(task).kind)];
  return {count[0] > 1, count[1] > 1};
}

// Charges each job with the largest loss among the tasks of later deadlines, which it may evict.
void ChargeEvictions(const Workload& workload, std::span<const int32_t> tasks,
                     std::vector<DemandClass>& demand) {
  int64_t later = 0;  // largest loss of the deadlines behind those of `same`
  int64_t same = 0;
  for (size_t i = demand.size(); i-- > 0;) {
    if (i + 1 < demand.size() && demand[i].deadline_ns < demand[i + 1].deadline_ns) {
      later = std::max(later, same);
    }
    demand[i].work_ns += later;
    const TaskRow& row = workload.task(tasks[i]);
    if (row.evictable) same = std::max(same, row.lost_ns);
  }
}

// One entry for neighbours in the list that share period and deadline.
void MergeClasses(std::vector<DemandClass>& demand) {
  size_t last = 0;
  for (size_t i = 1; i < demand.size(); ++i) {
    DemandClass& into = demand[last];
    const DemandClass& one = demand[i];
    if (into.period_ns == one.period_ns && into.deadline_ns == one.deadline_ns) {
      into.work_ns += one.work_ns;
      into.blocking_ns = std::max(into.blocking_ns, one.blocking_ns);
    } else {
      demand[++last] = one;
    }
  }
  if (!demand.empty()) demand.resize(last + 1);
}

}  // namespace

bool DemandOf(const Workload& workload, Mode mode, std::span<const int32_t> tasks, int size,
              std::vector<DemandClass>& demand) {
  demand.clear();
  const auto conflicts =
      mode == Mode::kPreempt ? ConflictsOf(workload, tasks) : std::array<bool, kKinds>{};
  for (const int32_t task : tasks) {
    const TaskRow& row = workload.task(task);
    const int64_t work = workload.WorkNs(task, size, conflicts[static_cast<size_t>(row.kind)]);
    if (work > row.deadline_ns) return false;
    int64_t blocking = work;
    if (mode == Mode::kPreempt) blocking = 0;
    if (mode == Mode::kEvict && row.evictable) blocking = std::min(work, row.eviction_ns);
    demand.push_back({.period_ns = row.period_ns,
                      .deadline_ns = row.deadline_ns,
                      .work_ns = work,
                      .blocking_ns = blocking});
  }
  if (mode == Mode::kEvict) ChargeEvictions(workload, tasks, demand);
  // A charge beyond the deadline is a no by itself, and sums of it could overflow.
  return std::all_of(demand.begin(), demand.end(),
                     [](const DemandClass& one) { return one.work_ns <= one.deadline_ns; });
}

Tester::Tester(const Workload& workload, Analysis analysis, Priorities priorities)
    : workload_(workload), analysis_(analysis), priorities_(priorities) {
  demand_.reserve(static_cast<size_t>(workload.tasks()));
}

bool Tester::HoldsIn(Mode mode, std::span<const int32_t> tasks, int size) {
  if (!DemandOf(workload_, mode, tasks, size, demand_)) return false;
  MergeClasses(demand_);
  const bool holds = priorities_ == Priorities::kDeadlines
                         ? core::DemandHolds(demand_, suspect_ns_[static_cast<size_t>(mode)])
                         : core::FixedPriorityHolds(demand_);
  if (holds) mode_ = mode;
  return holds;
}

bool Tester::Holds(std::span<const int32_t> tasks, int size) {
  ++tests_;
  switch (analysis_) {
    case Analysis::kConcurrent:
      return HoldsIn(Mode::kPreempt, tasks, size);
    case Analysis::kExclusive:
      return HoldsIn(Mode::kRunToEnd, tasks, size);
    case Analysis::kEvictable:
      break;
  }
  return HoldsIn(Mode::kRunToEnd, tasks, size) || HoldsIn(Mode::kEvict, tasks, size);
}

int Tester::LeastSize(std::span<const int32_t> tasks, int low, int high) {
  if (low > high || !Holds(tasks, high)) return 0;
  Mode mode = mode_;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (Holds(tasks, middle)) {
      high = middle;
      mode = mode_;
    } else {
      low = middle + 1;
    }
  }
  mode_ = mode;
  return high;
}

int64_t Tester::WorstNs(std::span<const int32_t> tasks, int32_t task, int size) const {
  const bool conflict =
      analysis_ == Analysis::kConcurrent &&
      ConflictsOf(workload_, tasks)[static_cast<size_t>(workload_.task(task).kind)];
  return workload_.WorkNs(task, size, conflict);
}

double Tester::Utilisation(std::span<const int32_t> tasks, int size) const {
  const auto conflicts = analysis_ == Analysis::kConcurrent ? ConflictsOf(workload_, tasks)
                                                            : std::array<bool, kKinds>{};
  double sum = 0;
  for (const int32_t task : tasks) {
    sum += workload_.Share(task, size, conflicts[static_cast<size_t>(workload_.task(task).kind)]);
  }
  return sum;
}

}  // namespace gpushare::models::partition
