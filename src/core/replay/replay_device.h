// A device that executes nothing and gives the answers of the recorded device.
//
// It delivers the completions that the log has at the position of the comparison, refuses the
// launches that the log lacks, and blocks the lanes that were blocked in the recorded run.
//
// Threads: that of the replay; any may ask for the time.

#ifndef GPUSHARE_SRC_CORE_REPLAY_REPLAY_DEVICE_H_
#define GPUSHARE_SRC_CORE_REPLAY_REPLAY_DEVICE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/replay/comparison.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

class ReplayDevice final : public Device {
 public:
  ReplayDevice(const DeviceCapabilities& capabilities, const Comparison& comparison,
               uint64_t blocked_lanes);

  TimeNs NowNs() const override { return now_ns_.load(std::memory_order_relaxed); }
  const DeviceCapabilities& capabilities() const override { return capabilities_; }
  absl::Status PrepareKernel(const KernelDesc&) override { return absl::OkStatus(); }
  // As many segments as the BE tasks of the recorded run had.
  GraphCut CutOf(const KernelDesc& graph) const override;
  absl::Status PrepareFusedKernel(FusedKernelDesc&) override { return absl::OkStatus(); }
  absl::Status CreatePlace(PlaceIndex, const PlaceSpec&) override { return absl::OkStatus(); }
  absl::Status DestroyPlace(PlaceIndex place) override;
  absl::StatusOr<LaneIndex> CreateLane(const LaneSpec& spec) override;
  void AbandonLane(LaneIndex) override {}
  // The recorded device made none if its loss is what the log has next.
  absl::Status ReplaceLane(LaneIndex lane, const LaneSpec& spec) override;
  // Progress, unless the recorded run gave up the launch's lane now: there was none. Or soon: then
  // it waited for the answer.
  std::optional<int64_t> ReadClaims(int32_t counter) override;
  absl::Status Evict(LaneIndex, uint64_t, int32_t) override { return absl::OkStatus(); }
  void* LaneStream(LaneIndex) override { return nullptr; }
  int64_t BusySmNs() const override { return 0; }

  // A launch that the log lacks was refused by the recorded device.
  absl::Status Launch(const LaunchRequest& request) override;

  // Delivers only the next completions of the log: one that was seen a Tick later is not due yet.
  // Each is delivered once, also when the replay differs and the position stands still.
  size_t PollCompletions(absl::Span<DeviceCompletion> out) override;

  TimeNs NextEventNs() const override;
  void AdvanceTo(TimeNs time) override { now_ns_.store(std::max(NowNs(), time)); }

 private:
  static std::array<PlaceIndex, kMaxLanes> NoPlaces() {
    std::array<PlaceIndex, kMaxLanes> places;
    places.fill(kNoPlace);
    return places;
  }

  DeviceCapabilities capabilities_;
  const Comparison& comparison_;
  const uint64_t blocked_lanes_;
  std::atomic<TimeNs> now_ns_{0};  // any thread may ask for the time
  std::array<PlaceIndex, kMaxLanes> place_of_lane_ = NoPlaces();
  std::array<int64_t, kMaxCounters> claims_{};
  std::array<uint64_t, kMaxCounters> lanes_of_counter_{};  // one bit a lane
  std::unordered_set<uint64_t> launched_;
  size_t delivered_ = 0;  // position after the last completion that was given back
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_REPLAY_REPLAY_DEVICE_H_
