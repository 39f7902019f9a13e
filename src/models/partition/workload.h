// A task set as tables, for tests of schedulability that run in a microsecond.
//
// Tasks are numbered in the order of their deadlines, then periods: that is the order in which the
// test adds them up. Sizes of partitions are numbered too: size u has u grains, and the last one
// has all SMs, also those beyond the last grain. The worst case at a size is the least measured at
// that many SMs or fewer. Neighbours lengthen it, except at the last size of a device without BE.
//
// Threads: any, once made.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_WORKLOAD_H_
#define GPUSHARE_SRC_MODELS_PARTITION_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/models/partition/task_set.h"

namespace gpushare::models::partition {

// Of a task that no measured size runs.
inline constexpr int64_t kNotRunnableNs = int64_t{1} << 60;

// Work that runs on the SMs that the plan leaves, and lengthens tasks as neighbours do.
enum class Beside : uint8_t { kNothing, kBestEffort };

// What the tests read of a task.
struct TaskRow {
  int32_t source = 0;  // its place in the task set
  Kind kind = Kind::kCompute;
  bool evictable = false;
  int64_t period_ns = 0;
  int64_t deadline_ns = 0;
  int64_t eviction_ns = 0;
  int64_t lost_ns = 0;  // eviction and resume
};

class Workload {
 public:
  // `set` has passed Check.
  Workload(const TaskSet& set, Beside beside);

  int tasks() const { return static_cast<int>(rows_.size()); }
  const TaskRow& task(int index) const { return rows_[static_cast<size_t>(index)]; }
  int sizes() const { return sizes_; }
  int32_t SmsOf(int size) const { return size == sizes_ ? sms_ : size * grain_; }
  // C^n or C^c of a task, kNotRunnableNs: not at this size.
  int64_t WorkNs(int task, int size, bool conflict) const {
    return work_[conflict ? 1 : 0][(static_cast<size_t>(task) * sizes_) + size - 1];
  }
  // C / T.
  double Share(int task, int size, bool conflict) const {
    return static_cast<double>(WorkNs(task, size, conflict)) /
           static_cast<double>(this->task(task).period_ns);
  }

 private:
  int sizes_ = 0;
  int32_t sms_ = 0;
  int32_t grain_ = 1;
  std::vector<TaskRow> rows_;
  std::vector<int64_t> work_[2];  // a row of sizes for each task
};

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_WORKLOAD_H_
