#include "benchmarks/gpu/ptx/fused_ratios.h"

#include <algorithm>
#include <tuple>

namespace gpushare::benchmarks {
namespace {

uint32_t CopiesOf(const ptx::FusedRatio& ratio) { return ratio.tensor_copies + ratio.cuda_copies; }

std::string NeedsOf(const ptx::PartNeeds& part) {
  return std::to_string(part.threads) + " threads, " +
         (part.registers > 0 ? std::to_string(part.registers) : "unknown") +
         " registers of a worker's thread and " + std::to_string(part.shared_bytes) +
         " bytes of shared memory";
}

}  // namespace

ptx::FusedPart PartOf(const PartSource& source, uint32_t copies) {
  return {.text = source.text,
          .entry = source.entry,
          .block = {static_cast<uint32_t>(source.threads), 1, 1},
          .dynamic_shared_bytes = static_cast<uint32_t>(source.dynamic_shared_bytes),
          .copies = copies,
          .registers = static_cast<uint32_t>(source.registers)};
}

ptx::FusedTwin FusedAt(const PartSource& tensor, const PartSource& cuda,
                       const ptx::FusedRatio& ratio) {
  return ptx::Fuse(PartOf(tensor, ratio.tensor_copies), PartOf(cuda, ratio.cuda_copies),
                   {.move_registers = ratio.move_registers});
}

PairRatios RatiosOfParts(const PartSource& tensor, const PartSource& cuda,
                         const RatioBounds& bounds) {
  PairRatios pair;
  const ptx::FusedChecked checked = ptx::CheckFused(PartOf(tensor, 1), PartOf(cuda, 1));
  pair.refusal = checked.refusal.message;
  if (!checked.ok()) return pair;
  for (const ptx::FusedRatio& ratio :
       ptx::FeasibleRatios(checked.tensor, checked.cuda, {}, checked.may_move_registers)) {
    if (CopiesOf(ratio) <= bounds.copies) pair.ratios.push_back(ratio);
  }
  std::stable_sort(pair.ratios.begin(), pair.ratios.end(),
                   [](const ptx::FusedRatio& a, const ptx::FusedRatio& b) {
                     return std::tuple(a.capped, CopiesOf(a)) < std::tuple(b.capped, CopiesOf(b));
                   });
  pair.ratios.resize(std::min(pair.ratios.size(), bounds.ratios));
  if (!pair.ratios.empty()) return pair;
  pair.refusal = "No ratio of at most " + std::to_string(bounds.copies) +
                 " copies fits on an SM: the Tensor part has " + NeedsOf(checked.tensor) +
                 "; the CUDA part has " + NeedsOf(checked.cuda) + ".";
  return pair;
}

}  // namespace gpushare::benchmarks
