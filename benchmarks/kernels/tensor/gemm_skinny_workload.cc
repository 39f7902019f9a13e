// The workload of gemm_skinny and its compact form: 32 rows against panels of weights, far more
// than L2 holds, each once and again from the first one on: the layers of a model, step after step.
// And which of the two bodies a device runs.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "benchmarks/kernels/tensor/portable_workload.h"
#include "kernels/tensor/gemm_problem.h"
#include "kernels/tensor/gemm_skinny.h"
#include "kernels/tensor/gemm_wgmma.h"

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

// Tensor maps only for who reads them: other GPUs than sm_90a may have no encoder.
Status FillParams(const GemmProblem& problem, GemmSkinnyParams* params) {
  GemmWgmmaParams maps = {};
  Status runs = CheckWgmma();
  if (runs.ok()) {
    constexpr GemmTileShape kShape = {kSkinnyRowsMax, kSkinnyColumns};
    Grid grid;
    Status status = MakeWgmmaParams(kShape, problem, 1, 1, &maps, &grid);
    if (!status.ok()) return status;
  } else if (runs.code != cudaErrorNoKernelImageForDevice) {
    return runs;
  }
  *params = {};
  params->activations_map = maps.a;
  params->weights_map = maps.b;
  params->activations = static_cast<const uint16_t*>(problem.a);
  params->weights = static_cast<const uint16_t*>(problem.b);
  params->c = static_cast<uint16_t*>(problem.c);
  params->m = static_cast<uint32_t>(problem.m);
  params->n = static_cast<uint32_t>(problem.n);
  params->k = static_cast<uint32_t>(problem.k);
  params->panels = params->n / kSkinnyColumns;
  return {};
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
    GemmSkinnyParams params = {};
    status = FillParams({static_cast<int>(kRows), static_cast<int>(n), static_cast<int>(k),
                         a_.data(), b_.data(), output_.data()},
                        &params);
    if (status.ok()) SetParams(params);
    return status;
  }
};

// Of sm_90a's body where the device runs it, else of the portable one.
int VariantsOfDevice(int (*sm90a)(gpushare_kernel_variants*), gpushare_kernel_variants* out) {
  const Status runs = CheckWgmma();
  if (runs.ok()) return sm90a(out);
  if (runs.code != cudaErrorNoKernelImageForDevice) return runs.code;
  return gpushare_gemm_skinny_portable_variants(out);
}

}  // namespace

int GemmSkinnyVariants(gpushare_kernel_variants* out) {
  return VariantsOfDevice(gpushare_gemm_skinny_variants, out);
}

int GemmSkinnyCompactVariants(gpushare_kernel_variants* out) {
  return VariantsOfDevice(gpushare_gemm_skinny_compact_variants, out);
}

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
  GemmSkinnyParams made = {};
  Status status = FillParams(problem, &made);
  if (!status.ok()) return status;
  PackParams(made, params);
  *grid = {made.panels, 1, 1};
  return {};
}

}  // namespace gpushare::kernels
