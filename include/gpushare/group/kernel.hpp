// A kernel, graph or library call that is registered on the GPUs of a group, and how long it takes
// on each.
//
// Group::RegisterKernel makes it, and the group owns it. Threads: any.
#ifndef GPUSHARE_GROUP_KERNEL_HPP_
#define GPUSHARE_GROUP_KERNEL_HPP_

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <gpushare/gpushare.hpp>
#include <string>
#include <utility>

namespace gpushare {

// GPUs of a group, most: what one host has.
inline constexpr int kGroupGpusMax = 16;

namespace group_detail {
class LcQueueCore;
class BeQueueCore;

// The longest duration of work that a group counts with: an hour, so that no sum overflows.
inline constexpr int64_t kSoloNsMax = 3'600'000'000'000;
}  // namespace group_detail

// Registers a kernel on one GPU. An empty Kernel leaves the GPU out. Runs once for each GPU, in
// ascending order, on the thread that calls Group::RegisterKernel.
using KernelFactory = std::function<Result<Kernel>(const Runtime& runtime, int gpu)>;

class GroupKernel {
 public:
  bool IsOn(int gpu) const { return static_cast<bool>(on_[Index(gpu)].kernel); }
  // Empty where the factory left the GPU out.
  const Kernel& On(int gpu) const { return on_[Index(gpu)].kernel; }
  // Predicted duration alone on the whole GPU, as its runtime predicted it last; before the first
  // completion, as its registration states it; else the longest one that another GPU knows; 0:
  // unknown.
  int64_t SoloNs(int gpu, int64_t block_tasks) const {
    double unit_ns = UnitNs(on_[Index(gpu)]);
    if (unit_ns <= 0) {
      for (const OnGpu& other : on_) unit_ns = std::max(unit_ns, UnitNs(other));
    }
    const double solo_ns =
        std::ceil(unit_ns * static_cast<double>(std::max<int64_t>(1, block_tasks)));
    return static_cast<int64_t>(std::min(solo_ns, static_cast<double>(group_detail::kSoloNsMax)));
  }
  // How long a launch of `solo_ns` (0: unknown) may stay on the GPU after an eviction: all of it
  // where it cannot be evicted. At most an hour, which an unknown one counts as.
  int64_t LeavesWithinNs(int gpu, int64_t solo_ns) const {
    const int64_t all_ns = solo_ns > 0 ? solo_ns : group_detail::kSoloNsMax;
    const int64_t leaves_ns = on_[Index(gpu)].leaves_within_ns;
    return leaves_ns > 0 ? std::min(leaves_ns, all_ns) : all_ns;
  }

 private:
  friend class Group;
  friend class group_detail::LcQueueCore;
  friend class group_detail::BeQueueCore;

  struct OnGpu {
    Kernel kernel;
    mutable std::atomic<double> unit_ns{0};  // solo time of one block task, or of one launch
    int64_t leaves_within_ns = 0;            // 0: it cannot be evicted
  };

  static size_t Index(int gpu) { return static_cast<size_t>(gpu); }
  static double UnitNs(const OnGpu& on) { return on.unit_ns.load(std::memory_order_relaxed); }

  void Set(const Runtime& runtime, int gpu, Kernel kernel, const std::string& name) {
    OnGpu& on = on_[Index(gpu)];
    on.kernel = std::move(kernel);
    if (!on.kernel) return;
    Result<KernelInfo> info = runtime.FindKernel(name);
    Result<DeviceInfo> device = runtime.Device();
    if (!info.ok() || !device.ok()) return;
    if (info->kind == GPUSHARE_TASK_KERNEL) {
      // One round executes SMs x workers_per_sm_max block tasks.
      const int64_t round = int64_t{device->sm_count} * std::max(1, info->workers_per_sm_max);
      on.unit_ns = static_cast<double>(info->block_task_ns) /
                   static_cast<double>(std::max<int64_t>(1, round));
      if (info->evictable == 1) on.leaves_within_ns = info->block_task_ns;
    } else {
      on.unit_ns = static_cast<double>(info->solo_ns);
      if (info->evictable == 1) on.leaves_within_ns = info->longest_segment_ns;
    }
  }

  void Learn(int gpu, const gpushare_completion_record& record, int64_t block_tasks) const {
    if (record.verdict != GPUSHARE_VERDICT_OK || record.predicted_ns <= 0) return;
    on_[Index(gpu)].unit_ns.store(static_cast<double>(record.predicted_ns) /
                                      static_cast<double>(std::max<int64_t>(1, block_tasks)),
                                  std::memory_order_relaxed);
  }

  std::array<OnGpu, kGroupGpusMax> on_;
};

}  // namespace gpushare

#endif  // GPUSHARE_GROUP_KERNEL_HPP_
