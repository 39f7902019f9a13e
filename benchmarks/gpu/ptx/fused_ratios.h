// Which ratios of a pair the benchmark of fused twins makes: those that fit, by what each part's
// launch says, the likely ones first, and few enough for its time. Threads: any; pure functions.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_RATIOS_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_RATIOS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/ptx/fused.h"

namespace gpushare::benchmarks {

// What a launch says of its kernel as a part.
struct PartSource {
  const std::string& text;
  const std::string& entry;
  int threads = 0;
  int dynamic_shared_bytes = 0;
  int registers = 0;  // of a thread of the worker twin; 0: not known
};
ptx::FusedPart PartOf(const PartSource& source, uint32_t copies);
ptx::FusedTwin FusedAt(const PartSource& tensor, const PartSource& cuda,
                       const ptx::FusedRatio& ratio);

// Each copy has code of its own: the time to assemble grows with the copies.
struct RatioBounds {
  size_t ratios = 6;    // of a pair
  uint32_t copies = 5;  // of both parts together
};

struct PairRatios {
  std::string refusal;                  // of the pair, with both parts' needs; empty: it has ratios
  std::vector<ptx::FusedRatio> ratios;  // capped ones last, then few copies first
};
PairRatios RatiosOfParts(const PartSource& tensor, const PartSource& cuda,
                         const RatioBounds& bounds);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_RATIOS_H_
