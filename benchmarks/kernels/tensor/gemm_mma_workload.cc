// The workload of gemm_mma: tiles of a bf16 GEMM, each once, and again from the first one on.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/tensor/portable_workload.h"
#include "kernels/tensor/gemm_mma.h"
#include "kernels/tensor/gemm_mma_layout.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRingMax = 4096;  // tiles: with 1.5 K of k 64 MB of inputs, 128 MB of outputs
constexpr uint32_t kTilesMMax = 32;
// What one of the reference GPU's 264 workers does: 331 TFLOP/s of a prototype of the same form.
constexpr double kMultiplyAddsPerUs = 331e6 / 2 / 264;

uint32_t KOf(double block_task_us) {
  using gemm_mma::kTileK;
  const double per_round = static_cast<double>(kGemmMmaTile) * kGemmMmaTile * kTileK;
  const double rounds = block_task_us * kMultiplyAddsPerUs / per_round;
  return std::max(1U, static_cast<uint32_t>(std::lround(rounds))) * kTileK;
}

class GemmMmaWorkload : public PortableGemmWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    const uint32_t block_tasks =
        CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, block_tasks, kRingMax);
    // Any number of tiles: a row of tiles when it is odd.
    uint32_t tiles_m = 1;
    while (tiles_m < kTilesMMax && distinct_block_tasks_ % (tiles_m * 2) == 0) tiles_m *= 2;
    const uint32_t m = tiles_m * kGemmMmaTile;
    const uint32_t n = distinct_block_tasks_ / tiles_m * kGemmMmaTile;
    const uint32_t k = KOf(options.block_task_us);
    Status status = MakeBuffers(options, m, n, k);
    if (!status.ok()) return status;
    grid_ = {block_tasks, 1, 1};
    work_per_block_task_ = static_cast<double>(kGemmMmaTile) * kGemmMmaTile * k;
    SetParams(GemmMmaParamsOf(a_.as<const uint16_t>(), b_.as<const uint16_t>(),
                              output_.as<uint16_t>(), m, n, k));
    return {};
  }
};

}  // namespace

extern const WorkloadMaker kMakeGemmMma = MakeAs<GemmMmaWorkload>;

}  // namespace gpushare::kernels
