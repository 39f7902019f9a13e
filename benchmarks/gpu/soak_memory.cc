// See soak_memory.h.

#include "benchmarks/gpu/soak_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

namespace gpushare::soak {
namespace {

int64_t Median(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Growth GrowthOf(const std::vector<int64_t>& used_bytes) {
  Growth growth;
  if (used_bytes.size() < kMemorySamplesMin) return growth;
  const auto warm_up =
      static_cast<ptrdiff_t>(static_cast<double>(used_bytes.size()) * kMemoryWarmUp);
  const std::vector<int64_t> warm(used_bytes.begin() + warm_up, used_bytes.end());
  const auto fifth = std::max<ptrdiff_t>(1, static_cast<ptrdiff_t>(warm.size() / 5));
  growth.first_bytes = Median({warm.begin(), warm.begin() + fifth});
  growth.last_bytes = Median({warm.end() - fifth, warm.end()});
  growth.enough = true;
  return growth;
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

}  // namespace gpushare::soak
