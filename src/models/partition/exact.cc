// Exact and bounded search. See exact.h.

#include "src/models/partition/exact.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpushare::models::partition {
namespace {

constexpr int kNoSize = 1 << 20;  // above any sum of sizes

TaskList TasksOf(uint32_t set) {
  TaskList out;
  for (uint32_t left = set; left != 0; left &= left - 1) out.push_back(std::countr_zero(left));
  return out;
}

// The least size of every subset, kNoSize where none is enough.
std::vector<int> SizesOfSubsets(Tester& tester, int tasks) {
  const int sizes = tester.workload().sizes();
  std::vector<int> size(size_t{1} << tasks);
  for (uint32_t set = 1; set < size.size(); ++set) {
    int low = 1;  // a subset never needs more
    for (uint32_t left = set; left != 0; left &= left - 1) {
      low = std::max(low, size[set & ~(left & -left)]);
    }
    if (low == kNoSize) {
      size[set] = kNoSize;
      continue;
    }
    const TaskList list = TasksOf(set);
    // Most sets hold where their largest subset does.
    if (!tester.Holds(list, low)) low = tester.LeastSize(list, low + 1, sizes);
    size[set] = low == 0 ? kNoSize : low;
  }
  return size;
}

Exact CheapestCover(Tester& tester, int tasks) {
  const std::vector<int> size = SizesOfSubsets(tester, tasks);
  std::vector<int> cover(size.size(), kNoSize);
  std::vector<uint32_t> first(size.size());
  cover[0] = 0;
  for (uint32_t set = 1; set < size.size(); ++set) {
    // The part with the first task of the set; each partitioning is met once.
    const uint32_t lowest = set & -set;
    const uint32_t rest = set & ~lowest;
    for (uint32_t with = rest;; with = (with - 1) & rest) {
      const int sum = size[with | lowest] + cover[rest & ~with];
      if (sum < cover[set]) {
        cover[set] = sum;
        first[set] = with | lowest;
      }
      if (with == 0) break;
    }
  }
  Exact out;
  if (cover.back() >= kNoSize) return out;
  for (auto set = static_cast<uint32_t>(size.size() - 1); set != 0; set &= ~first[set]) {
    Partition one = {.tasks = TasksOf(first[set]), .size = size[first[set]]};
    tester.Holds(one.tasks, one.size);
    one.mode = tester.mode();
    out.partitions.push_back(std::move(one));
  }
  out.size = cover.back();
  out.least = out.size;
  return out;
}

// Branch and bound.
class Branches {
 public:
  Branches(Tester& tester, const std::vector<Partition>& start, int64_t tests_max)
      : tester_(tester), tests_max_(tester.tests() + tests_max) {
    best_.partitions = start;
    best_.size = SizeOf(start);
    int unrunnable = 0;
    singles_ = OneEach(tester, unrunnable);
    // The largest first: their sizes cut most.
    std::stable_sort(singles_.begin(), singles_.end(),
                     [](const Partition& a, const Partition& b) { return a.size > b.size; });
  }

  Exact Run() {
    if (singles_.empty()) return {};
    Place(0, 0);
    const Workload& workload = tester_.workload();
    // LeastSms is no bound of sizes where the last one has SMs beyond its grains.
    const double grain = workload.SmsOf(workload.sizes()) / static_cast<double>(workload.sizes());
    const int by_work = static_cast<int>(std::ceil(LeastSms(tester_) / grain - 1e-9));
    best_.least = ended_ ? best_.size : std::min(best_.size, std::max(by_work, singles_[0].size));
    return std::move(best_);
  }

 private:
  // Depth is at most kTasksMax.
  void Place(size_t next, int size) {  // NOLINT(misc-no-recursion)
    if (size >= best_.size || !ended_) return;
    if (next == singles_.size()) {
      best_.partitions = open_;
      best_.size = size;
      return;
    }
    const int32_t task = singles_[next].tasks.front();
    // Deeper steps add to open_ and take that away again.
    for (size_t i = 0; i < open_.size(); ++i) {  // NOLINT(modernize-loop-convert)
      if (tester_.tests() >= tests_max_) {
        ended_ = false;
        return;
      }
      const Partition before = open_[i];
      Partition joined = before;
      joined.tasks.insert(std::lower_bound(joined.tasks.begin(), joined.tasks.end(), task), task);
      const int most = std::min(tester_.workload().sizes(), best_.size - 1 - size + before.size);
      joined.size = tester_.LeastSize(joined.tasks, before.size, most);
      if (joined.size == 0) continue;
      joined.mode = tester_.mode();
      const int grown = size + joined.size - before.size;
      open_[i] = std::move(joined);
      Place(next + 1, grown);
      open_[i] = before;
    }
    open_.push_back(singles_[next]);
    Place(next + 1, size + singles_[next].size);
    open_.pop_back();
  }

  Tester& tester_;
  const int64_t tests_max_;
  std::vector<Partition> singles_;
  std::vector<Partition> open_;
  Exact best_;
  bool ended_ = true;
};

}  // namespace

Exact SearchExact(Tester& tester, const std::vector<Partition>& start, int64_t tests_max) {
  const int tasks = tester.workload().tasks();
  if (tasks <= kExactTasksMax) return CheapestCover(tester, tasks);
  return Branches(tester, start, tests_max).Run();
}

}  // namespace gpushare::models::partition
