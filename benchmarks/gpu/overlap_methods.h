// The ways to run a Tensor-core task and a CUDA-core task of the same duration, each timed from one
// moment to the end of both: one after the other, as two ordinary grids on two streams, as workers
// in the same SMs, as a fused kernel, in two partitions.
//
// Every way that has block tasks counts them, and its first run is checked bit by bit. A way that
// cannot run here says why. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_METHODS_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_METHODS_H_

#include <gpushare/device/fused_variants.h>

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/gpu/co_run.h"
#include "benchmarks/gpu/overlap_side.h"

namespace gpushare::benchmarks {

struct WayResult {
  std::string way;
  bool ran = false;
  std::string why_not;
  std::string variant;   // which of several was best
  double total_ms = 0;   // median
  double tensor_ms = 0;  // the Tensor side's end
  double cuda_ms = 0;
  double speeds = 0;  // partitions: sum of both sides' speeds while both run
  int32_t tensor_sms = 0;
};

// A fused kernel that this device can run.
struct FusedChoice {
  std::string name;
  gpushare_fused_variants variants = {};
};
// Of these two kernels in this form (GPUSHARE_FUSED_...), all ratios.
std::vector<FusedChoice> FusedOf(const std::string& tensor, const std::string& cuda, uint32_t form);

class Ways {
 public:
  Ways(OverlapGpu& gpu, CoRun& run, Side& tensor, Side& cuda, int repeats)
      : gpu_(gpu), run_(run), tensor_(tensor), cuda_(cuda), repeats_(repeats) {}

  // An error is CUDA's, or a wrong result: nothing that follows would mean anything.
  kernels::Status Alone(double* tensor_ms, double* cuda_ms);
  // cuBLASLt's product alone; its way says why there is none.
  kernels::Status ProductAlone(WayResult* result);
  kernels::Status Serial(bool product, WayResult* result);
  kernels::Status TwoStreams(WayResult* result);
  kernels::Status CoResident(WayResult* result);
  kernels::Status FusedForm(uint32_t form, WayResult* result);
  // `alone_ms`: of the Tensor side, or of cuBLASLt's product.
  kernels::Status Partitions(bool product, double alone_ms, WayResult* result);

  // One launch of a fused kernel; every block holds a worker of either side.
  kernels::Status EnqueueFused(const FusedChoice& fused, const gpushare_worker_launch& tensor,
                               const gpushare_worker_launch& cuda, CUstream stream) const;

 private:
  struct Plan {
    std::function<kernels::Status()> prepare;  // before each run; may be empty
    CoRun::Work work;
    std::function<kernels::Status()> check;  // after each run: counts; may be empty
    std::function<double()> total;           // of a run; empty: the end of both streams
    bool writes_tensor = true;               // with the bits of the original grid
    bool writes_cuda = true;
  };

  kernels::Status Time(const Plan& plan, int repeats, WayResult* result);
  kernels::Status CheckBits(const Plan& plan);
  kernels::Status EnqueueTensor(bool product, const Streams& streams);
  kernels::Status CoResidentAt(uint32_t workers_per_sm, WayResult* result);
  kernels::Status FusedAt(const FusedChoice& fused, WayResult* result);
  kernels::Status FusedDirectAt(const FusedChoice& fused, WayResult* result);
  kernels::Status SpeedsAt(const Streams& streams, bool product, double alone_ms, double* sum,
                           bool* company);
  kernels::Status Elastic(const Streams& streams, bool product, WayResult* result);
  uint32_t FullWorkers(const Side& side, int32_t sms) const {
    return side.workers_per_sm() * static_cast<uint32_t>(sms);
  }

  OverlapGpu& gpu_;
  CoRun& run_;
  Side& tensor_;
  Side& cuda_;
  const int repeats_;
};

// Takes the better one, by the total.
void KeepBest(const WayResult& one, WayResult* best);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_METHODS_H_
