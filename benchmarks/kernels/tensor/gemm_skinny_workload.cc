// The workload of gemm_skinny and its compact form: 32 rows against panels of weights, far more
// than L2 holds, each once and again from the first one on: the layers of a model, step after step.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/tensor/portable_workload.h"
#include "kernels/tensor/gemm_problem.h"
#include "kernels/tensor/gemm_skinny.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRows = 32;
constexpr uint32_t kKMultiple = 256;                 // whole stages and lines of DRAM
constexpr double kWeightBytesMax = 2.0 * (1 << 30);  // 2,048 panels of 8192 a row
static_assert(kKMultiple % kSkinnyKMultiple == 0, "both bodies take the workload's k");

uint32_t KOf(const WorkloadOptions& options, uint32_t workers_per_sm) {
  const double bytes =
      kReferenceDramBytesPerUs * options.block_task_us / (options.sms * workers_per_sm);
  const double per_multiple = 1.0 * kSkinnyColumns * kKMultiple * sizeof(uint16_t);
  return std::max(1U, static_cast<uint32_t>(std::lround(bytes / per_multiple))) * kKMultiple;
}

class GemmSkinnyWorkload : public PortableGemmWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    const uint32_t block_tasks =
        CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const uint32_t k = KOf(options, kernel.workers_per_sm);
    const double panel_bytes = 1.0 * kSkinnyColumns * k * sizeof(uint16_t);
    distinct_block_tasks_ =
        RingOf(options, block_tasks, static_cast<uint32_t>(kWeightBytesMax / panel_bytes));
    const uint32_t n = distinct_block_tasks_ * kSkinnyColumns;
    Status status = MakeBuffers(options, kRows, n, k);
    if (!status.ok()) return status;
    grid_ = {block_tasks, 1, 1};
    // Weights and results. Activations stay in L2.
    work_per_block_task_ = panel_bytes + 1.0 * kRows * kSkinnyColumns * sizeof(uint16_t);
    Grid once;  // each panel once
    return MakeGemmSkinnyParams({static_cast<int>(kRows), static_cast<int>(n), static_cast<int>(k),
                                 a_.data(), b_.data(), output_.data()},
                                &params_, &once);
  }
};

}  // namespace

extern const WorkloadMaker kMakeGemmSkinny = MakeAs<GemmSkinnyWorkload>;

}  // namespace gpushare::kernels
