// The variants of gemm_skinny's TMA forms. 'plain': stages are freed without a fence, as in the
// form that was wrong. 'wide': half as many activations from L2. 'deep': half as many barriers.

#include <gpushare/device/variants.cuh>

#include "benchmarks/gpu/skinny_alternatives.cuh"

namespace gpushare::kernels {

using skinny::Form;
using skinny::Release;

struct gpushare_skinny_plain : Form<64, 5, 1, Release::kPlain> {};
struct gpushare_skinny_fenced : Form<64, 5, 1, Release::kFenced> {};
struct gpushare_skinny_deep : Form<64, 3, 2, Release::kFenced> {};
struct gpushare_skinny_wide : Form<128, 6, 1, Release::kFenced> {};
struct gpushare_skinny_wide_deep : Form<128, 4, 2, Release::kFenced> {};

GPUSHARE_KERNEL(gpushare_skinny_plain);
GPUSHARE_KERNEL(gpushare_skinny_fenced);
GPUSHARE_KERNEL(gpushare_skinny_deep);
GPUSHARE_KERNEL(gpushare_skinny_wide);
GPUSHARE_KERNEL(gpushare_skinny_wide_deep);

}  // namespace gpushare::kernels
