// A kernel that is launched under a quota of n SMs, in each of the four ways.
//
// Invariants: one launch at a time; each must execute every block task of its task. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_QUOTA_LIMITED_KERNEL_H_
#define GPUSHARE_BENCHMARKS_GPU_QUOTA_LIMITED_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "benchmarks/gpu/quota_gpu.h"
#include "benchmarks/kernels/form_launcher.h"
#include "src/core/seams/kernel.h"

namespace gpushare::quota {

enum class Way : uint8_t {
  kPacked,     // workers on a green context of n SMs, by the device seam
  kSpread,     // n SMs' worth of workers, placed anywhere, by the device seam
  kRetreat,    // Filling & Retreating: workers for the whole GPU, those outside of n SMs leave
  kRetreatX4,  // the same with four times the workers
};
inline constexpr std::array<Way, 4> kWays = {Way::kPacked, Way::kSpread, Way::kRetreat,
                                             Way::kRetreatX4};
const char* NameOf(Way way);

inline constexpr uint32_t kOverfill = 4;  // of kRetreatX4

class LimitedKernel {
 public:
  // `id`: its own on the device.
  LimitedKernel(Gpu& gpu, const char* name, int (*variants)(gpushare_kernel_variants*),
                uint32_t id);

  // `params` must outlive the launches.
  void SetTask(const void* params, size_t params_bytes, kernels::Grid grid);
  int workers_per_sm() const { return desc_.workers_per_sm_max; }
  uint32_t block_tasks() const { return task_.block_tasks(); }

  void Start(Way way, int quota);
  // Once the launch has ended: its device time. Must be asked until then.
  std::optional<double> PollMs();

  // Start to end; blocks.
  double Ms(Way way, int quota);
  double SoloMs();  // on the whole GPU

 private:
  void StartOnLane(Lane& lane, int workers);
  void StartRetreating(int quota, uint32_t fill);
  std::optional<double> PollLaneMs();
  std::optional<double> PollRetreatingMs();
  double WaitMs();
  void CheckDone(int64_t done) const;

  Gpu& gpu_;
  core::KernelDesc desc_;
  kernels::FormTask task_;
  size_t params_bytes_ = 0;
  uint64_t launches_ = 0;
  bool retreating_ = false;             // the launch in flight, or the last one
  gpushare_worker_launch header_ = {};  // of a retreating one
};

}  // namespace gpushare::quota

#endif  // GPUSHARE_BENCHMARKS_GPU_QUOTA_LIMITED_KERNEL_H_
