// One kernel after the other at the device seam (src/core/seams/device.h), as the scheduler
// launches it: workers on an evictable lane, their completion with the device's own times. Threads:
// one.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_GPU_SEAM_H_
#define GPUSHARE_BENCHMARKS_HARNESS_GPU_SEAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernels/catalogue.h"
#include "src/core/seams/device.h"

namespace gpushare::benchmarks {

// No launch of a benchmark lasts longer: one that does is hung.
inline constexpr core::TimeNs kHungNs = 5'000'000'000;

// Fails with kNoGpu where there is none.
std::unique_ptr<core::Device> OpenSeam();

// Makes a kernel known to the device. `id` is its own there.
void Prepare(core::Device& device, const char* name, uint32_t id,
             const gpushare_kernel_variants& variants, core::KernelDesc* kernel);

// Workers of a kernel, from the first block task of its grid on.
struct SeamTask {
  const core::KernelDesc* kernel = nullptr;
  kernels::Grid grid;
  int64_t block_tasks = 0;  // fewer than the grid's are its first ones
  const void* params = nullptr;
  size_t params_bytes = 0;
  int workers = 0;    // 0: as many as fit
  bool begin = true;  // else what is left of the last launch
};

// An evictable BE lane, whose eviction word only moves forward.
class SeamLane {
 public:
  SeamLane(core::Device& device, core::PlaceIndex place);
  void Launch(const SeamTask& task);
  // What was launched last leaves.
  void Evict();

 private:
  core::Device& device_;
  core::LaneIndex lane_;
  uint64_t launches_ = 0;
  uint64_t epoch_ = 0;
};

// The completion of the one launch in flight, if it is there.
std::optional<core::DeviceCompletion> Poll(core::Device& device);
// Asks `poll` until its optional has a value. Fails after kHungNs with the name of what hangs.
template <class Ask>
auto Await(const core::Device& device, const std::string& what, const Ask& poll) {
  const core::TimeNs give_up_ns = device.NowNs() + kHungNs;
  while (device.NowNs() < give_up_ns) {
    if (const auto value = poll(); value.has_value()) return *value;
  }
  Fail(what + " does not complete.");
}

// Keeps the calling thread busy on the device's clock.
void Spin(const core::Device& device, core::TimeNs ns);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_GPU_SEAM_H_
