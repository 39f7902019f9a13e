// Library calls that `gpushare calibrate --shapes` times: products of matrices and convolutions
// of networks that people run, to which models of library calls are fitted.
//
// All shapes share their operands, whose contents only the timing sees. Threads: one at a time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_LIBRARY_SHAPES_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_LIBRARY_SHAPES_H_

#include <memory>
#include <vector>

#include "tools/gpushare/cuda/blas.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

class CudaLibraryShapes {
 public:
  // Allocates the operands of the largest shape. Throws RunError if the device has no memory.
  explicit CudaLibraryShapes(std::vector<LibraryShape> shapes);
  const std::vector<LibraryShape>& shapes() const { return shapes_; }

 private:
  DeviceMemory a_, b_, d_;
  std::vector<LibraryShape> shapes_;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_LIBRARY_SHAPES_H_
