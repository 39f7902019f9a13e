// Parameters of gemm_skinny: C[m, n] = A[m, k] * B[n, k]^T, bf16 with float32 sums, for few rows of
// A (tokens) and a large B (weights). The same for both of its bodies: gemm_skinny.cuh, for sm_90a,
// and gemm_skinny_portable.cuh, for the GPUs that are not.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_H_

#include <cstdint>

#include "kernels/tensor/gemm_wgmma.h"

namespace gpushare::kernels {

// The ring of an instantiation of gemm_skinny.cuh.
struct GemmSkinnyRing {
  uint32_t stages;
  uint32_t depth;  // k blocks of 64 in a stage
};

// Chosen by measurement among rings of other sizes (docs/kernels.md).
constexpr GemmSkinnyRing kGemmSkinnyRing = {3, 4};

// The ring of the compact form: 60 KB of stages. A worker of gemm_roomy leaves 65 KB of an SM, of
// which two are for the worker loop and for CUDA.
constexpr GemmSkinnyRing kGemmSkinnyCompactRing = {5, 1};
constexpr uint32_t kGemmSkinnyCompactSharedBytes = 63 * 1024;

constexpr uint32_t kSkinnyColumns = 64;    // of C that a block task computes
constexpr uint32_t kSkinnyKMultiple = 32;  // of k
constexpr uint32_t kSkinnyRowsMax = 32;

struct GemmSkinnyParams {
  TensorMap activations_map;    // boxes of 32 rows x 64 values of k; sm_90a alone
  TensorMap weights_map;        // boxes of a panel's columns x 64; sm_90a alone
  const uint16_t* activations;  // A: bf16, 16-byte aligned
  const uint16_t* weights;      // B
  uint16_t* c;
  uint32_t m;       // 8, 16 or 32
  uint32_t n;       // a multiple of kSkinnyColumns
  uint32_t k;       // a multiple of kSkinnyKMultiple
  uint32_t panels;  // n / kSkinnyColumns; block task b computes panel b % panels
};

// The variants of the body that the current device runs: where it has sm_90a's code, that one.
int GemmSkinnyVariants(gpushare_kernel_variants* out);
int GemmSkinnyCompactVariants(gpushare_kernel_variants* out);

// The variants of one body each, whatever the device runs (GPUSHARE_KERNEL).
extern "C" {
int gpushare_gemm_skinny_variants(gpushare_kernel_variants* out);
int gpushare_gemm_skinny_compact_variants(gpushare_kernel_variants* out);
int gpushare_gemm_skinny_portable_variants(gpushare_kernel_variants* out);
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_H_
