// A device that asks another one for everything: a test says what it wants otherwise.

#ifndef GPUSHARE_TESTS_CORE_FORWARDING_DEVICE_H_
#define GPUSHARE_TESTS_CORE_FORWARDING_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  TimeNs NowNs() const override { return inner_->NowNs(); }
  const DeviceCapabilities& capabilities() const override { return inner_->capabilities(); }
  absl::Status DescribeKernel(KernelDesc& kernel) override {
    return inner_->DescribeKernel(kernel);
  }
  absl::Status PrepareKernel(const KernelDesc& kernel) override {
    return inner_->PrepareKernel(kernel);
  }
  void ReleaseKernel(KernelId graph) override { inner_->ReleaseKernel(graph); }
  void RetireKernel(KernelId kernel) override { inner_->RetireKernel(kernel); }
  GraphCut CutOf(const KernelDesc& graph) const override { return inner_->CutOf(graph); }
  absl::StatusOr<std::vector<NodePiece>> CutAtNodes(const KernelDesc& graph,
                                                    absl::Span<const NodeKernel> kernels) override {
    return inner_->CutAtNodes(graph, kernels);
  }
  absl::Span<const SpeedPoint> SpeedsOf(KernelId graph) const override {
    return inner_->SpeedsOf(graph);
  }
  absl::Status PrepareFusedKernel(FusedKernelDesc& fused) override {
    return inner_->PrepareFusedKernel(fused);
  }
  absl::Status CreatePlace(PlaceIndex place, const PlaceSpec& spec) override {
    return inner_->CreatePlace(place, spec);
  }
  absl::Status DestroyPlace(PlaceIndex place) override { return inner_->DestroyPlace(place); }
  absl::StatusOr<LaneIndex> CreateLane(const LaneSpec& spec) override {
    return inner_->CreateLane(spec);
  }
  bool Confines(KernelId kernel, PlaceIndex place) const override {
    return inner_->Confines(kernel, place);
  }
  absl::StatusOr<LaunchCounts> CountLaunches(absl::FunctionRef<absl::Status()> run) override {
    return inner_->CountLaunches(run);
  }
  void AbandonLane(LaneIndex lane) override { inner_->AbandonLane(lane); }
  absl::Status ReplaceLane(LaneIndex lane, const LaneSpec& spec) override {
    return inner_->ReplaceLane(lane, spec);
  }
  std::optional<int64_t> ReadClaims(int32_t counter) override {
    return inner_->ReadClaims(counter);
  }
  absl::Status Launch(const LaunchRequest& request) override { return inner_->Launch(request); }
  void FlushLane(LaneIndex lane) override { inner_->FlushLane(lane); }
  absl::Status Evict(LaneIndex lane, uint64_t epoch, int32_t workers_to_keep) override {
    return inner_->Evict(lane, epoch, workers_to_keep);
  }
  void LimitSegments(int64_t longest_ns) override { inner_->LimitSegments(longest_ns); }
  void* LaneStream(LaneIndex lane) override { return inner_->LaneStream(lane); }
  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    return inner_->PollCompletions(out);
  }
  TimeNs NextEventNs() const override { return inner_->NextEventNs(); }
  void AdvanceTo(TimeNs time) override { inner_->AdvanceTo(time); }
  TimeNs NextLookNs() override { return inner_->NextLookNs(); }
  int64_t BusySmNs() const override { return inner_->BusySmNs(); }

 protected:
  Device& inner() const { return *inner_; }

 private:
  const std::unique_ptr<Device> inner_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_FORWARDING_DEVICE_H_
