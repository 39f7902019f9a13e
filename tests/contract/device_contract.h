// The fixture of the device contract suite: a new device for each test, and helpers that let time
// pass on it, whether its clock is virtual or real.
//
// The clauses are those of src/core/seams/device.h. A device takes part if device_factories.cc
// lists it. A test skips, visibly, if the device lacks the capability (evictions, partitions, work
// that takes time).

#ifndef GPUSHARE_TESTS_CONTRACT_DEVICE_CONTRACT_H_
#define GPUSHARE_TESTS_CONTRACT_DEVICE_CONTRACT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/core/seams/device.h"

namespace gpushare::contract {

// Bytes of each copy buffer that a factory provides.
inline constexpr int64_t kCopyBytesMax = int64_t{1} << 24;

struct DeviceFactory {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<core::Device>>()> make;
  // Work takes time, so that an eviction or a second lane can overlap with it.
  bool work_takes_time = false;
  // Sets what this device launches for the kernel, whose block tasks take 10 us, and for the graph.
  // May be null.
  std::function<void(core::KernelDesc& kernel, core::KernelDesc& graph)> fill_kernels = nullptr;
  // The same for the graph of 40 nodes.
  std::function<void(core::KernelDesc& long_graph)> fill_long_graph = nullptr;
  // The same for the second kernel, with equal block tasks and arguments, and for the fused kernel
  // of both.
  std::function<void(core::KernelDesc& partner, core::FusedKernelDesc& fused)> fill_fused = nullptr;
  // A fused function of both that reports no end. Null if the device launches no functions.
  void* direct_function = nullptr;
  // Memory for copies of up to 16 MB. Null if the device copies nothing.
  void* pinned = nullptr;
  void* pageable = nullptr;
  void* device_memory = nullptr;
  std::string arguments = {};  // packed arguments of the kernel
};

// Every device in this build.
std::vector<DeviceFactory> DeviceFactories();

class DeviceContract : public testing::TestWithParam<DeviceFactory> {
 protected:
  void SetUp() override;

  core::Device& device() { return *device_; }
  const core::DeviceCapabilities& capabilities() { return device_->capabilities(); }

  // An evictable kernel with block tasks of 10 us and eight workers an SM.
  const core::KernelDesc& kernel() const { return kernel_; }
  const core::KernelDesc& graph() const { return graph_; }
  // A graph of 40 nodes of 50 us, cut into segments of about 200 us.
  const core::KernelDesc& long_graph() const { return long_graph_; }
  // Another such kernel, and a fused kernel with one block of `kernel` and two of `partner`.
  const core::KernelDesc& partner() const { return partner_; }
  const core::FusedKernelDesc& fused() const { return fused_; }

  core::LaneIndex MakeLane(core::PlaceIndex place = core::kWholeDevice, bool evictable = false);
  std::vector<core::LaneIndex> MakeLanes(int count);  // on the whole device
  // Under the lowest index that MakePlace did not use.
  core::PlaceIndex MakePlace(int32_t first_group, int32_t groups, bool with_remainder = false);

  core::LaunchId NewLaunch() { return core::LaunchId{next_launch_++}; }
  core::LaunchRequest Original(core::LaneIndex lane, int64_t blocks);
  core::LaunchRequest Slice(core::LaneIndex lane, int64_t begin, int64_t blocks);
  core::LaunchRequest Workers(core::LaneIndex lane, int64_t blocks, int32_t counter, bool reset,
                              uint64_t epoch, int32_t workers = 0);
  // Both parts start their tasks, on counters 0 and 1 with epoch 1.
  core::LaunchRequest Fused(core::LaneIndex lane, int64_t blocks, core::LaneIndex partner_lane,
                            int64_t partner_blocks);
  core::LaunchRequest Copy(core::LaneIndex lane, core::CopyDirection direction, int64_t bytes);
  // Sets the factory's buffers for the copy's direction and kind of host memory. kPeer copies from
  // the first half of one device buffer to its second.
  void SetBuffers(core::LaunchRequest& request) const;
  core::LaunchRequest Graph(core::LaneIndex lane);
  // `long_graph` from the counter's segment on.
  core::LaunchRequest Segments(core::LaneIndex lane, int32_t counter, bool reset, uint64_t epoch);
  // Launches, and expects success.
  core::LaunchId Launch(const core::LaunchRequest& request);

  // Takes the completions that are due now.
  void Poll();
  // Lets time pass until `time`, or until `count` completions have been reported in all.
  void WaitUntilTime(core::TimeNs time);
  void WaitForCount(size_t count);
  // Waits until every launch is reported, and expects no further report.
  void WaitForAll() { WaitForAll(launched_); }
  void WaitForAll(size_t count);

  bool IsReported(core::LaunchId launch) const { return reported_.count(launch.value) > 0; }
  const core::DeviceCompletion& Of(core::LaunchId launch) const;
  // In the order in which PollCompletions returned them.
  const std::vector<core::DeviceCompletion>& completions() const { return completions_; }

  // Measures how long `blocks` block tasks of `kernel` take on the whole device now.
  int64_t DurationOf(core::LaneIndex lane, int64_t blocks);

 private:
  std::unique_ptr<core::Device> device_;
  core::KernelDesc kernel_;
  core::KernelDesc graph_;
  core::KernelDesc long_graph_;
  core::KernelDesc partner_;
  core::FusedKernelDesc fused_;
  uint64_t next_launch_ = 1;
  size_t launched_ = 0;
  core::PlaceIndex places_ = core::kWholeDevice;  // the last one made
  std::vector<core::DeviceCompletion> completions_;
  std::map<uint64_t, size_t> reported_;
};

}  // namespace gpushare::contract

#endif  // GPUSHARE_TESTS_CONTRACT_DEVICE_CONTRACT_H_
