// Which pairs are worth a chain: PUR, MUR and the pruning rule (Kernelet 4.3). Threads: any.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_PRUNING_H_
#define GPUSHARE_SRC_MODELS_MARKOV_PRUNING_H_

#include <span>

namespace gpushare::models::markov {

// How much of the pipeline and of the memory bandwidth a kernel uses alone, of 1.
struct Utilization {
  double pur = 0;  // instructions / (time x frequency x peak IPC)
  double mur = 0;  // DRAM reads and writes / (time x frequency x peak requests a cycle)
};

struct UtilizationCounts {
  double instructions = 0;
  double dram_requests = 0;
  double cycles = 0;  // time x frequency
};

// Peaks are those of the whole device, per cycle. Without cycles or peaks the result is 0.
Utilization MakeUtilization(const UtilizationCounts& counts, double peak_ipc,
                            double peak_requests_per_cycle);

// alpha_p and alpha_m: differences under which two kernels count as alike.
struct PruningThresholds {
  double pur = 0.4;
  double mur = 0.1;
};

// A pair is pruned when both differences are under their thresholds. The text says "or"; only
// "and" gives the numbers of table 6 (docs/models.md).
bool IsPruned(const Utilization& kernel, const Utilization& other,
              const PruningThresholds& thresholds);

// The thresholds, halved until at least one pair of `kernels` is left; with fewer than two kernels,
// or kernels that are all alike, they end at 0, which prunes nothing.
PruningThresholds LoosenThresholds(std::span<const Utilization> kernels,
                                   PruningThresholds thresholds);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_PRUNING_H_
