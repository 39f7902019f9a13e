// How much of an SM's memory has to be shared memory, the rest being L1 cache, so that a number of
// blocks fit. Host code without CUDA's headers. Threads: any.

#ifndef GPUSHARE_DEVICE_SHARED_MEMORY_SPLIT_H_
#define GPUSHARE_DEVICE_SHARED_MEMORY_SPLIT_H_

#include <cstddef>

namespace gpushare::device {

// CUDA's "preferred carve-out": 1 to 100, in per cent of `sm_bytes`, the most that an SM has.
// `reserved_bytes`: CUDA's own of each block.
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
