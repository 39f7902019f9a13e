// Random task sets that are not the thesis's: any periods and deadlines, measured curves that are
// not monotone, tasks that cannot be evicted among others. Seeded.

#ifndef GPUSHARE_TESTS_MODELS_PARTITION_RANDOM_SETS_H_
#define GPUSHARE_TESTS_MODELS_PARTITION_RANDOM_SETS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "src/core/base/random.h"
#include "src/models/partition/task_set.h"

namespace gpushare::models::partition {

inline TaskSet RandomSet(int tasks, int32_t sms, int32_t grain, double load, core::Random& random) {
  TaskSet set = {.sms = sms, .grain = grain, .tasks = {}};
  for (int i = 0; i < tasks; ++i) {
    Task task;
    task.name = "task" + std::to_string(i);
    task.period_ns = static_cast<int64_t>(std::exp(random.Uniform(std::log(2e4), std::log(2e6))));
    task.deadline_ns =
        static_cast<int64_t>(static_cast<double>(task.period_ns) * random.Uniform(0.4, 1.0));
    task.kind = random.Uniform() < 0.5 ? Kind::kCompute : Kind::kMemory;
    const double share = -std::log(1 - random.Uniform()) * load * sms / tasks;
    const double serial = random.Uniform(0, 0.02);
    // Noise of its own for each kernel, up to 30 % on every size.
    for (int32_t m = grain; m <= sms; m += grain) {
      const double ns = static_cast<double>(task.period_ns) * share * (1.0 / m + serial / sms) *
                        random.Uniform(1, 1.3);
      task.alone.push_back({m, std::max<int64_t>(1, static_cast<int64_t>(ns))});
      task.in_conflict.push_back(
          {m, std::max<int64_t>(1, static_cast<int64_t>(ns * random.Uniform(1, 2.3)))});
    }
    task.evictable = random.Uniform() < 0.7;
    if (task.evictable) {
      task.eviction_ns = static_cast<int64_t>(random.Uniform(0, 2e3));
      task.resume_ns = static_cast<int64_t>(random.Uniform(0, 1e3));
    }
    set.tasks.push_back(std::move(task));
  }
  return set;
}

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_TESTS_MODELS_PARTITION_RANDOM_SETS_H_
