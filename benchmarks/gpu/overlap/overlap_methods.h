// The ways to run a Tensor-core task and a CUDA-core task of the same duration, each timed from one
// moment to the end of both: one after the other, as workers in the same SMs, as a fused kernel, in
// two partitions.
//
// Every way that has block tasks counts them, and its first run is checked bit by bit. A way that
// cannot run here says why. A Failure is CUDA's, or a wrong result: nothing that follows would mean
// anything. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_METHODS_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_METHODS_H_

#include <gpushare/device/fused_variants.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/co_run.h"
#include "benchmarks/gpu/overlap/overlap_side.h"

namespace gpushare::benchmarks {

class Arguments;
class Report;

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
// Of these two kernels in these forms (GPUSHARE_FUSED_...), all ratios, form by form.
std::vector<FusedChoice> FusedOf(const Side& tensor, const Side& cuda,
                                 const std::vector<uint32_t>& forms);
// The forms whose parts are workers. Fails where this device can run no such kernel.
std::vector<FusedChoice> FusedWorkersOf(const Side& tensor, const Side& cuda);

class Ways {
 public:
  Ways(OverlapGpu& gpu, CoRun& run, Side& tensor, Side& cuda, int repeats)
      : gpu_(gpu), run_(run), tensor_(tensor), cuda_(cuda), repeats_(repeats) {}

  // Milliseconds of the Tensor side's and of the CUDA-core side's original grid.
  double TensorAlone() { return Alone(tensor_); }
  double CudaAlone() { return Alone(cuda_); }
  // Each fills in a result whose way has its name. cuBLASLt's product alone:
  void ProductAlone(WayResult* result);
  void Serial(bool product, WayResult* result);
  void CoResident(WayResult* result);
  void FusedForm(uint32_t form, WayResult* result);
  // `alone_ms`: of cuBLASLt's product, which is the Tensor side.
  void Partitions(double alone_ms, WayResult* result);

  // The first `cuda_tasks` block tasks of the CUDA-core task fused with the whole Tensor task.
  void Fused(const FusedChoice& fused, uint32_t cuda_tasks, WayResult* result);
  // One launch of a fused kernel; every block holds a worker of either side.
  void EnqueueFused(const FusedChoice& fused, const gpushare_worker_launch& tensor,
                    const gpushare_worker_launch& cuda, CUstream stream);

 private:
  struct Plan {
    std::function<void()> prepare;  // before each run; may be empty
    CoRun::Work work;
    std::function<void()> check;    // after each run: counts; may be empty
    std::function<double()> total;  // of a run; empty: the end of both streams
    bool writes_tensor = true;      // with the bits of the original grid
    bool writes_cuda = true;
  };
  // What runs together: the Tensor side, and workers of the CUDA-core side beside it and, when it
  // has ended, in its place.
  struct Together {
    Streams streams;
    bool product = false;  // cuBLASLt's is the Tensor side, else its workers
    uint32_t beside = 0;
    uint32_t later = 0;
    uint64_t delay_ns = 0;  // of the workers beside
  };

  void Time(const Plan& plan, int repeats, WayResult* result);
  void RunOnce(const Plan& plan, bool warm_up);
  double Alone(Side& side);
  void RunTogether(const Together& together, WayResult* result);
  struct Speeds {
    double sum = 0;           // of both sides
    bool overlapped = false;  // the sides ran together for nearly all of the Tensor side's time
  };
  Speeds SpeedsAt(const Streams& streams, double alone_ms);

  OverlapGpu& gpu_;
  CoRun& run_;
  Side& tensor_;
  Side& cuda_;
  const int repeats_;
};

// The option --pairs a+b,c+d.
std::vector<Pair> PairsOf(Arguments& given, const std::vector<Pair>& otherwise);

// Calls `run` with each pair, which adds rows to the report, and ends the report with the pairs
// that were left out and why: a Failure, a kernel that this build lacks, no time (none begins after
// until_s of NowSeconds()). Returns the exit code: kFailed after a Failure.
int RunPairs(const std::vector<Pair>& pairs, Report& report,
             const std::function<void(const Pair&)>& run,
             double until_s = std::numeric_limits<double>::infinity());

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_METHODS_H_
