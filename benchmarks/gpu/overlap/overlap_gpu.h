// The GPU of the overlap benchmarks: plain streams, pairs of green contexts, cuBLASLt.
//
// Places are made at their first use, while nothing runs. What cannot be made is a Failure.
// Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_GPU_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_GPU_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_library.h"
#include "src/core/seams/device.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"

namespace gpushare::benchmarks {

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

// Where BE has a quota of SMs for itself, and where LC has the other SMs at the highest priority.
struct QuotaStreams {
  CUstream be = nullptr;
  CUstream lc = nullptr;
};

class OverlapGpu {
 public:
  OverlapGpu();

  int32_t sms() const { return info_.sms; }
  const std::string& model() const { return info_.model; }
  // Two streams of the whole device.
  const Streams& whole() const { return whole_; }
  // An LC stream of the highest priority on the whole device.
  CUstream lc_whole() const { return lc_whole_; }
  // Splits are numbered from 1: the Tensor side has so many groups of SMs and what whole groups
  // leave over, the other side the rest. 0 where the driver makes no green contexts.
  int32_t splits() const { return places_->groups() > 0 ? places_->groups() - 1 : 0; }
  const Streams& Split(int32_t number);
  // Whether the hardware grants a partition of exactly so many SMs.
  bool HasQuota(int32_t sms) const { return SpecOf(sms).has_value(); }
  const QuotaStreams& Quota(int32_t sms);

  // cuBLASLt's product on the SMs of these streams.
  void EnqueueProduct(const Product& product, const Streams& streams);

 private:
  // Whole groups of SMs, or whole groups and what they leave over.
  std::optional<core::PlaceSpec> SpecOf(int32_t sms) const;
  core::PlaceIndex MakePlace(const core::PlaceSpec& spec);

  GpuInfo info_;
  std::unique_ptr<cuda::Context> context_;
  std::unique_ptr<cuda::Places> places_;
  std::unique_ptr<GpuLibrary> cublaslt_;                           // made at its first use
  std::map<std::array<int64_t, 4>, GpuLibrary::Planned> planned_;  // by shape and SMs
  Streams whole_;
  int lc_priority_ = 0;
  CUstream lc_whole_ = nullptr;
  std::map<int32_t, Streams> splits_;
  std::map<int32_t, QuotaStreams> quotas_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_GPU_H_
