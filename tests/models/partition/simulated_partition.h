// A partition in virtual time, exactly as an analysis assumes it: what a yes is tested against.
//
// One job at a time, earliest deadline first. Preempting: a job with an earlier deadline takes over
// at once. Running to the end: it waits. Evicting: the running job makes no progress from the
// arrival on, its SMs are free an eviction latency later, and its relaunch adds the resume; a job
// that would end sooner than it could be evicted ends. Integers throughout.

#ifndef GPUSHARE_TESTS_MODELS_PARTITION_SIMULATED_PARTITION_H_
#define GPUSHARE_TESTS_MODELS_PARTITION_SIMULATED_PARTITION_H_

#include <cstdint>
#include <vector>

#include "src/core/base/random.h"
#include "src/models/partition/schedulability.h"

namespace gpushare::models::partition {

struct SimulatedTask {
  int64_t period_ns = 0;
  int64_t deadline_ns = 0;
  int64_t work_ns = 0;
  bool evictable = false;
  int64_t eviction_ns = 0;
  int64_t resume_ns = 0;
};

struct Releases {
  std::vector<int64_t> first_ns;   // of each task
  core::Random* jitter = nullptr;  // sporadic: half of the distances are up to a period longer
  int64_t until_ns = 0;            // no release from here on
};

// The longest response of each task, 0 without a job.
std::vector<int64_t> SimulatePartition(const std::vector<SimulatedTask>& tasks, Mode mode,
                                       const Releases& releases);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_TESTS_MODELS_PARTITION_SIMULATED_PARTITION_H_
