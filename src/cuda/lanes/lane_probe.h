// The lane probe: the smallest worker kernel that ends early only when it is evicted.
//
// Its one worker tells the host that it runs, then takes block tasks of some microseconds. Together
// they bound its duration. Plain types only, so that the .cu file needs no Abseil.

#ifndef GPUSHARE_SRC_CUDA_LANES_LANE_PROBE_H_
#define GPUSHARE_SRC_CUDA_LANES_LANE_PROBE_H_

#include <cstdint>

namespace gpushare::cuda {

inline constexpr unsigned int kLaneProbeThreads = 32;

// The parameters behind the launch header. They start at a multiple of 64 bytes.
struct LaneProbeParams {
  uint64_t* running;  // mapped host memory; the first block task writes `mark`
  uint64_t mark;
  uint32_t block_task_ns;
  uint32_t reserved;
};

// The probe's worker function, a cudaFunction_t on the current context's device. Null if this build
// has no code for the GPU.
void* LaneProbeFunction();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_LANE_PROBE_H_
