// The GPU of quota_benchmark: the device seam with its places and lanes, and the launcher of forms
// beside it, which makes Filling & Retreating.
//
// Invariant: places are made while nothing runs. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_QUOTA_GPU_H_
#define GPUSHARE_BENCHMARKS_GPU_QUOTA_GPU_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "benchmarks/kernels/form_launcher.h"
#include "src/core/seams/device.h"

struct CUstream_st;

namespace gpushare::quota {

// One evictable BE lane and the epoch that its word has reached.
struct Lane {
  core::LaneIndex index = core::kNoLane;
  uint64_t epoch = 0;
};

class Gpu {
 public:
  Gpu();

  int sms() const { return device_->capabilities().profile.sm_count; }
  std::string model() const { return device_->capabilities().profile.gpu_model; }
  core::Device& device() { return *device_; }
  kernels::FormLauncher& launcher() { return launcher_; }

  // A BE lane of the whole GPU.
  Lane& whole() { return whole_; }
  // Of a green context of exactly so many SMs. False, told once, where the hardware grants none.
  bool MakePacked(int sms);
  Lane& packed(int sms) { return packed_.at(sms); }

  // LC streams of the highest priority: on the whole GPU, and on the SMs that the packed place of
  // `sms` SMs leaves.
  void MakeLcStreams(int sms);
  CUstream_st* lc_whole() const { return lc_whole_; }
  CUstream_st* lc_rest(int sms) const { return lc_rest_.at(sms); }

 private:
  // Whole groups, or whole groups and what they leave over.
  std::optional<core::PlaceSpec> SpecOf(int sms) const;
  core::LaneIndex MakeLane(core::PlaceIndex place, core::LanePriority priority, bool evictable);
  CUstream_st* MakeLcStream(core::PlaceIndex place);

  std::unique_ptr<core::Device> device_;
  kernels::FormLauncher launcher_;
  Lane whole_;
  std::map<int, Lane> packed_;
  CUstream_st* lc_whole_ = nullptr;
  std::map<int, CUstream_st*> lc_rest_;
};

}  // namespace gpushare::quota

#endif  // GPUSHARE_BENCHMARKS_GPU_QUOTA_GPU_H_
