// The kernels of this group. What makes a workload of each is in NAME_workload.cc.

#include "benchmarks/kernels/groups.h"

extern "C" {
gpushare::kernels::VariantsFunction gpushare_cp_variants, gpushare_cutcp_variants,
    gpushare_ffma_variants, gpushare_fft_variants, gpushare_lava_md_variants, gpushare_md5_variants,
    gpushare_mrif_variants, gpushare_mriq_variants, gpushare_myocyte_variants,
    gpushare_particle_filter_variants, gpushare_sgemm_variants, gpushare_sincos_variants,
    gpushare_sincos_steps_variants, gpushare_tea_variants, gpushare_tpacf_variants;
}

namespace gpushare::kernels {

extern const WorkloadMaker kMakeCp, kMakeCutcp, kMakeFfma, kMakeFft, kMakeLavaMd, kMakeMd5,
    kMakeMrif, kMakeMriq, kMakeMyocyte, kMakeParticleFilter, kMakeSgemm, kMakeSincos, kMakeTea,
    kMakeTpacf;

std::vector<CatalogueKernel> ComputeKernels() {
  constexpr const char* kSpecialFormula =
      "2 special-function results an iteration and thread / (16 * SMs * clock)";
  constexpr const char* kRootFormula = "1 reciprocal square root a pair / (16 * SMs * clock)";
  return {
      {"sincos", gpushare_sincos_variants, Bound::kSpecial, kSpecialFormula, false, 27, kMakeSincos,
       4},
      {"sincos_steps", gpushare_sincos_steps_variants, Bound::kSpecial, kSpecialFormula, true, 2700,
       kMakeSincos, 4},
      {"ffma", gpushare_ffma_variants, Bound::kFfma,
       "8 fused multiply-adds an iteration and thread / (128 * SMs * clock)", false, 30, kMakeFfma,
       5},
      {"md5", gpushare_md5_variants, Bound::kInteger,
       "192 integer instructions a hash, without additions of two numbers, / (64 * SMs * clock)",
       false, 50, kMakeMd5, 4},
      {"mriq", gpushare_mriq_variants, Bound::kSpecial,
       "2 special-function results a sample and voxel / (16 * SMs * clock)", false, 20, kMakeMriq,
       4},
      {"mrif", gpushare_mrif_variants, Bound::kFfma,
       "7.5 float32 instructions a sample and cell / (128 * SMs * clock)", false, 27, kMakeMrif, 4},
      {"cutcp", gpushare_cutcp_variants, Bound::kSpecial, kRootFormula, false, 20, kMakeCutcp, 4},
      {"cp", gpushare_cp_variants, Bound::kSpecial, kRootFormula, false, 20, kMakeCp, 4},
      // Two workers of 128 registers.
      {"sgemm", gpushare_sgemm_variants, Bound::kFfma,
       "1 fused multiply-add a product / (128 * SMs * clock)", false, 60, kMakeSgemm, 2,
       "Every stage of 8 in k has a barrier and a first read that waits, with four warps a "
       "scheduler, and a quarter of the multiply-adds ask one bank of registers for two operands."},
      {"fft", gpushare_fft_variants, Bound::kDram, "bytes read and written once / DRAM bandwidth",
       false, 55, kMakeFft},
      {"lava_md", gpushare_lava_md_variants, Bound::kFfma,
       "12 float32 instructions a pair / (128 * SMs * clock)", false, 52, kMakeLavaMd, 5,
       "A pair issues 14 instructions of which 12 count, and the 27 neighbours of a box come "
       "through shared memory in seven rounds of two barriers each, which load without looking "
       "ahead."},
      {"tpacf", gpushare_tpacf_variants, Bound::kFfma,
       "19 float32 instructions a pair / (128 * SMs * clock)", false, 40, kMakeTpacf},
      {"tea", gpushare_tea_variants, Bound::kInteger,
       "192 integer instructions a block of 8 bytes, without additions of two numbers, / "
       "(64 * SMs * clock)",
       false, 20, kMakeTea, 4},
      {"myocyte", gpushare_myocyte_variants, Bound::kFfma,
       "38 fused multiply-adds an iteration and thread / (128 * SMs * clock)", true, 2500,
       kMakeMyocyte},
      {"particle_filter", gpushare_particle_filter_variants, Bound::kInteger,
       "640 integer instructions a frame and thread / (64 * SMs * clock)", false, 50,
       kMakeParticleFilter, 6,
       "A frame has three barriers, and its searches and gathers wait for shared memory: ten reads "
       "in a row, and threads that read bytes of one bank."},
  };
}

}  // namespace gpushare::kernels
