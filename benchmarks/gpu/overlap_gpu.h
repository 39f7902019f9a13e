// The GPU of the overlap benchmarks: plain streams, pairs of green contexts, cuBLASLt.
//
// Places are made at the first use of a split, while nothing runs. Launches go through the driver,
// whose functions run on streams of every context. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_GPU_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_GPU_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/device_buffer.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/context.h"
#include "src/cuda/library_backend.h"
#include "src/cuda/places.h"

namespace gpushare::benchmarks {

kernels::Status Broken(const std::string& message);
kernels::Status StatusOf(const absl::Status& status);

struct GridOfBlocks {
  kernels::Grid grid;
  uint32_t threads = 0;
  uint32_t dynamic_shared_bytes = 0;
};

// Where the Tensor side and the CUDA-core side run.
struct Streams {
  CUstream tensor = nullptr;
  CUstream cuda = nullptr;
  int32_t tensor_sms = 0;
  int32_t cuda_sms = 0;
  CUcontext tensor_context = nullptr;  // null: the primary one
};

class CoRun;

class OverlapGpu {
 public:
  ~OverlapGpu();
  kernels::Status Init();

  int32_t sms() const { return sms_; }
  const std::string& model() const { return model_; }
  // Two streams of the whole device.
  const Streams& whole() const { return whole_; }
  // Splits are numbered from 1: the Tensor side has so many groups of SMs and what whole groups
  // leave over, the other side the rest. 0 where the driver makes no green contexts.
  int32_t splits() const { return places_->groups() > 0 ? places_->groups() - 1 : 0; }
  kernels::Status Split(int32_t number, Streams* streams);

  // `function`: a CUfunction. The arguments are those of cuLaunchKernel.
  kernels::Status Launch(void* function, const GridOfBlocks& blocks, void** arguments,
                         CUstream stream) const;

  // cuBLASLt's product of this shape, C[m, n] = A[m, k] * B[n, k]^T in bf16, on the SMs of these
  // streams; plans are kept by shape and SM count.
  struct Product {
    int64_t m = 0, n = 0, k = 0;
    core::LibraryArguments arguments;
  };
  kernels::Status EnqueueProduct(const Product& product, const Streams& streams);

 private:
  struct Planned {
    void* handle = nullptr;
    std::unique_ptr<cuda::LibraryPlan> plan;
  };

  kernels::Status Plan(const Product& product, const Streams& streams, Planned** planned);

  std::unique_ptr<cuda::Context> context_;
  std::unique_ptr<cuda::Places> places_;
  std::unique_ptr<cuda::LibraryBackend> library_;
  int32_t sms_ = 0;
  std::string model_;
  Streams whole_;
  std::map<int32_t, Streams> splits_;
  std::map<std::array<int64_t, 4>, Planned> plans_;
  kernels::DeviceBuffer workspace_;
};

// Makes both ready. False: there is no such GPU, and stderr is told why.
bool Open(OverlapGpu& gpu, CoRun& run);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_GPU_H_
