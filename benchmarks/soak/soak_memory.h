// Whether a process keeps its memory: the median of the first fifth of the samples after the
// warm-up against that of the last fifth.
//
// Pure but for ResidentBytes. Threads: one at a time.

#ifndef GPUSHARE_BENCHMARKS_SOAK_SOAK_MEMORY_H_
#define GPUSHARE_BENCHMARKS_SOAK_SOAK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpushare::soak {

struct Growth {
  int64_t first_bytes = 0;  // median of the first fifth
  int64_t last_bytes = 0;
  bool enough = false;  // samples to say anything
  int64_t bytes() const { return last_bytes - first_bytes; }
};

// Fewer samples say nothing.
constexpr size_t kMemorySamplesMin = 10;
// Share of the samples that are warm-up: pools and caches fill.
constexpr double kMemoryWarmUp = 0.2;

Growth GrowthOf(const std::vector<int64_t>& used_bytes);

// Of this process, from /proc/self/statm; 0 where there is none.
int64_t ResidentBytes();

}  // namespace gpushare::soak

#endif  // GPUSHARE_BENCHMARKS_SOAK_SOAK_MEMORY_H_
