#include "src/models/markov/pruning.h"

#include <cmath>
#include <cstddef>
#include <span>

namespace gpushare::models::markov {
namespace {

// After 20 halvings a threshold is less than a millionth of what it was.
constexpr int kHalvingsMax = 20;

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

bool AllArePruned(std::span<const Utilization> kernels, const PruningThresholds& thresholds) {
  for (size_t i = 0; i < kernels.size(); ++i) {
    for (size_t j = i + 1; j < kernels.size(); ++j) {
      if (!IsPruned(kernels[i], kernels[j], thresholds)) return false;
    }
  }
  return true;
}

}  // namespace

Utilization MakeUtilization(const UtilizationCounts& counts, double peak_ipc,
                            double peak_requests_per_cycle) {
  return {Ratio(counts.instructions, counts.cycles * peak_ipc),
          Ratio(counts.dram_requests, counts.cycles * peak_requests_per_cycle)};
}

bool IsPruned(const Utilization& kernel, const Utilization& other,
              const PruningThresholds& thresholds) {
  return std::abs(kernel.pur - other.pur) < thresholds.pur &&
         std::abs(kernel.mur - other.mur) < thresholds.mur;
}

PruningThresholds LoosenThresholds(std::span<const Utilization> kernels,
                                   PruningThresholds thresholds) {
  for (int i = 0; i < kHalvingsMax; ++i) {
    if (!AllArePruned(kernels, thresholds)) return thresholds;
    thresholds = {thresholds.pur / 2, thresholds.mur / 2};
  }
  return {0, 0};
}

}  // namespace gpushare::models::markov
