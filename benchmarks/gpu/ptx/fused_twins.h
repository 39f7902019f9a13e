// Makes the fused twins of several pairs at their first ratios, on several processor cores.
//
// Threads: MakeTwins runs some of its own and returns when they have ended.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_TWINS_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_TWINS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/gpu/ptx/fused_ratios.h"
#include "benchmarks/gpu/ptx/launchable.h"
#include "benchmarks/gpu/ptx/twin_gpu.h"
#include "src/ptx/fused/layout.h"

namespace gpushare::benchmarks {

// A fused twin, or why there is none.
struct FusedTwinCode {
  ptx::FusedRatio ratio;
  ptx::FusedLayout layout;
  Code code;
  int registers = 0;
  int spilled_bytes = 0;
  int blocks_per_sm = 0;
  double made_ms = 0;   // fused, assembled or found in the cache, and loaded
  std::string why_not;  // empty: it can be launched
  double us = 0;        // of both parts at load ratio 1; 0: not measured

  bool made() const { return why_not.empty(); }
  int dynamic_shared_bytes() const {
    return layout.dynamic_shared ? static_cast<int>(layout.shared_bytes) : 0;
  }
};

struct TwinsOfPair {
  const Launchable* tensor = nullptr;
  const Launchable* cuda = nullptr;
  std::string refusal;               // of the pair; empty: it can be fused
  std::vector<FusedTwinCode> twins;  // one for each ratio, in the order of RatiosOfParts
};

// The first ratios that fit, without code.
TwinsOfPair RatiosOf(const Launchable& tensor, const Launchable& cuda, const RatioBounds& bounds);

// Makes the code of all pairs, a ratio of each in turn. No ratio is begun after `until_us`, and
// what was begun is waited for.
void MakeTwins(TwinGpu& gpu, std::vector<TwinsOfPair>& pairs, int threads, double until_us);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_TWINS_H_
