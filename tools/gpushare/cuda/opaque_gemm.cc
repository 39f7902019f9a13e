#include "tools/gpushare/cuda/opaque_gemm.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/cuda/chain.h"
#include "tools/gpushare/cuda/kernels.h"

namespace gpushare::tool {

namespace {

constexpr int kChecks = 64;
constexpr double kTolerance = 1e-2;

// `count` values of a bf16 matrix, `stride` values apart.
std::vector<double> ReadStrided(const void* from, int64_t first, int64_t count, int64_t stride,
                                void* stream) {
  std::vector<uint16_t> bits(static_cast<size_t>(count));
  CheckCuda(cudaMemcpy2DAsync(bits.data(), 2, static_cast<const uint16_t*>(from) + first,
                              static_cast<size_t>(stride) * 2, 2, bits.size(),
                              cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)),
            "Reading a GEMM's operand");
  CheckCuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "Reading a GEMM's operand");
  std::vector<double> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(),
                 [](uint16_t word) { return static_cast<double>(FloatOfBf16(word)); });
  return values;
}

}  // namespace

OpaqueGemm::OpaqueGemm(void* stream, bool weights_transposed)
    : stream_(stream), a_(kM * kK * 2), weights_(kN * kK * 2), d_(kM * kN * 2) {
  const auto unit = static_cast<float>(std::sqrt(3.0));
  const auto scale = static_cast<float>(std::sqrt(3.0 / static_cast<double>(kK)));
  CheckCuda(FillUniformBf16(a_.data(), kM * kK, 101, unit, stream_), "Filling a GEMM's operand");
  CheckCuda(FillUniformBf16(weights_.data(), kN * kK, 102, scale, stream_),
            "Filling a GEMM's operand");
  gemm_ = {kM, kN, kK, weights_transposed, a_.data(), weights_.data(), d_.data()};
  // Makes the handles and loads their kernels before any measurement.
  for (Slot& slot : slots_) {
    slot.blas = std::make_unique<Blas>();
    slot.workspace = DeviceMemory(Blas::kWorkspaceBytes);
  }
  Slot& first = slots_[0];
  if (first.blas->Use(stream_, 0, first.workspace.data()) != 0 || first.blas->Enqueue(gemm_) != 0) {
    throw RunError("The best-effort GEMM fails alone.");
  }
  CheckCuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "The best-effort GEMM");
  Verify();
  BeginRun();
}

OpaqueGemm::Task* OpaqueGemm::NewTask(int64_t count) {
  tasks_.push_back({this, count});
  return &tasks_.back();
}

void OpaqueGemm::Enqueue(void* stream, void* user) {
  const auto* task = static_cast<const Task*>(user);
  OpaqueGemm& self = *task->owner;
  const std::lock_guard<std::mutex> lock(self.mutex_);
  const int status = self.EnqueueOn(stream, task->count);
  if (self.fault_ == 0) self.fault_ = status;
}

int OpaqueGemm::EnqueueOn(void* stream, int64_t count) {
  for (Slot& slot : slots_) {
    if (slot.stream == nullptr) {
      if (const int status = slot.blas->Use(stream, 0, slot.workspace.data()); status != 0) {
        return status;
      }
      slot.stream = stream;
    }
    if (slot.stream != stream) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (const int status = slot.blas->Enqueue(gemm_); status != 0) return status;
    }
    return 0;
  }
  return -1;
}

void OpaqueGemm::BeginRun() {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Forget the streams: the next runtime has others.
  for (Slot& slot : slots_) slot.stream = nullptr;
  fault_ = 0;
  auto* stream = static_cast<cudaStream_t>(stream_);
  CheckCuda(cudaMemsetAsync(d_.data(), 0xFF, d_.bytes(), stream), "Clearing a GEMM's result");
  CheckCuda(cudaStreamSynchronize(stream), "Clearing a GEMM's result");
}

void OpaqueGemm::Verify() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (fault_ != 0) {
      throw RunError("The best-effort GEMM is refused with the cuBLAS status " +
                     std::to_string(fault_) + " (-1: it was given more than " +
                     std::to_string(kStreamsMax) + " streams).");
    }
  }
  for (int check = 0; check < kChecks; ++check) {
    const int64_t row = (check * 1021 + 5) % kM;
    const int64_t column = (check * 769 + 11) % kN;
    const std::vector<double> a = ReadStrided(a_.data(), row * kK, kK, 1, stream_);
    const std::vector<double> w = gemm_.weights_transposed
                                      ? ReadStrided(weights_.data(), column * kK, kK, 1, stream_)
                                      : ReadStrided(weights_.data(), column, kK, kN, stream_);
    double expected = 0;
    for (size_t i = 0; i < a.size(); ++i) expected += a[i] * w[i];
    const double got = ReadStrided(d_.data(), row * kN + column, 1, 1, stream_)[0];
    if (std::abs(got - expected) <= kTolerance * std::max(1.0, std::abs(expected))) continue;
    throw RunError(
        Format("The best-effort GEMM gives %.6g at (%lld, %lld), and the sum in "
               "float64 is %.6g.",
               got, static_cast<long long>(row), static_cast<long long>(column), expected));
  }
}

}  // namespace gpushare::tool
