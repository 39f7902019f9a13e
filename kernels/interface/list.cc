// The list of kernels: what there is, by index and by name, and the variants of each.

#include "kernels/interface/list.h"

#include <cstring>
#include <string>

#include "kernels/interface/errors.h"
#include "kernels/interface/structs.h"
#include "kernels/status.h"
#include "kernels/tensor/gemm_skinny.h"
#include "kernels/tensor/gemm_wgmma.h"

using Variants = int(gpushare_kernel_variants* out);
extern "C" {
Variants gpushare_adam_variants, gpushare_batch_norm_variants, gpushare_gemm_mma_variants,
    gpushare_im2col_float_variants, gpushare_im2col_variants, gpushare_layer_norm_variants,
    gpushare_pooling_variants, gpushare_relu_variants, gpushare_scale_variants,
    gpushare_sgd_variants, gpushare_softmax_variants;
}

namespace gpushare::kernels {
namespace {

constexpr gpushare_kernels_bound kTensor = GPUSHARE_KERNELS_BOUND_TENSOR;
constexpr gpushare_kernels_bound kShared = GPUSHARE_KERNELS_BOUND_SHARED;
constexpr gpushare_kernels_bound kDram = GPUSHARE_KERNELS_BOUND_DRAM;

constexpr KernelRow kRows[] = {
    {"gemm_wgmma", "bf16 GEMM by TMA and wgmma, the fastest for large matrices.",
     "gpushare_gemm_params", kTensor, 90, 90, GemmWgmmaVariants},
    {"gemm_roomy", "bf16 GEMM by TMA and wgmma that leaves room for a fused neighbour.",
     "gpushare_gemm_params", kTensor, 90, 90, GemmRoomyVariants},
    {"gemm_mma", "bf16 GEMM by mma.sync.", "gpushare_gemm_params", kShared, 80, 0,
     gpushare_gemm_mma_variants},
    {"gemm_skinny", "bf16 GEMM of few rows against large weights.", "gpushare_gemm_params", kDram,
     80, 0, GemmSkinnyVariants},
    {"gemm_skinny_compact", "gemm_skinny in the shared memory that gemm_roomy leaves.",
     "gpushare_gemm_params", kDram, 80, 0, GemmSkinnyCompactVariants},
    {"softmax", "Softmax over rows of float32.", "gpushare_softmax_params", kDram, 80, 0,
     gpushare_softmax_variants},
    {"layer_norm", "Layer normalisation over rows of float32.", "gpushare_layer_norm_params", kDram,
     80, 0, gpushare_layer_norm_variants},
    {"batch_norm", "Batch normalisation of an NCHW tensor of float32, as inference computes it.",
     "gpushare_batch_norm_params", kDram, 80, 0, gpushare_batch_norm_variants},
    {"scale", "One factor and one shift a channel of an NCHW tensor of float32.",
     "gpushare_scale_params", kDram, 80, 0, gpushare_scale_variants},
    {"relu", "ReLU of float32.", "gpushare_relu_params", kDram, 80, 0, gpushare_relu_variants},
    {"pooling", "Maximum or average of 3 x 3 windows at a stride of 2, float32.",
     "gpushare_pooling_params", kDram, 80, 0, gpushare_pooling_variants},
    {"im2col", "3 x 3 windows as the rows of a matrix, elements of 2 bytes.",
     "gpushare_im2col_params", kDram, 80, 0, gpushare_im2col_variants},
    {"im2col_float", "3 x 3 windows as the rows of a matrix, elements of 4 bytes.",
     "gpushare_im2col_params", kDram, 80, 0, gpushare_im2col_float_variants},
    {"sgd", "A step of SGD with momentum and weight decay, float32.", "gpushare_sgd_params", kDram,
     80, 0, gpushare_sgd_variants},
    {"adam", "A step of Adam, float32.", "gpushare_adam_params", kDram, 80, 0,
     gpushare_adam_variants},
};
constexpr uint32_t kCount = sizeof(kRows) / sizeof(kRows[0]);

}  // namespace

const KernelRow* FindRow(uint32_t kernel) { return kernel < kCount ? &kRows[kernel] : nullptr; }

bool FindIndex(const char* name, uint32_t* kernel) {
  for (uint32_t i = 0; i < kCount; ++i) {
    if (std::strcmp(kRows[i].name, name) != 0) continue;
    *kernel = i;
    return true;
  }
  return false;
}

gpushare_kernels_status NoSuchKernel(uint32_t kernel) noexcept {
  return Guard([&] {
    return Fail(GPUSHARE_KERNELS_OUT_OF_RANGE, "There is no kernel " + std::to_string(kernel) +
                                                   ", and the list has " + std::to_string(kCount) +
                                                   ".");
  });
}

}  // namespace gpushare::kernels

using gpushare::kernels::Fail;
using gpushare::kernels::Guard;
using gpushare::kernels::KernelRow;

uint32_t gpushare_kernels_count() noexcept { return gpushare::kernels::kCount; }

gpushare_kernels_status gpushare_kernels_info_get(uint32_t kernel,
                                                  gpushare_kernels_info* out_info) noexcept {
  return Guard([&]() -> gpushare_kernels_status {
    const KernelRow* const row = gpushare::kernels::FindRow(kernel);
    if (row == nullptr) return gpushare::kernels::NoSuchKernel(kernel);
    const auto status = gpushare::kernels::CheckStruct("gpushare_kernels_info", out_info);
    if (status != GPUSHARE_KERNELS_OK) return status;
    gpushare_kernels_info info = GPUSHARE_KERNELS_INFO_INIT;
    info.bound = row->bound;
    info.name = row->name;
    info.summary = row->summary;
    info.params = row->params;
    info.compute_capability_min = row->compute_capability_min;
    info.compute_capability_max = row->compute_capability_max;
    gpushare::kernels::WriteStruct(info, out_info);
    return GPUSHARE_KERNELS_OK;
  });
}

gpushare_kernels_status gpushare_kernels_find(const char* name, uint32_t* out_kernel) noexcept {
  return Guard([&]() -> gpushare_kernels_status {
    if (name == nullptr || out_kernel == nullptr) {
      return Fail(GPUSHARE_KERNELS_INVALID_ARGUMENT,
                  "The name or the pointer to the index is null.");
    }
    if (gpushare::kernels::FindIndex(name, out_kernel)) return GPUSHARE_KERNELS_OK;
    return Fail(GPUSHARE_KERNELS_NOT_FOUND,
                std::string("There is no kernel '") + name + "' in this library.");
  });
}

gpushare_kernels_status gpushare_kernels_variants(uint32_t kernel,
                                                  gpushare_kernel_variants* out_variants) noexcept {
  return Guard([&]() -> gpushare_kernels_status {
    const KernelRow* const row = gpushare::kernels::FindRow(kernel);
    if (row == nullptr) return gpushare::kernels::NoSuchKernel(kernel);
    if (out_variants == nullptr) {
      return Fail(GPUSHARE_KERNELS_INVALID_ARGUMENT, "The pointer to the variants is null.");
    }
    gpushare_kernel_variants made = {};
    const int code = row->variants(&made);
    if (code == 0) *out_variants = made;
    const std::string step = std::string("Loading '") + row->name + "'";
    return gpushare::kernels::FromStatus(gpushare::kernels::CudaStatus(code, step.c_str()));
  });
}
