// Captures of sized queries; see sized_queries.h.

#include "tools/gpushare/cuda/sized_queries.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/cuda/kernels.h"

namespace gpushare::tool {

namespace {

constexpr int64_t kBytes = 2;  // of a bf16 value
// Uniform weights of this scale keep the variance of a product of 4,096 terms.
constexpr float kWeightScale = 0.027F;
// Weights of a query lie behind each other, from the start again where they do not fit: 2.1 GB, so
// that no layer's weights are in the L2 cache when they are read.
constexpr int64_t kWeightsBytes = int64_t{16} * 8192 * 8192 * kBytes;

DeviceMemory Filled(int64_t bytes, uint32_t seed, float scale) {
  DeviceMemory memory(static_cast<size_t>(bytes));
  CheckCuda(
      FillUniformBf16(memory.data(), static_cast<uint64_t>(bytes / kBytes), seed, scale, nullptr),
      "Filling a query's buffer");
  CheckCuda(cudaDeviceSynchronize(), "Filling a query's buffer");
  return memory;
}

}  // namespace

CudaSizedQueries::CudaSizedQueries()
    : queries_(ListSizedQueries()), workspace_(Blas::kWorkspaceBytes) {
  int64_t most = 0;  // values of an operand or a result
  int64_t most_inputs = 0;
  for (const SizedQuery& query : queries_) {
    most_inputs = std::max(most_inputs, query.steps.front().m * query.steps.front().k);
    for (const QueryStep& step : query.steps) {
      most = std::max({most, step.m * step.n, step.m * step.k});
    }
  }
  weights_ = Filled(kWeightsBytes, 1, kWeightScale);
  input_ = Filled(most_inputs * kBytes, 2, 1);
  for (DeviceMemory& turn : values_) turn = Filled(most * kBytes, 3, 1);
  users_.reserve(queries_.size());
  for (const SizedQuery& query : queries_) {
    users_.push_back({this, &query});
    graphs_.push_back({query.name, &CudaSizedQueries::Capture, &users_.back()});
  }
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "Creating a stream");
  stream_ = stream;
  RunAll();
}

CudaSizedQueries::~CudaSizedQueries() { cudaStreamDestroy(static_cast<cudaStream_t>(stream_)); }

void CudaSizedQueries::RunAll() {
  for (const SizedQuery& query : queries_) {
    if (const int status = Enqueue(query, stream_, 0); status != 0) {
      throw RunError("The query '" + query.name + "' cannot be launched: error " +
                     std::to_string(status) + ".");
    }
  }
  CheckCuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "Running each query once");
}

int32_t CudaSizedQueries::Capture(void* user, void* stream, int32_t sms) {
  const auto* own = static_cast<const User*>(user);
  try {
    return own->queries->Enqueue(*own->query, stream, sms);
  } catch (...) {  // the library's message says that the capture failed
    return -1;
  }
}

int CudaSizedQueries::Enqueue(const SizedQuery& query, void* stream, int32_t sms) {
  if (const int status = blas_.Use(stream, sms, workspace_.data()); status != 0) return status;
  int64_t weights_at = 0;
  size_t turn = 0;
  for (const QueryStep& step : query.steps) {
    const void* const in = turn == 0 ? input_.data() : values_[turn % 2].data();
    void* const out = values_[++turn % 2].data();
    if (step.is_gelu()) {
      const GeluParams params = {in, out, static_cast<uint64_t>(step.m * step.n)};
      if (const int status = LaunchGelu(params, stream); status != 0) return status;
      continue;
    }
    const int64_t weights_bytes = step.n * step.k * kBytes;
    if (weights_at + weights_bytes > kWeightsBytes) weights_at = 0;
    Gemm gemm;
    gemm.m = step.m;
    gemm.n = step.n;
    gemm.k = step.k;
    gemm.a = in;
    gemm.weights = static_cast<const char*>(weights_.data()) + weights_at;
    gemm.d = out;
    if (const int status = blas_.Enqueue(gemm); status != 0) return status;
    weights_at += weights_bytes;
  }
  return 0;
}

}  // namespace gpushare::tool
