#include "benchmarks/gpu/gemm/gemm_check.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"

namespace gpushare::benchmarks {
namespace {

// Two float32 sums of the same products, in other orders, may round to neighbouring bf16 values:
// 2^-7 of the value. Near zero they differ by what sums of such products lose on the way.
constexpr double kRelativeTolerance = 1.0 / 128;
constexpr double kAbsoluteTolerance = 1e-3;

constexpr double kNeighbourMs = 20;  // far longer than what is checked beside it
constexpr double kUntilPlacedMs = 0.1;

float Value(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

size_t Bytes(int rows, int columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns) * sizeof(uint16_t);
}

}  // namespace

GemmMatrices::GemmMatrices(const GemmShape& shape, GpuLibrary& cublaslt, CUstream_st* stream)
    : shape_(shape),
      cublaslt_(cublaslt),
      planned_(cublaslt.Plan(MatmulCall(shape.m, shape.n, shape.k), stream, 0)) {
  Require(a_.Allocate(Bytes(shape.m, shape.k)));
  Require(b_.Allocate(Bytes(shape.n, shape.k)));
  Require(c_.Allocate(Bytes(shape.m, shape.n)));
  Require(cublaslt_c_.Allocate(Bytes(shape.m, shape.n)));
  Require(kernels::FillPortableInputs(&a_, 1));
  Require(kernels::FillPortableInputs(&b_, 2));
  Require(cublaslt_c_.FillPattern());
  operands_.a = a_.data();
  operands_.b = b_.data();
  operands_.d = cublaslt_c_.data();
  LaunchCublasLt();
  Synchronize(stream);
  expected_ = ReadAll<uint16_t>(cublaslt_c_);
}

void GemmMatrices::Spoil() {
  Cuda(cudaMemset(c_.data(), 0xFF, c_.bytes()), "cudaMemset");  // NaNs
}

GemmMatrices::Comparison GemmMatrices::Compare() const {
  const std::vector<uint16_t> got = ReadAll<uint16_t>(c_);
  Comparison comparison;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected_[i] && (got[i] & 0x7FFFU) <= 0x7F80U) continue;
    ++comparison.not_equal;
    const double x = Value(got[i]);
    const double y = Value(expected_[i]);
    const double difference = std::abs(x - y);
    comparison.difference_max = std::max(comparison.difference_max, difference);
    const double tolerance =
        kAbsoluteTolerance + kRelativeTolerance * std::max(std::abs(x), std::abs(y));
    if (!(difference <= tolerance)) ++comparison.wrong;  // a NaN, too
  }
  return comparison;
}

GemmNeighbour::GemmNeighbour(const std::string& kernel) {
  Require(launcher_.Init());
  kernels::WorkloadOptions options = {.solo_ms = kNeighbourMs, .sms = launcher_.sms()};
  made_ = MakeTask(KernelNamed(kernel), options);
  // An SM changes its split between L1 and shared memory only when it is empty: beside workers that
  // keep a large L1 no block of a GEMM would fit.
  Cuda(cudaFuncSetAttribute(made_.task.variants.worker_symbol,
                            cudaFuncAttributePreferredSharedMemoryCarveout,
                            cudaSharedmemCarveoutMaxShared),
       "cudaFuncSetAttribute");
}

void GemmNeighbour::Begin(uint32_t workers_per_sm) {
  Require(launcher_.BeginTask());
  header_ = launcher_.Header(made_.task);
  const uint32_t workers = std::min(workers_per_sm, made_.task.variants.workers_per_sm) *
                           static_cast<uint32_t>(launcher_.sms());
  Require(launcher_.LaunchWorkers(made_.task, header_, workers));
  const double placed = NowMs() + kUntilPlacedMs;
  while (NowMs() < placed) {
  }
}

bool GemmNeighbour::End() {
  Require(launcher_.Evict(header_.epoch, 0));
  gpushare_worker_completion record = {};
  Require(launcher_.Finish(header_, &record));
  return record.block_tasks_left > 0;
}

}  // namespace gpushare::benchmarks
