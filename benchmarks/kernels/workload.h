// A kernel of the catalogue, and its workload: buffers, parameters and a grid, with results that
// can be checked.
//
// Plain types: no CUDA and no Abseil header. A workload belongs to the CUDA device that was current
// when it was made. Threads: one at a time for each workload. Nothing is printed, nothing throws.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_WORKLOAD_H_
#define GPUSHARE_BENCHMARKS_KERNELS_WORKLOAD_H_

#include <gpushare/device/kernel_variants.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/grid.h"
#include "kernels/status.h"

namespace gpushare::kernels {

// The reference GPU that durations are sized for: an H200 at its maximal clock, 8 workers an SM.
constexpr double kReferenceClockMhz = 1980;
constexpr double kReferenceDramBytesPerUs = 4.3e6;
constexpr double kReferenceL2BytesPerUs = 7.0e6;
constexpr uint32_t kReferenceWorkersPerSm = 8;

// Distance of the yield points of sincos_steps on the reference GPU. An evicted launch takes about
// one of them to leave, and its workers idle half of one on average.
constexpr double kSincosStepUs = 20;

// What bounds a kernel, and the unit its work is counted in.
enum class Bound : uint8_t {
  kSpecial,  // special-function results: 16 a clock and SM
  kFfma,     // float32 instructions, fused multiply-adds for most: 128 a clock and SM
  kInteger,  // 32-bit integer instructions: 64 a clock and SM
  kShared,   // bytes read and written in shared memory: 128 a clock and SM
  kTensor,   // bf16 multiply-adds with float32 sums: 2048 a clock and SM
  kL2,       // bytes that come from L2: kReferenceL2BytesPerUs
  kDram,     // bytes read and written
  kLatency,  // nanoseconds that one worker's chain of dependent accesses takes on the reference GPU
};

struct WorkloadOptions {
  double solo_ms = 10;       // wanted duration alone on `sms` SMs of the reference GPU, an H200
  double block_task_us = 0;  // wanted length of a block task at full occupancy; 0: the kernel's own
  uint32_t block_tasks = 0;  // not 0: this many, whatever the duration
  uint32_t steps = 0;        // sincos_steps: of a block task; 0: as kSincosStepUs says
  uint32_t ring_max = 0;     // distinct block tasks at most (memory); 0: the kernel's own
  int32_t sms = 132;
  uint32_t seed = 1;
};

struct Verification {
  uint64_t records = 0;  // results that there are
  uint64_t checked = 0;  // compared with the float64 (md5: exact) reference
  uint64_t wrong = 0;
  double error_max = 0;  // largest difference
  double tolerance = 0;
  std::string first_wrong;  // a sentence, empty when nothing is wrong
};

struct CatalogueKernel;

class Workload {
 public:
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  const CatalogueKernel& kernel() const { return *kernel_; }
  // Packed parameters, valid as long as the workload.
  const void* params() const { return params_.data(); }
  size_t params_bytes() const { return params_.size(); }
  Grid grid() const { return grid_; }
  uint32_t block_tasks() const { return grid_.x * grid_.y * grid_.z; }
  // Block task b has the same results as b % distinct_block_tasks().
  uint32_t distinct_block_tasks() const { return distinct_block_tasks_; }
  // The work of a block task, in the unit of the kernel's bound.
  double work_per_block_task() const { return work_per_block_task_; }

  // The time of all block tasks at the bound, on `sms` SMs at `clock_mhz`, or with
  // `dram_bytes_per_s`.
  double BoundSeconds(int32_t sms, double clock_mhz, double dram_bytes_per_s) const;

  // Fills the output with a pattern that no kernel writes, and waits for that.
  virtual Status ClearOutput() = 0;
  // Compares results with the reference: all of them when that takes about `budget_s` seconds of
  // one CPU core at most, else a seeded sample. A wrong result is in the verification, not in the
  // status.
  virtual Status Verify(double budget_s, Verification* verification) = 0;
  // The same; an error with a sentence where a result is wrong, or none was compared.
  Status VerifyOutput(double budget_s);
  // Sets `checksum` to one number over every bit of the output, the same for the same bits.
  virtual Status Checksum(uint64_t* checksum) = 0;

 protected:
  Workload() = default;

  const CatalogueKernel* kernel_ = nullptr;
  std::vector<unsigned char> params_;
  Grid grid_;
  uint32_t distinct_block_tasks_ = 0;
  double work_per_block_task_ = 0;

 private:
  friend Status MakeWorkload(const CatalogueKernel& kernel, const WorkloadOptions& options,
                             std::unique_ptr<Workload>* workload);
};

// Gives a kernel's functions; 0 or a cudaError_t.
using VariantsFunction = int(gpushare_kernel_variants* out);
// Makes a kernel's workload, of options that name the length of a block task.
using WorkloadMaker = Status (*)(const CatalogueKernel& kernel, const WorkloadOptions& options,
                                 std::unique_ptr<Workload>* workload);

struct CatalogueKernel {
  const char* name;
  VariantsFunction* variants;
  Bound bound;
  const char* bound_formula;
  bool yields;
  double block_task_us;  // default, on the reference GPU with all workers that fit an SM
  WorkloadMaker make;
  uint32_t workers_per_sm = 8;  // that fit, or that the body asks for: a test asserts it
  // Why the kernel does not reach 0.75 of its bound; null: it does.
  const char* below_bound_because = nullptr;
};

// How many block tasks the options ask for, whole waves of workers when they name a duration; 0
// when they ask for more than a 32-bit number of them.
uint32_t CountBlockTasks(const WorkloadOptions& options, double block_task_us,
                         uint32_t workers_per_sm = kReferenceWorkersPerSm);

// Allocates and fills the buffers of a kernel; waits for the device.
Status MakeWorkload(const CatalogueKernel& kernel, const WorkloadOptions& options,
                    std::unique_ptr<Workload>* workload);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_WORKLOAD_H_
