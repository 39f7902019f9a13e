// What a task takes before anything of its kind was measured.
//
// The linear models start from these (linear_model.h). Pure functions. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_PRIOR_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_PRIOR_H_

#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"

namespace gpushare::models {

// A kernel or region of which nothing is known; replaced after its first run.
inline constexpr double kUnknownDurationNs = 100000;

// One block task's share of the time that its kernel takes with the whole device full: its
// instructions over the rate at which the kernel issues them. 0 without counters.
//
// instructions / (SMs x 4 schedulers x clock x issue share). A scheduler issues one instruction
// of a warp a cycle at most; the share of that which was counted has in it whatever bounds the
// kernel, be it DRAM or Tensor cores.
double CountedNsPerBlockTask(const core::DeviceProfile& device,
                             const core::KernelCounters& counters);

// The fixed part of a kernel's prior, so that a prediction takes a few operations.
class KernelPrior {
 public:
  KernelPrior(const core::DeviceProfile& device, const core::KernelDesc& kernel);
  // Of a task of so many block tasks.
  double NsOf(int64_t block_tasks) const;
  // Whether a record, a hint, counters or calls like this one are behind it.
  bool known() const { return known_; }
  // Of a library call of which nothing else is known: what its parameters tell (library_model.h).
  bool IsOpenForCall() const { return open_for_call_; }
  void SetCall(const core::Prediction& predicted);
  // One standard deviation of the relative error; 0: unknown.
  double error() const { return error_; }

 private:
  bool known_ = true;
  bool open_for_call_ = false;
  double error_ = 0;
  double constant_ns_ = 0;                // graphs, hints
  double block_task_ns_ = 0;              // else: rounds of block tasks
  int64_t concurrent_ = 1;                // block tasks that the whole device runs at once
  double counted_ns_per_block_task_ = 0;  // else: without rounds
};

// Latency plus bytes over the link's rate (hardware.md, "Copies").
double CopyPriorNs(const core::DeviceProfile& device, core::CopyDirection direction, bool pinned,
                   double bytes);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_PRIOR_H_
