#include "src/models/markov/counters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace gpushare::models::markov {

bool IsUsable(const KernelCounters& counters) {
  const ResidentKernel unit = {.units = 1,
                               .memory_share = counters.memory_share,
                               .uncoalesced_share = counters.uncoalesced_share,
                               .uncoalesced_requests = counters.uncoalesced_requests};
  return IsUsable(unit) && std::isfinite(counters.instructions_per_block) &&
         counters.instructions_per_block > 0 && counters.warps_per_block > 0 &&
         counters.registers_per_block >= 0 && counters.shared_bytes_per_block >= 0;
}

bool FitsTogether(const GpuShape& gpu, const KernelCounters& kernel, int32_t blocks,
                  const KernelCounters& other, int32_t other_blocks) {
  const int64_t own = blocks;
  const int64_t beside = other_blocks;
  return own + beside <= gpu.blocks_per_sm &&
         own * kernel.warps_per_block + beside * other.warps_per_block <= gpu.warps_per_sm &&
         own * kernel.registers_per_block + beside * other.registers_per_block <=
             gpu.registers_per_sm &&
         own * kernel.shared_bytes_per_block + beside * other.shared_bytes_per_block <=
             gpu.shared_bytes_per_sm;
}

int32_t BlocksBeside(const GpuShape& gpu, const KernelCounters& kernel, const KernelCounters& other,
                     int32_t other_blocks) {
  int32_t blocks = std::min(gpu.blocks_per_sm, gpu.warps_per_sm);
  while (blocks > 0 && !FitsTogether(gpu, kernel, blocks, other, other_blocks)) --blocks;
  return std::max(blocks, 0);
}

int32_t BlocksAlone(const GpuShape& gpu, const KernelCounters& kernel) {
  return BlocksBeside(gpu, kernel, kernel, 0);
}

ResidentKernel MakeResident(const GpuShape& gpu, const KernelCounters& kernel, int32_t blocks,
                            Unit unit) {
  const double warps = static_cast<double>(blocks) * kernel.warps_per_block / gpu.schedulers_per_sm;
  const int32_t units = unit == Unit::kBlock ? blocks : static_cast<int32_t>(std::ceil(warps));
  return {.units = units,
          .warps_per_unit = units > 0 ? warps / units : 1,
          .memory_share = kernel.memory_share,
          .uncoalesced_share = kernel.uncoalesced_share,
          .uncoalesced_requests = kernel.uncoalesced_requests};
}

}  // namespace gpushare::models::markov
