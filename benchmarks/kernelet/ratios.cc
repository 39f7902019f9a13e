#include "benchmarks/kernelet/ratios.h"

#include <algorithm>
#include <set>

namespace gpushare::kernelet {

std::vector<PairRatio> RatiosOf(const SizedKernel& one, const SizedKernel& other) {
  const SizedKernel& first = one.name <= other.name ? one : other;
  const SizedKernel& second = one.name <= other.name ? other : one;
  const int32_t first_max = first.workers_per_sm_max;
  const int32_t second_max = second.workers_per_sm_max;
  std::set<std::array<int32_t, 2>> workers;
  for (int32_t of_second = 1; of_second < second_max; ++of_second) {
    const int32_t of_first = first_max * (second_max - of_second) / second_max;
    if (of_first > 0) workers.insert({of_first, of_second});
  }
  for (int32_t of_first = 1; of_first < first_max; ++of_first) {
    const int32_t of_second = second_max * (first_max - of_first) / first_max;
    if (of_second > 0) workers.insert({of_first, of_second});
  }
  std::vector<PairRatio> ratios;
  for (const std::array<int32_t, 2>& of_both : workers) {
    const bool mirrored = first.name == second.name && of_both[0] > of_both[1];
    if (!mirrored) ratios.push_back({{first.name, second.name}, of_both});
  }
  return ratios;
}

std::vector<PairRatio> AllRatios(const std::vector<SizedKernel>& kernels) {
  std::vector<PairRatio> all;
  for (size_t i = 0; i < kernels.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const std::vector<PairRatio> ratios = RatiosOf(kernels[i], kernels[j]);
      all.insert(all.end(), ratios.begin(), ratios.end());
    }
  }
  return all;
}

}  // namespace gpushare::kernelet
