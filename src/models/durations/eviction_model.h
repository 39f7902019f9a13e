// Eviction latency of one kernel: from the eviction call until the last worker has left.
//
// The last of hundreds of workers leaves almost a whole block task (or yield interval) after the
// write arrives; hardware.md ("Eviction with other block-task lengths") has p50 = write + 0.71 to
// 0.91 x and p99 = write + 0.92 to 1.3 x the block task. Blocking budgets need the tail, so the
// error bar is half of what separates p99 from the mean. Threads: the scheduler's only; nothing
// allocates.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_EVICTION_MODEL_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_EVICTION_MODEL_H_

#include <array>
#include <cstdint>

#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"

namespace gpushare::models {

struct EvictionState {
  double mean_ns = 0;
  double error_ns = 0;
  bool trained = false;
};

EvictionState EvictionPrior(const core::DeviceProfile& device, const core::KernelDesc& kernel);

class EvictionModel {
 public:
  explicit EvictionModel(const EvictionState& prior) : prior_(prior), state_(prior) {}

  core::Prediction Predict() const;
  // One measured eviction. Returns whether mean + 2 x error moved by more than a tenth.
  bool Observe(double latency_ns);

  const EvictionState& state() const { return state_; }
  void Restore(const EvictionState& state);

 private:
  void Keep(float sample);

  // The p99 of 128 samples is their second largest: enough for a tail.
  static constexpr int kWindow = 128;

  EvictionState prior_;
  EvictionState state_;
  double announced_ns_ = 0;
  std::array<float, kWindow> window_ = {};  // in the order of observation, round and round
  std::array<float, kWindow> sorted_ = {};  // the same samples in ascending order
  int64_t seen_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_EVICTION_MODEL_H_
