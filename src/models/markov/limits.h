// Bounds of the Markov model. Every buffer of the model has one of these sizes.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_LIMITS_H_
#define GPUSHARE_SRC_MODELS_MARKOV_LIMITS_H_

#include <cstddef>

namespace gpushare::models::markov {

// Kernels that share an SM. The paper schedules two; three bound the state space of a chain.
inline constexpr int kKernelsMax = 3;

// States of one chain. Solving it takes n^3 / 3 multiplications and n^2 doubles (128 KiB).
inline constexpr int kStatesMax = 128;

// States of the chain of a pair when a planner asks: 8 + 8 warps on one of four schedulers, 81
// states, is the worst equal split of a 64-warp SM. Solving them takes less than 50 us.
inline constexpr int kPlannedStatesMax = 81;

// Sets and ways of the cache of pairs: 1,024 pairs.
inline constexpr size_t kCacheSets = 256;
inline constexpr size_t kCacheWays = 4;

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_LIMITS_H_
