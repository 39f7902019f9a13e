#include "benchmarks/gpu/gemm_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "benchmarks/kernels/tensor/portable_inputs.h"

namespace gpushare::kernels {
namespace {

float Value(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// Two float32 sums of the same products, in other orders, may round to neighbouring bf16 values:
// 2^-7 of the value. Near zero they differ by what sums of such products lose on the way.
constexpr double kRelativeTolerance = 1.0 / 128;
constexpr double kAbsoluteTolerance = 1e-3;

}  // namespace

Status GemmMatrices::Make(const GemmShape& shape) {
  const auto bytes = [](int rows, int columns) {
    return static_cast<size_t>(rows) * static_cast<size_t>(columns) * sizeof(uint16_t);
  };
  Status status = a.Allocate(bytes(shape.m, shape.k));
  if (status.ok()) status = b.Allocate(bytes(shape.n, shape.k));
  if (status.ok()) status = c.Allocate(bytes(shape.m, shape.n));
  if (status.ok()) status = cublaslt_c.Allocate(bytes(shape.m, shape.n));
  if (status.ok()) status = FillPortableInputs(&a, 1);
  if (status.ok()) status = FillPortableInputs(&b, 2);
  if (status.ok()) status = cublaslt_c.FillPattern();
  expected.resize(cublaslt_c.bytes() / sizeof(uint16_t));
  return status;
}

Status Compare(const GemmMatrices& matrices, GemmComparison* comparison) {
  std::vector<uint16_t> got(matrices.expected.size());
  const Status status = matrices.c.Read(0, matrices.c.bytes(), got.data());
  if (!status.ok()) return status;
  *comparison = {};
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == matrices.expected[i] && (got[i] & 0x7FFFU) <= 0x7F80U) continue;
    ++comparison->not_equal;
    const double x = Value(got[i]);
    const double y = Value(matrices.expected[i]);
    const double difference = std::abs(x - y);
    comparison->difference_max = std::max(comparison->difference_max, difference);
    const double tolerance =
        kAbsoluteTolerance + kRelativeTolerance * std::max(std::abs(x), std::abs(y));
    if (!(difference <= tolerance)) ++comparison->wrong;  // a NaN, too
  }
  return {};
}

}  // namespace gpushare::kernels
