// The kernels of this group. What makes a workload of each is in NAME_workload.cc.

#include "benchmarks/kernels/groups.h"

extern "C" {
gpushare::kernels::VariantsFunction gpushare_adam_variants, gpushare_batch_norm_variants,
    gpushare_im2col_variants, gpushare_im2col_float_variants, gpushare_layer_norm_variants,
    gpushare_pooling_variants, gpushare_relu_variants, gpushare_scale_variants,
    gpushare_sgd_variants, gpushare_softmax_variants;
}

namespace gpushare::kernels {

extern const WorkloadMaker kMakeAdam, kMakeAveragePooling, kMakeBatchNorm, kMakeIm2col,
    kMakeIm2colFloat, kMakeLayerNorm, kMakeMaxPooling, kMakeRelu, kMakeScale, kMakeSgd,
    kMakeSoftmax;

std::vector<CatalogueKernel> DnnKernels() {
  constexpr const char* kDramFormula = "bytes read and written once / DRAM bandwidth";
  constexpr const char* kIm2colBecause =
      "A tile's loads are not under way while the tile before is written, so a block task waits "
      "for "
      "DRAM at the start of each tile; and rows are written in pieces of 288 bytes, of floats 576.";
  return {
      // One stream in and one out: four workers of four vectors a thread keep DRAM busy.
      {"relu", gpushare_relu_variants, Bound::kDram, kDramFormula, false, 40, kMakeRelu, 4},
      {"scale", gpushare_scale_variants, Bound::kDram, kDramFormula, false, 40, kMakeScale, 4},
      {"batch_norm", gpushare_batch_norm_variants, Bound::kDram, kDramFormula, false, 40,
       kMakeBatchNorm, 4},
      {"pooling", gpushare_pooling_variants, Bound::kDram, kDramFormula, false, 40,
       kMakeMaxPooling},
      {"average_pooling", gpushare_pooling_variants, Bound::kDram, kDramFormula, false, 40,
       kMakeAveragePooling},
      // A row, or four, is 16 registers of a thread: 40 of them let six workers fit.
      {"softmax", gpushare_softmax_variants, Bound::kDram, kDramFormula, false, 27, kMakeSoftmax,
       4},
      {"layer_norm", gpushare_layer_norm_variants, Bound::kDram, kDramFormula, false, 27,
       kMakeLayerNorm, 4},
      // A tile takes 7.7 us with four workers, one of floats 15.4 us. Four fit, because 64
      // registers hold half of the lines that a thread reads.
      {"im2col", gpushare_im2col_variants, Bound::kDram, kDramFormula, false, 31, kMakeIm2col, 4,
       kIm2colBecause},
      {"im2col_float", gpushare_im2col_float_variants, Bound::kDram, kDramFormula, false, 46,
       kMakeIm2colFloat, 4, kIm2colBecause},
      {"sgd", gpushare_sgd_variants, Bound::kDram, kDramFormula, false, 20, kMakeSgd, 4},
      {"adam", gpushare_adam_variants, Bound::kDram, kDramFormula, false, 20, kMakeAdam, 4},
  };
}

}  // namespace gpushare::kernels
