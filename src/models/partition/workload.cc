// Tables of a task set. See workload.h.

#include "src/models/partition/workload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

namespace gpushare::models::partition {
namespace {

// The least worst case at `sms` or fewer.
int64_t LeastUpTo(const std::vector<WorstCase>& curve, int32_t sms) {
  int64_t least = kNotRunnableNs;
  for (const WorstCase& point : curve) {
    if (point.sms > sms) break;
    least = std::min(least, point.ns);
  }
  return least;
}

int64_t Lengthened(int64_t ns, double factor) {
  if (ns == kNotRunnableNs || factor == 1) return ns;
  return static_cast<int64_t>(std::ceil(static_cast<double>(ns) * factor));
}

}  // namespace

Workload::Workload(const TaskSet& set, Beside beside)
    : sizes_(set.sms / set.grain), sms_(set.sms), grain_(set.grain) {
  std::vector<int32_t> order(set.tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Task& one = set.tasks[static_cast<size_t>(a)];
    const Task& other = set.tasks[static_cast<size_t>(b)];
    return std::tie(one.deadline_ns, one.period_ns) < std::tie(other.deadline_ns, other.period_ns);
  });
  for (std::vector<int64_t>& work : work_) work.reserve(order.size() * sizes_);
  for (const int32_t source : order) {
    const Task& task = set.tasks[static_cast<size_t>(source)];
    rows_.push_back({.source = source,
                     .kind = task.kind,
                     .evictable = task.evictable,
                     .period_ns = task.period_ns,
                     .deadline_ns = task.deadline_ns,
                     .eviction_ns = task.eviction_ns,
                     .lost_ns = task.eviction_ns + task.resume_ns});
    for (int size = 1; size <= sizes_; ++size) {
      const bool alone = size == sizes_ && beside == Beside::kNothing;
      const double factor = alone ? 1 : task.neighbour_factor;
      const int64_t least = LeastUpTo(task.alone, SmsOf(size));
      const int64_t conflict =
          task.in_conflict.empty() ? least : LeastUpTo(task.in_conflict, SmsOf(size));
      work_[0].push_back(Lengthened(least, factor));
      // A conflict never shortens a task: what was measured shorter is noise.
      work_[1].push_back(Lengthened(std::max(least, conflict), factor));
    }
  }
}

}  // namespace gpushare::models::partition
