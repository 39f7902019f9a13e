// Durations of a kernel alone on the whole device, size by size, and the order in which they train
// its line.
//
// A line forgets (linear_model.h), and its error bar follows the newest samples. So one repeat of
// every size comes before the second of any: no size counts more because it was measured last.
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_SOLO_SIZES_H_
#define GPUSHARE_SRC_MODELS_SOLO_SIZES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace gpushare::models {

struct SoloSize {
  int64_t block_tasks = 0;
  std::vector<int64_t> ns;  // repeats, in the order taken
};

// Calls observe(block_tasks, ns) for every repeat, one of each size in turn.
inline void ForEachInTurn(absl::Span<const SoloSize> sizes,
                          absl::FunctionRef<void(int64_t, int64_t)> observe) {
  size_t repeats = 0;
  for (const SoloSize& size : sizes) repeats = std::max(repeats, size.ns.size());
  for (size_t i = 0; i < repeats; ++i) {
    for (const SoloSize& size : sizes) {
      if (i < size.ns.size()) observe(size.block_tasks, size.ns[i]);
    }
  }
}

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SOLO_SIZES_H_
