// What a plan is made for: periodic tasks, and the device that they share.
//
// A task is a kernel or a captured network that an app launches once in a period (thesis 3.4.2).
// Its worst cases are measured, at some numbers of SMs; between two of them the one below counts,
// and a launch may use fewer SMs than it has, so the worst case never rises with the SMs.
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_TASK_SET_H_
#define GPUSHARE_SRC_MODELS_PARTITION_TASK_SET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gpushare::models::partition {

// Definition 1. Two tasks of one kind in a partition are in conflict.
enum class Kind : uint8_t { kCompute = 0, kMemory = 1 };
inline constexpr size_t kKinds = 2;

struct WorstCase {
  int32_t sms = 0;
  int64_t ns = 0;  // with launch, completion and resume
};

struct Task {
  std::string name;
  int64_t period_ns = 0;
  int64_t deadline_ns = 0;  // at most the period
  Kind kind = Kind::kCompute;
  std::vector<WorstCase> alone;             // C^n: in ascending SMs
  std::vector<WorstCase> in_conflict = {};  // C^c; empty: as alone
  // What one eviction of a running job costs: the longest until its SMs are free, and what its
  // relaunch adds. A task that is not evictable runs to its end.
  bool evictable = false;
  int64_t eviction_ns = 0;
  int64_t resume_ns = 0;
  // The largest factor by which neighbours on other SMs, BE work among them, lengthen it: they
  // share DRAM and L2. An upper bound, not a mean.
  double neighbour_factor = 1;
};

struct TaskSet {
  int32_t sms = 0;    // of the device
  int32_t grain = 1;  // a partition has a multiple of these; one of everything has all SMs
  std::vector<Task> tasks;
};

// More are refused, so that every plan ends within seconds and a few hundred megabytes.
inline constexpr size_t kTasksMax = 1'024;
inline constexpr int32_t kSmsMax = 1'024;
inline constexpr int64_t kTaskNsMax = int64_t{3600} * 1'000'000'000;
inline constexpr double kNeighbourFactorMax = 100;

// a / m + b at 1 to `sms` SMs, rounded up: the thesis's model (3.3.2).
std::vector<WorstCase> WorstCasesOfLine(double a_ns, double b_ns, int32_t sms);

// INVALID_ARGUMENT: a value outside its range, with the task, the value and the limit. A deadline
// that no size of partition keeps is not an error here: the plan says so.
absl::Status Check(const TaskSet& set);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_TASK_SET_H_
