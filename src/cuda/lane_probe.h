// The lane probe: the smallest worker kernel that only an eviction ends early.
//
// Its one worker tells the host that it runs and then takes block tasks of some microseconds; all
// of them together are its bound. Plain types, so that the .cu file needs no Abseil.

#ifndef GPUSHARE_SRC_CUDA_LANE_PROBE_H_
#define GPUSHARE_SRC_CUDA_LANE_PROBE_H_

#include <cstdint>

namespace gpushare::cuda {

inline constexpr unsigned int kLaneProbeThreads = 32;

// The parameters behind the launch header. They start at a multiple of 64 bytes.
struct LaneProbeParams {
  uint64_t* running;  // mapped host memory; becomes `mark` with the first block task
  uint64_t mark;
  uint32_t block_task_ns;
  uint32_t reserved;
};

// The probe's worker function, a cudaFunction_t of the current context's device. Null: no code for
// this GPU.
void* LaneProbeFunction();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANE_PROBE_H_
