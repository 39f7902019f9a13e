// The workload of gemm_skinny: 32 rows against panels of weights, far more than L2 holds, each once
// and again from the first one on: the layers of a model, step after step.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "src/cuda/kernels/tensor/gemm_problem.h"
#include "src/cuda/kernels/tensor/gemm_skinny.h"
#include "src/cuda/kernels/tensor/portable_workload.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRows = 32;
constexpr uint32_t kKMultiple = 256;                 // four warps' windows, in whole lines of DRAM
constexpr double kWeightBytesMax = 2.0 * (1 << 30);  // 2,048 panels of 8192 a row

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
    SetParams(GemmSkinnyParamsOf(a_.as<const uint16_t>(), b_.as<const uint16_t>(),
                                 output_.as<uint16_t>(), kRows, n, k));
    return {};
  }
};

}  // namespace

Status MakeGemmSkinny(const CatalogueKernel& kernel, const WorkloadOptions& options,
                      std::unique_ptr<Workload>* workload) {
  return MakeAs<GemmSkinnyWorkload>(workload, kernel, options);
}

Status MakeGemmSkinnyParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                            Grid* grid) {
  const bool rows = problem.m == 8 || problem.m == 16 || problem.m == 32;
  const auto columns = static_cast<int>(kSkinnyColumns);
  const auto multiple = static_cast<int>(kSkinnyKMultiple);
  if (!rows || problem.n < columns || problem.k < multiple || problem.n % columns != 0 ||
      problem.k % multiple != 0) {
    return InvalidOption("gemm_skinny is asked for " + std::to_string(problem.m) + " x " +
                         std::to_string(problem.n) + " x " + std::to_string(problem.k) +
                         ", and m must be 8, 16 or 32, n a multiple of " + std::to_string(columns) +
                         " and k of " + std::to_string(multiple) + ".");
  }
  const GemmSkinnyParams made = GemmSkinnyParamsOf(
      static_cast<const uint16_t*>(problem.a), static_cast<const uint16_t*>(problem.b),
      static_cast<uint16_t*>(problem.c), static_cast<uint32_t>(problem.m),
      static_cast<uint32_t>(problem.n), static_cast<uint32_t>(problem.k));
  PackParams(made, params);
  *grid = {made.panels, 1, 1};
  return {};
}

}  // namespace gpushare::kernels
