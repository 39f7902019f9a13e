// Library calls whose durations `gpushare calibrate --shapes` measures: the shapes, without
// operands.
//
// Products of matrices are those of linear layers (widths of published networks, 1 to 16,384
// tokens) and of attention; convolutions are those of ResNet-50, VGG-16 and DenseNet-121. Most take
// 30 us to 3 ms on an H200. Pure, and the same on every call. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_LIBRARY_SHAPES_H_
#define GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_LIBRARY_SHAPES_H_

#include <cstdint>
#include <vector>

#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

struct Matmul {
  int64_t m, n, k;
  gpushare_data_type type = GPUSHARE_FLOAT16;
  bool transpose_b = false;  // weights as PyTorch keeps them: n x k
  int64_t batch = 1;
};

// Of half precision, in channels-last layout, padded so that stride 1 keeps the size.
struct Convolution {
  int64_t batch, channels, size, filters, filter, stride;
};

// The call under a name that has its shape; `arguments` stays empty.
LibraryShape MatmulShape(const Matmul& one);
LibraryShape ConvolutionShape(const Convolution& one);

struct OperandElements {
  int64_t a = 0, b = 0, d = 0;  // of a convolution: input, filters, output
};
OperandElements ElementsOf(const gpushare_library_call& call);

int64_t BytesOfElement(const gpushare_library_call& call);

// What the call takes at least on an H200 that reaches its peak rates. Good enough to choose
// shapes; no model uses it.
double LeastNs(const gpushare_library_call& call);

// Every shape, under a name of its own; `arguments` stays empty.
std::vector<LibraryShape> ListLibraryShapes();

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_LIBRARY_SHAPES_H_
