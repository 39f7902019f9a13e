// The kernels of this group. What makes a workload of each is in NAME_workload.cc.

#include "benchmarks/kernels/groups.h"
#include "kernels/tensor/gemm_skinny.h"
#include "kernels/tensor/gemm_wgmma.h"

extern "C" gpushare::kernels::VariantsFunction gpushare_gemm_mma_variants;

namespace gpushare::kernels {

extern const WorkloadMaker kMakeGemmMma, kMakeGemmRoomy, kMakeGemmSkinny, kMakeGemmWgmma;

std::vector<CatalogueKernel> TensorKernels() {
  constexpr const char* kTensorFormula = "m * n * k multiply-adds / (2048 * SMs * clock)";
  constexpr const char* kSkinnyFormula =
      "bytes of the weights and the results, read and written once / DRAM bandwidth";
  constexpr const char* kPowerLimited =
      "Under its power limit an H200 does not keep its maximal clock in any GEMM: cuBLASLt's "
      "fastest form reaches about 0.75 of this bound.";
  constexpr const char* kSharedLimited =
      "mma.sync takes both operands from registers, so values pass shared memory more often than "
      "with wgmma, and at 128 bytes a clock and SM that bounds this form at half of the Tensor "
      "cores' rate.";
  return {
      {"gemm_wgmma", GemmWgmmaVariants, Bound::kTensor, kTensorFormula, false, 26, kMakeGemmWgmma,
       1, kPowerLimited},
      {"gemm_roomy", GemmRoomyVariants, Bound::kTensor, kTensorFormula, false, 26, kMakeGemmRoomy,
       1, kPowerLimited},
      {"gemm_mma", gpushare_gemm_mma_variants, Bound::kTensor, kTensorFormula, false, 27,
       kMakeGemmMma, 2, kSharedLimited},
      {"gemm_skinny", GemmSkinnyVariants, Bound::kDram, kSkinnyFormula, false, 32, kMakeGemmSkinny,
       1},
      {"gemm_skinny_compact", GemmSkinnyCompactVariants, Bound::kDram, kSkinnyFormula, false, 32,
       kMakeGemmSkinny, 2},
  };
}

}  // namespace gpushare::kernels
