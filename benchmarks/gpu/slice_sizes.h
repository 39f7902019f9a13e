// The sizes of slices that slice_benchmark tries, numbered from 1 (Kernelet 4.1 and fig. 6: whole
// multiples of the SMs).
//
// Up to what an SM holds a size is so many blocks an SM; from there on it is whole rounds of all
// SMs, because a part-filled last round idles part of the GPU. Plain arithmetic.

#ifndef GPUSHARE_BENCHMARKS_GPU_SLICE_SIZES_H_
#define GPUSHARE_BENCHMARKS_GPU_SLICE_SIZES_H_

#include <algorithm>
#include <cstdint>

namespace gpushare::benchmarks {

struct SliceSizes {
  uint32_t sms = 1;
  uint32_t blocks_per_sm = 1;  // that an SM holds
  uint32_t block_tasks = 1;    // of the whole task

  uint32_t BlocksPerSm(uint32_t number) const {
    return number <= blocks_per_sm ? number : (number - blocks_per_sm + 1) * blocks_per_sm;
  }
  uint32_t BlockTasks(uint32_t number) const {
    const uint64_t size = uint64_t{BlocksPerSm(number)} * sms;
    return static_cast<uint32_t>(std::min<uint64_t>(size, block_tasks));
  }
  // The number of the largest size that is less than the whole task; 0 when none is.
  uint32_t Count() const {
    const uint32_t most = (block_tasks - 1) / sms;  // blocks an SM
    return most <= blocks_per_sm ? most : blocks_per_sm + most / blocks_per_sm - 1;
  }
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_SLICE_SIZES_H_
