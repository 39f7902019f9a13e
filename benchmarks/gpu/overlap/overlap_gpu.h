// The GPU of the overlap benchmarks: plain streams, pairs of green contexts, cuBLASLt.
//
// Places are made at the first use of a split, while nothing runs. Launches go through the driver,
// whose functions run on streams of every context. What cannot be made is a Failure. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_GPU_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_GPU_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_library.h"
#include "benchmarks/kernels/catalogue.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"

namespace gpushare::benchmarks {

struct GridOfBlocks {
  kernels::Grid grid;
  uint32_t threads = 0;
  uint32_t dynamic_shared_bytes = 0;
};

// A matrix product of bf16 and its operands.
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  core::LibraryArguments operands;
};

// Where the Tensor side and the CUDA-core side run.
struct Streams {
  CUstream tensor = nullptr;
  CUstream cuda = nullptr;
  int32_t tensor_sms = 0;
  int32_t cuda_sms = 0;
  CUcontext tensor_context = nullptr;  // null: the primary one
};

class OverlapGpu {
 public:
  OverlapGpu();

  int32_t sms() const { return info_.sms; }
  const std::string& model() const { return info_.model; }
  // Two streams of the whole device.
  const Streams& whole() const { return whole_; }
  // Splits are numbered from 1: the Tensor side has so many groups of SMs and what whole groups
  // leave over, the other side the rest. 0 where the driver makes no green contexts.
  int32_t splits() const { return places_->groups() > 0 ? places_->groups() - 1 : 0; }
  const Streams& Split(int32_t number);

  // `function`: a CUfunction. The arguments are those of cuLaunchKernel.
  void Launch(void* function, const GridOfBlocks& blocks, void** arguments, CUstream stream) const;

  // cuBLASLt's product on the SMs of these streams.
  void EnqueueProduct(const Product& product, const Streams& streams);

 private:
  GpuInfo info_;
  std::unique_ptr<cuda::Context> context_;
  std::unique_ptr<cuda::Places> places_;
  std::unique_ptr<GpuLibrary> cublaslt_;                           // made at its first use
  std::map<std::array<int64_t, 4>, GpuLibrary::Planned> planned_;  // by shape and SMs
  Streams whole_;
  std::map<int32_t, Streams> splits_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_GPU_H_
