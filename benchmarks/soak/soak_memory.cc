#include "benchmarks/soak/soak_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "benchmarks/harness/quantiles.h"

namespace gpushare::soak {
using benchmarks::Median;

Growth GrowthOf(const std::vector<int64_t>& used_bytes) {
  Growth growth;
  if (used_bytes.size() < kMemorySamplesMin) return growth;
  const auto warm_up =
      static_cast<ptrdiff_t>(static_cast<double>(used_bytes.size()) * kMemoryWarmUp);
  const std::vector<int64_t> warm(used_bytes.begin() + warm_up, used_bytes.end());
  const auto fifth = std::max<ptrdiff_t>(1, static_cast<ptrdiff_t>(warm.size() / 5));
  growth.first_bytes = Median(std::vector<int64_t>(warm.begin(), warm.begin() + fifth));
  growth.last_bytes = Median(std::vector<int64_t>(warm.end() - fifth, warm.end()));
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
