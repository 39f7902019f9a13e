// The table of the catalogue's kernels. What makes a workload of each is in NAME_workload.cc.

#include "src/cuda/kernels/catalogue.h"

#include <cstring>

#include "src/cuda/kernels/workload_base.h"

extern "C" {
int gpushare_sincos_variants(gpushare_kernel_variants* out);
int gpushare_sincos_steps_variants(gpushare_kernel_variants* out);
int gpushare_ffma_variants(gpushare_kernel_variants* out);
int gpushare_streaming_variants(gpushare_kernel_variants* out);
int gpushare_stencil_variants(gpushare_kernel_variants* out);
int gpushare_black_scholes_variants(gpushare_kernel_variants* out);
int gpushare_md5_variants(gpushare_kernel_variants* out);
}

namespace gpushare::kernels {
namespace {

constexpr const char* kSpecialFormula =
    "2 special-function results an iteration and thread / (16 * SMs * clock)";
constexpr const char* kDramFormula = "bytes read and written once / DRAM bandwidth";

// Block-task lengths: the ones of the measured table (27 us, 59 us), 2.7 ms for the one that
// yields.
const CatalogueKernel kCatalogue[kCatalogueSize] = {
    {"sincos", gpushare_sincos_variants, Bound::kSpecial, kSpecialFormula, false, 27, MakeSincos},
    {"sincos_steps", gpushare_sincos_steps_variants, Bound::kSpecial, kSpecialFormula, true, 2700,
     MakeSincos},
    {"ffma", gpushare_ffma_variants, Bound::kFfma,
     "8 fused multiply-adds an iteration and thread / (128 * SMs * clock)", false, 30, MakeFfma},
    {"streaming", gpushare_streaming_variants, Bound::kDram, kDramFormula, false, 59,
     MakeStreaming},
    {"stencil", gpushare_stencil_variants, Bound::kDram, kDramFormula, false, 59, MakeStencil},
    {"black_scholes", gpushare_black_scholes_variants, Bound::kDram, kDramFormula, false, 50,
     MakeBlackScholes},
    {"md5", gpushare_md5_variants, Bound::kInteger,
     "212 integer instructions a hash / (64 * SMs * clock)", false, 50, MakeMd5},
};

double PerClockAndSm(Bound bound) {
  switch (bound) {
    case Bound::kSpecial:
      return 16;
    case Bound::kFfma:
      return 128;
    case Bound::kInteger:
      return 64;
    case Bound::kDram:
      break;
  }
  return 0;
}

}  // namespace

const CatalogueKernel* Catalogue() { return kCatalogue; }

const CatalogueKernel* FindKernel(const char* name) {
  for (const CatalogueKernel& kernel : kCatalogue) {
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  }
  return nullptr;
}

double Workload::BoundSeconds(int32_t sms, double clock_mhz, double dram_bytes_per_s) const {
  const double work = work_per_block_task_ * block_tasks();
  if (kernel_->bound == Bound::kDram) return work / dram_bytes_per_s;
  return work / (PerClockAndSm(kernel_->bound) * sms * clock_mhz * 1e6);
}

Status MakeWorkload(const CatalogueKernel& kernel, const WorkloadOptions& options,
                    std::unique_ptr<Workload>* workload) {
  if (options.sms <= 0 || options.solo_ms <= 0 || options.block_task_us < 0) {
    return InvalidOption("A workload asks for " + std::to_string(options.solo_ms) + " ms on " +
                         std::to_string(options.sms) + " SMs, and both must be positive.");
  }
  WorkloadOptions filled = options;
  if (filled.block_task_us == 0) filled.block_task_us = kernel.block_task_us;
  if (CountBlockTasks(filled, filled.block_task_us) == 0) {
    return InvalidOption("A workload asks for " + std::to_string(options.solo_ms) +
                         " ms, and that is more than 2^31 block tasks.");
  }
  const Status status = kernel.make(kernel, filled, workload);
  if (status.ok()) (*workload)->kernel_ = &kernel;
  return status;
}

}  // namespace gpushare::kernels
