// What the workloads of gemm_mma and gemm_skinny share: C[m, n] = A[m, k] * B[n, k]^T from seeded
// inputs, and an output of bf16 pairs, each checked against a float64 sum of the bf16 inputs.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_TENSOR_PORTABLE_WORKLOAD_H_
#define GPUSHARE_BENCHMARKS_KERNELS_TENSOR_PORTABLE_WORKLOAD_H_

#include <cstdint>

#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {

// How far a bf16 result of `k` products of seeded inputs may be from the float64 sum: half of the
// last place of the largest value that may come, and the error of the float32 sums.
double PortableTolerance(uint32_t k);

// The float whose upper 16 bits these are.
float FromBf16(uint16_t bits);

// Words of two bf16 values, checked as two: RecordWorkload by itself reads floats.
class PortableGemmWorkload : public RecordWorkload {
 public:
  Status Verify(double budget_s, Verification* verification) override;

 protected:
  // Allocates and fills A and B and allocates C; record i is words i of C.
  Status MakeBuffers(const WorkloadOptions& options, uint32_t m, uint32_t n, uint32_t k);

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override;

  DeviceBuffer a_;
  DeviceBuffer b_;
  uint32_t m_ = 0;
  uint32_t n_ = 0;
  uint32_t k_ = 0;

 private:
  double Element(uint64_t row, uint64_t column) const;
  void CompareWord(uint64_t index, uint32_t word, Verification* verification) const;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_TENSOR_PORTABLE_WORKLOAD_H_
