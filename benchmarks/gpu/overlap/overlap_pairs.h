// The pairs of the overlap benchmarks: which CUDA-core kernels stand for which bottleneck, and the
// shapes of the Tensor-core kernels' products. Working sets are beyond an H200's L2 (60 MB).
//
// A pair is text, TENSOR+CUDA, by names of the catalogue. Threads: any.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_PAIRS_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_PAIRS_H_

#include <string>
#include <vector>

namespace gpushare::benchmarks {

struct Pair {
  std::string tensor;
  std::string cuda;
};

struct ProductShape {
  int m = 0;
  int n = 0;
  int k = 0;
};

// What each kernel is for in the table; "other" for those that it does not know.
std::string BottleneckOf(const std::string& cuda);

// At least 24, over five bottlenecks.
std::vector<Pair> DefaultPairs();
// Eight of them, for the curves over the load ratio.
std::vector<Pair> CurvePairs();

// a+b,c+d. False when one has no '+' or a name is missing.
bool ParsePairs(const std::string& text, std::vector<Pair>* pairs);

// About 1 to 3 ms alone on an H200; m 0: the kernel makes no product.
ProductShape ShapeOf(const std::string& tensor);
// Fails where the kernel makes no product.
ProductShape ProductShapeOf(const std::string& tensor);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_PAIRS_H_
