// How much of an SM's memory must be shared memory (the rest is L1) so that a number of blocks fit.
// Host code without CUDA headers. Threads: any.

#ifndef GPUSHARE_DEVICE_SHARED_MEMORY_SPLIT_H_
#define GPUSHARE_DEVICE_SHARED_MEMORY_SPLIT_H_

#include <cstddef>

namespace gpushare::device {

// CUDA's "preferred carve-out" for `blocks` blocks in an SM: 1 to 100 per cent of `sm_bytes`, the
// most shared memory of an SM. `reserved_bytes` is what CUDA reserves for each block.
inline int SharedMemorySplitPercent(int blocks, size_t block_bytes, size_t reserved_bytes,
                                    size_t sm_bytes) {
  if (blocks <= 0 || sm_bytes == 0) return 100;
  const size_t needed = static_cast<size_t>(blocks) * (block_bytes + reserved_bytes);
  const size_t percent = (100 * needed + sm_bytes - 1) / sm_bytes;
  if (percent > 100) return 100;
  return percent == 0 ? 1 : static_cast<int>(percent);
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_SHARED_MEMORY_SPLIT_H_
