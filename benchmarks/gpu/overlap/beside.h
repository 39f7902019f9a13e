// How many blocks of one kernel an SM holds beside blocks of another. Plain arithmetic, with the
// limits of compute capability 8.0 to 10.0.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_BESIDE_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_BESIDE_H_

#include <algorithm>
#include <cstdint>

namespace gpushare::benchmarks {

struct BlockNeeds {
  uint32_t threads = 0;
  uint32_t registers = 0;  // a thread
  uint32_t shared_bytes = 0;
};

struct SmHas {
  uint32_t threads = 2048;
  uint32_t blocks = 32;
  uint32_t registers = 65536;
  uint32_t shared_bytes = 228 * 1024;
};

// The hardware gives registers to warps 256 at a time, and takes 1 KB of shared memory a block.
inline uint32_t RegistersOf(const BlockNeeds& block) {
  const uint32_t warps = (block.threads + 31) / 32;
  const uint32_t of_warp = (block.registers * 32 + 255) / 256 * 256;
  return warps * of_warp;
}

inline uint32_t SharedBytesOf(const BlockNeeds& block) {
  return (block.shared_bytes + 127) / 128 * 128 + 1024;
}

inline uint32_t BlocksBeside(const BlockNeeds& resident, uint32_t residents,
                             const BlockNeeds& block, const SmHas& sm) {
  const auto fit = [residents](uint32_t has, uint32_t taken, uint32_t needed) -> uint32_t {
    const uint64_t used = uint64_t{taken} * residents;
    return used >= has ? 0 : static_cast<uint32_t>((has - used) / std::max(1U, needed));
  };
  const auto whole_warps = [](uint32_t threads) { return (threads + 31) / 32 * 32; };
  return std::min({fit(sm.blocks, 1, 1),
                   fit(sm.threads, whole_warps(resident.threads), whole_warps(block.threads)),
                   fit(sm.registers, RegistersOf(resident), RegistersOf(block)),
                   fit(sm.shared_bytes, SharedBytesOf(resident), SharedBytesOf(block))});
}

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_BESIDE_H_
