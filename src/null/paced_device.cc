// The paced device. See paced_device.h.
//
// The null device keeps the contract; this one withholds its completions until they are due.

#include "src/null/paced_device.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/mutex.h"
#include "src/null/null_device.h"

namespace gpushare::null {
namespace {

using core::DeviceCompletion;
using core::LaneIndex;
using core::LaunchPart;
using core::LaunchRequest;
using core::TimeNs;

// A launch that was not reported yet.
struct Due {
  core::LaunchId launch;
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
  bool collected = false;  // `completion` is what the null device reported
  DeviceCompletion completion;
};

class PacedDevice final : public core::Device {
 public:
  TimeNs NowNs() const override { return inner_->NowNs(); }
  const core::DeviceCapabilities& capabilities() const override { return inner_->capabilities(); }
  absl::Status PrepareKernel(const core::KernelDesc& kernel) override {
    return inner_->PrepareKernel(kernel);
  }
  void ReleaseKernel(core::KernelId kernel) override { inner_->ReleaseKernel(kernel); }
  void RetireKernel(core::KernelId kernel) override { inner_->RetireKernel(kernel); }
  core::GraphCut CutOf(const core::KernelDesc& graph) const override {
    return inner_->CutOf(graph);
  }
  absl::StatusOr<std::vector<core::NodePiece>> CutAtNodes(
      const core::KernelDesc& graph, absl::Span<const core::NodeKernel> kernels) override {
    return inner_->CutAtNodes(graph, kernels);
  }
  absl::Status CreatePlace(core::PlaceIndex place, const core::PlaceSpec& spec) override {
    return inner_->CreatePlace(place, spec);
  }
  absl::Status DestroyPlace(core::PlaceIndex place) override {
    core::MutexLock lock(&mutex_);
    // It does not note the place of a launch that is not due, so any launch counts as one there.
    if (!due_.empty()) {
      return absl::FailedPreconditionError("The paced device ends places only when it is idle.");
    }
    return inner_->DestroyPlace(place);
  }
  absl::StatusOr<LaneIndex> CreateLane(const core::LaneSpec& spec) override {
    return inner_->CreateLane(spec);
  }
  void AbandonLane(LaneIndex lane) override { inner_->AbandonLane(lane); }
  absl::Status ReplaceLane(LaneIndex lane, const core::LaneSpec& spec) override {
    return inner_->ReplaceLane(lane, spec);
  }
  absl::Status Evict(LaneIndex lane, uint64_t epoch, int32_t workers_to_keep) override {
    return inner_->Evict(lane, epoch, workers_to_keep);
  }
  void* LaneStream(LaneIndex lane) override { return inner_->LaneStream(lane); }
  TimeNs NextEventNs() const override { return core::kNever; }
  void AdvanceTo(TimeNs) override {}
  int64_t BusySmNs() const override { return 0; }

  absl::Status Launch(const LaunchRequest& request) override {
    const TimeNs now_ns = NowNs();
    core::MutexLock lock(&mutex_);
    if (due_.size() + request.parts.size() > core::kMaxInFlightLaunches) {
      return absl::ResourceExhaustedError("The paced device holds the most launches that it can.");
    }
    absl::Status status = inner_->Launch(request);
    if (!status.ok()) return status;
    for (const LaunchPart& part : request.parts) {
      TimeNs& lane_ns = lane_end_ns_[static_cast<size_t>(part.lane)];
      Due& due = due_.Add();
      due = Due();
      due.launch = part.launch;
      due.start_ns = std::max(now_ns, lane_ns);
      if (request.after_lane != core::kNoLane) {
        due.start_ns =
            std::max(due.start_ns, lane_end_ns_[static_cast<size_t>(request.after_lane)]);
      }
      due.end_ns = lane_ns = due.start_ns + DurationOf(part);
    }
    return status;
  }

  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    core::MutexLock lock(&mutex_);
    if (due_.empty()) return 0;
    std::array<DeviceCompletion, 64> collected;
    const size_t found = inner_->PollCompletions(absl::MakeSpan(collected));
    for (size_t i = 0; i < found; ++i) {
      for (Due& due : due_) {
        if (due.launch != collected[i].launch) continue;
        due.collected = true;
        due.completion = collected[i];
      }
    }
    const TimeNs now_ns = NowNs();
    size_t count = 0;
    for (int next = First(now_ns); next >= 0 && count < out.size(); next = First(now_ns)) {
      Due& due = due_[next];
      due.completion.start_ns = due.start_ns;
      due.completion.end_ns = last_end_ns_ = std::max(last_end_ns_, due.end_ns);
      out[count++] = due.completion;
      due_.RemoveAt(next);
    }
    return count;
  }

 private:
  int64_t DurationOf(const LaunchPart& part) const {
    const core::KernelDesc* const kernel = part.work.kernel;
    if (kernel == nullptr || !kernel->simulation.present) return 0;
    const int64_t at_once = int64_t{capabilities().profile.sm_count} *
                            std::max(1, kernel->resources.workers_per_sm_max);
    return kernel->simulation.block_task_ns * ((part.block_count + at_once - 1) / at_once);
  }

  // The launch that ended first and is not reported; -1: none has ended.
  int First(TimeNs now_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int first = -1;
    for (int i = 0; i < due_.size(); ++i) {
      if (!due_[i].collected || due_[i].end_ns > now_ns) continue;
      if (first < 0 || due_[i].end_ns < due_[first].end_ns) first = i;
    }
    return first;
  }

  const std::unique_ptr<core::Device> inner_ = MakeNullDevice();
  core::Mutex mutex_;
  core::BoundedList<Due, core::kMaxInFlightLaunches> due_ ABSL_GUARDED_BY(mutex_);
  std::array<TimeNs, core::kMaxLanes> lane_end_ns_ ABSL_GUARDED_BY(mutex_) = {};
  TimeNs last_end_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<core::Device> MakePacedDevice() { return std::make_unique<PacedDevice>(); }

}  // namespace gpushare::null
