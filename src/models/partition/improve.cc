// Moves and swaps. See improve.h.

#include "src/models/partition/improve.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/core/base/random.h"

namespace gpushare::models::partition {
namespace {

// One step in this many is a swap. The range: 2 to 8; 4 found most plans at 50 tasks.
constexpr uint64_t kSwapEvery = 2;

TaskList Without(const TaskList& tasks, int32_t task) {
  TaskList out = tasks;
  out.erase(std::lower_bound(out.begin(), out.end(), task));
  return out;
}

TaskList With(const TaskList& tasks, int32_t task) {
  TaskList out = tasks;
  out.insert(std::lower_bound(out.begin(), out.end(), task), task);
  return out;
}

class Walk {
 public:
  Walk(Tester& tester, std::vector<Partition>& partitions, const ImproveOptions& options)
      : tester_(tester), partitions_(partitions), options_(options), random_(options.seed) {}

  void Run() {
    int size = SizeOf(partitions_);
    // A step may need no test, so steps are bounded too.
    for (int64_t step = 0; size > options_.size_goal && partitions_.size() > 1; ++step) {
      if (tester_.tests() >= options_.tests_max || step >= options_.tests_max) return;
      const size_t from = Draw(partitions_.size());
      size_t to = Draw(partitions_.size() - 1);
      if (to >= from) ++to;
      size -= random_.Next() % kSwapEvery == 0 ? Swap(from, to) : Move(from, to);
    }
  }

 private:
  size_t Draw(size_t count) { return static_cast<size_t>(random_.Next() % count); }
  int32_t DrawTask(const Partition& partition) {
    return partition.tasks[Draw(partition.tasks.size())];
  }

  // A partition of these tasks with a size in the range; size 0: none.
  Partition Sized(TaskList tasks, int low, int high) {
    Partition out = {.tasks = std::move(tasks)};
    if (out.tasks.empty()) return out;
    out.size = tester_.LeastSize(out.tasks, low, std::min(high, tester_.workload().sizes()));
    out.mode = tester_.mode();
    return out;
  }

  // Both return what the step saves, 0 where it was not taken.
  int Move(size_t from, size_t to) {
    Partition& one = partitions_[from];
    Partition& other = partitions_[to];
    const int32_t task = DrawTask(one);
    Partition left = Sized(Without(one.tasks, task), 1, one.size);
    if (left.size == 0 && !left.tasks.empty()) return 0;
    Partition joined =
        Sized(With(other.tasks, task), other.size, other.size + one.size - left.size);
    return Take(from, std::move(left), to, std::move(joined));
  }

  int Swap(size_t from, size_t to) {
    Partition& one = partitions_[from];
    Partition& other = partitions_[to];
    const int32_t task = DrawTask(one);
    const int32_t back = DrawTask(other);
    const int both = one.size + other.size;
    Partition first = Sized(With(Without(one.tasks, task), back), 1, both - 1);
    if (first.size == 0) return 0;
    Partition second = Sized(With(Without(other.tasks, back), task), 1, both - first.size);
    return Take(from, std::move(first), to, std::move(second));
  }

  int Take(size_t from, Partition left, size_t to, Partition joined) {
    if (joined.size == 0) return 0;
    const int saved = partitions_[from].size + partitions_[to].size - left.size - joined.size;
    partitions_[to] = std::move(joined);
    if (left.tasks.empty()) {
      partitions_.erase(partitions_.begin() + static_cast<ptrdiff_t>(from));
    } else {
      partitions_[from] = std::move(left);
    }
    return saved;
  }

  Tester& tester_;
  std::vector<Partition>& partitions_;
  const ImproveOptions options_;
  core::Random random_;
};

}  // namespace

void Improve(Tester& tester, std::vector<Partition>& partitions, const ImproveOptions& options) {
  Walk(tester, partitions, options).Run();
}

}  // namespace gpushare::models::partition
