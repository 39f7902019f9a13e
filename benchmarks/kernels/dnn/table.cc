// The kernels of this group. What makes a workload of each is in NAME_workload.cc.

#include "benchmarks/kernels/groups.h"

extern "C" {
int gpushare_adam_variants(gpushare_kernel_variants* out);
int gpushare_batch_norm_variants(gpushare_kernel_variants* out);
int gpushare_im2col_variants(gpushare_kernel_variants* out);
int gpushare_im2col_float_variants(gpushare_kernel_variants* out);
int gpushare_layer_norm_variants(gpushare_kernel_variants* out);
int gpushare_pooling_variants(gpushare_kernel_variants* out);
int gpushare_relu_variants(gpushare_kernel_variants* out);
int gpushare_scale_variants(gpushare_kernel_variants* out);
int gpushare_sgd_variants(gpushare_kernel_variants* out);
int gpushare_softmax_variants(gpushare_kernel_variants* out);
}

namespace gpushare::kernels {

Status MakeAdam(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeAveragePooling(const CatalogueKernel&, const WorkloadOptions&,
                          std::unique_ptr<Workload>*);
Status MakeBatchNorm(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeIm2col(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeIm2colFloat(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeLayerNorm(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeMaxPooling(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeRelu(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeScale(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeSgd(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeSoftmax(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);

std::vector<CatalogueKernel> DnnKernels() {
  constexpr const char* kDramFormula = "bytes read and written once / DRAM bandwidth";
  constexpr const char* kIm2colBecause =
      "A tile's loads are not under way while the tile before is written, so a block task waits "
      "for "
      "DRAM at the start of each tile; and rows are written in pieces of 288 bytes, of floats 576.";
  return {
      // One stream in and one out: four workers of four vectors a thread keep DRAM busy.
      {"relu", gpushare_relu_variants, Bound::kDram, kDramFormula, false, 40, MakeRelu, 4},
      {"scale", gpushare_scale_variants, Bound::kDram, kDramFormula, false, 40, MakeScale, 4},
      {"batch_norm", gpushare_batch_norm_variants, Bound::kDram, kDramFormula, false, 40,
       MakeBatchNorm, 4},
      {"pooling", gpushare_pooling_variants, Bound::kDram, kDramFormula, false, 40, MakeMaxPooling},
      {"average_pooling", gpushare_pooling_variants, Bound::kDram, kDramFormula, false, 40,
       MakeAveragePooling},
      // A row, or four, is 16 registers of a thread: 40 of them let six workers fit.
      {"softmax", gpushare_softmax_variants, Bound::kDram, kDramFormula, false, 27, MakeSoftmax, 4},
      {"layer_norm", gpushare_layer_norm_variants, Bound::kDram, kDramFormula, false, 27,
       MakeLayerNorm, 4},
      // A tile takes 7.7 us with four workers, one of floats 15.4 us. Four fit, because 64
      // registers hold half of the lines that a thread reads.
      {"im2col", gpushare_im2col_variants, Bound::kDram, kDramFormula, false, 31, MakeIm2col, 4,
       kIm2colBecause},
      {"im2col_float", gpushare_im2col_float_variants, Bound::kDram, kDramFormula, false, 46,
       MakeIm2colFloat, 4, kIm2colBecause},
      {"sgd", gpushare_sgd_variants, Bound::kDram, kDramFormula, false, 20, MakeSgd, 4},
      {"adam", gpushare_adam_variants, Bound::kDram, kDramFormula, false, 20, MakeAdam, 4},
  };
}

}  // namespace gpushare::kernels
