// What the workloads of the catalogue share: an output of equal records, checked one by one against
// a reference.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_WORKLOAD_BASE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_WORKLOAD_BASE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/kernels/workload.h"
#include "kernels/status.h"

namespace gpushare::kernels {

constexpr uint32_t kThreadsPerBlock = 256;
constexpr int kRecordWordsMax = 4;
constexpr uint32_t kGridYMax = 65535;  // CUDA's

class RecordWorkload : public Workload {
 public:
  Status ClearOutput() override { return output_.FillPattern(); }
  Status Checksum(uint64_t* checksum) override { return output_.Checksum(checksum); }
  Status Verify(double budget_s, Verification* verification) override;

 protected:
  // The values that record `index` should have, and how far each may be off. Words of an integer
  // kernel are compared as numbers, exactly.
  virtual void Reference(uint64_t index, double expected[kRecordWordsMax]) const = 0;

  template <class Params>
  void SetParams(const Params& params) {
    params_.resize(sizeof(params));
    std::memcpy(params_.data(), &params, sizeof(params));
  }
  Status AllocateOutput(uint64_t records, uint32_t words_per_record);

  DeviceBuffer output_;
  uint64_t records_ = 0;
  uint32_t words_ = 1;
  bool integers_ = false;
  double tolerance_ = 0;
  double reference_ns_ = 100;  // cost of Reference, about
  uint32_t seed_ = 1;

 private:
  void Compare(uint64_t index, const uint32_t* words, Verification* verification) const;
};

// A grid of `block_tasks` block tasks with whole rows of `across` (which divides them) and y within
// CUDA's bound; as tall as that allows.
Grid GridOf(uint32_t block_tasks, uint32_t across);

// min(block tasks, the options' limit or else `fallback`).
uint32_t RingOf(const WorkloadOptions& options, uint32_t block_tasks, uint32_t fallback);

// The maker of a workload of class Made, by its own Make(kernel, options, kArguments...). A failure
// leaves `workload` as it was.
template <class Made, auto... kArguments>
Status MakeAs(const CatalogueKernel& kernel, const WorkloadOptions& options,
              std::unique_ptr<Workload>* workload) {
  auto made = std::make_unique<Made>();
  const Status status = made->Make(kernel, options, kArguments...);
  if (status.ok()) *workload = std::move(made);
  return status;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_WORKLOAD_BASE_H_
