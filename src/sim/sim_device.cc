// The device seam over the engine: one mutex, the host function of opaque work, and the ranges that
// a profile's values may have. See sim_device.h.

#include "src/sim/sim_device.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/mutex.h"
#include "src/core/seams/graph_cut.h"
#include "src/sim/engine.h"

namespace gpushare::sim {
namespace {

class SimDevice final : public core::Device {
 public:
  SimDevice(const SimOptions& options, std::unique_ptr<const core::Clock> clock)
      : real_time_(options.real_time),
        wall_(clock == nullptr ? std::make_unique<core::SteadyClock>() : std::move(clock)),
        engine_(options),
        capabilities_(engine_.capabilities()),
        step_back_at_ns_(options.faults.clock_jump_at_ns),
        step_back_ns_(std::max<int64_t>(0, -options.faults.clock_jump_ns)),
        begin_ns_(real_time_ ? wall_->NowNs() : 0) {}

  core::TimeNs NowNs() const override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (real_time_) return wall_->NowNs();
    return engine_.NowNs() + begin_ns_.load(std::memory_order_acquire);
  }

  const core::DeviceCapabilities& capabilities() const override { return capabilities_; }

  absl::Status PrepareKernel(const core::KernelDesc& kernel) override {
    const Present present(*this);
    return engine_.Prepare(kernel);
  }

  void ReleaseKernel(core::KernelId kernel) override {
    const Present present(*this);
    engine_.Release(kernel);
  }

  core::GraphCut CutOf(const core::KernelDesc& graph) const override {
    return core::CutOfRecord(graph);
  }
  absl::StatusOr<std::vector<core::NodePiece>> CutAtNodes(
      const core::KernelDesc& graph, absl::Span<const core::NodeKernel> kernels) override {
    return core::PiecesOfRecord(graph, kernels);
  }

  absl::Status PrepareFusedKernel(core::FusedKernelDesc& fused) override {
    const Present present(*this);
    engine_.PrepareFused(fused);
    return absl::OkStatus();
  }

  absl::Status CreatePlace(core::PlaceIndex place, const core::PlaceSpec& spec) override {
    const Present present(*this);
    return engine_.AddPlace(place, spec);
  }

  absl::Status DestroyPlace(core::PlaceIndex place) override {
    const Present present(*this);
    return engine_.RemovePlace(place);
  }

  absl::StatusOr<core::LaneIndex> CreateLane(const core::LaneSpec& spec) override {
    const Present present(*this);
    return engine_.AddLane(spec);
  }

  void AbandonLane(core::LaneIndex lane) override {
    const Present present(*this);
    engine_.Abandon(lane);
  }

  absl::Status ReplaceLane(core::LaneIndex lane, const core::LaneSpec& spec) override {
    const Present present(*this);
    return engine_.Replace(lane, spec);
  }

  absl::Status Launch(const core::LaunchRequest& request) override {
    if (request.form == core::Form::kOpaque && request.parts[0].work.host_function != nullptr) {
      {
        const Present present(*this);
        if (absl::Status status = engine_.Check(request); !status.ok()) return status;
      }
      // Run the caller's code without a lock: it may call the device.
      request.parts[0].work.host_function(nullptr, request.parts[0].work.host_user);
    }
    const Present present(*this);
    return engine_.Submit(request);
  }

  std::optional<int64_t> ReadClaims(int32_t counter) override {
    const Present present(*this);
    return engine_.ClaimsOf(counter);
  }

  absl::Status Evict(core::LaneIndex lane, uint64_t epoch, int32_t workers_to_keep) override {
    const Present present(*this);
    return engine_.Evict(lane, epoch, workers_to_keep);
  }

  void LimitSegments(int64_t longest_ns) override {
    const Present present(*this);
    engine_.LimitSegments(longest_ns);
  }

  void* LaneStream(core::LaneIndex) override { return nullptr; }

  size_t PollCompletions(absl::Span<core::DeviceCompletion> out) override {
    if (IsQuiet()) return 0;
    const Present present(*this);
    const size_t count = engine_.Poll(out);
    if (count < out.size()) present.NoteQuiet();
    for (core::DeviceCompletion& completion : out.first(count)) {
      completion.start_ns += begin_ns_.load();
      completion.end_ns += begin_ns_.load();
    }
    return count;
  }

  core::TimeNs NextEventNs() const override {
    if (real_time_) return core::kNever;
    core::MutexLock lock(&mutex_);
    const core::TimeNs next = engine_.NextEventNs();
    return next == core::kNever ? next : next + begin_ns_.load();
  }

  void AdvanceTo(core::TimeNs time) override {
    if (real_time_) return;
    core::MutexLock lock(&mutex_);
    const core::TimeNs begin_ns = begin_ns_.load();
    engine_.AdvanceTo(time > core::kNever + begin_ns ? core::kNever : time - begin_ns);
    if (begin_ns == 0 && engine_.NowNs() >= step_back_at_ns_) {
      begin_ns_.store(-std::min(step_back_ns_, engine_.NowNs()));  // no time is below 0
    }
  }

  core::TimeNs NextLookNs() override {
    if (!real_time_) return core::kNever;
    // Another call between both reads makes the look a new one, and the quiet may be of that.
    const core::TimeNs known = look_ns_.load();
    if (known != kUnknown && IsQuiet() && look_ns_.load() == known) return known;
    const Present present(*this);
    core::TimeNs next = engine_.NextLookNs();
    if (next > engine_.NowNs()) present.NoteQuiet();  // otherwise a completion is there
    if (next != core::kNever) next += begin_ns_.load();
    present.NoteLook(next);
    return next;
  }

  int64_t BusySmNs() const override {
    const Present present(*this);
    return engine_.BusySmNs();
  }

 private:
  // Holds the mutex. In real time all that was due when the call was made has happened: the engine
  // is at that time, however long the caller then waited for the mutex. So the profile's launch
  // latency contains what Launch takes, as on a GPU, and nothing counts that twice.
  class ABSL_SCOPED_LOCKABLE Present {
   public:
    explicit Present(const SimDevice& device) ABSL_EXCLUSIVE_LOCK_FUNCTION(device.mutex_)
        : device_(device) {
      const core::TimeNs called_ns = device.real_time_ ? device.wall_->NowNs() : 0;
      device.Lock();
      if (device.real_time_) device.engine_.AdvanceTo(called_ns - device.begin_ns_.load());
    }
    ~Present() ABSL_UNLOCK_FUNCTION() {
      if (device_.real_time_) {
        device_.look_ns_.store(look_ns_);
        device_.quiet_until_ns_.store(quiet_ ? device_.engine_.NextEventNs() : 0);
      }
      device_.mutex_.Unlock();
    }
    Present(const Present&) = delete;
    Present& operator=(const Present&) = delete;
    // There is no completion to be told, until the next event.
    void NoteQuiet() const { quiet_ = true; }
    // The next look, until another call.
    void NoteLook(core::TimeNs look_ns) const { look_ns_ = look_ns; }

   private:
    const SimDevice& device_;
    mutable bool quiet_ = false;
    mutable core::TimeNs look_ns_ = kUnknown;
  };

  static constexpr core::TimeNs kUnknown = -1;
  // A call takes a few microseconds with the mutex, and a sleep in front of it 10 more.
  static constexpr int64_t kSpinNs = 20'000;

  // In real time it spins first: the thread that looks and the one that launches meet at each end.
  void Lock() const ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (mutex_.TryLock()) return;
    if (real_time_) {
      const core::TimeNs began_ns = spin_clock_.NowNs();
      while (spin_clock_.NowNs() - began_ns < kSpinNs) {
        if (mutex_.TryLock()) return;
      }
    }
    mutex_.Lock();
  }

  // Real time: whether nothing has happened since a call that found nothing. The scheduler's thread
  // looks all the time, and with the mutex it would hold up each launch by a wake-up.
  bool IsQuiet() const {
    return real_time_ && wall_->NowNs() - begin_ns_.load() < quiet_until_ns_.load();
  }

  const bool real_time_;
  const std::unique_ptr<const core::Clock> wall_;
  const core::SteadyClock spin_clock_;
  mutable core::Mutex mutex_;
  // NowNs reads its clock without the mutex. Mutable: in real time it moves whoever looks.
  mutable Engine engine_ ABSL_GUARDED_BY(mutex_);
  const core::DeviceCapabilities capabilities_;
  // The fault of a clock that steps back: from then on the clock is behind the engine's.
  const core::TimeNs step_back_at_ns_;
  const int64_t step_back_ns_;
  // What the device's clock shows when the engine's shows 0: in real time the time of creation.
  std::atomic<core::TimeNs> begin_ns_;
  // Real time. Until when nothing happens on the engine's clock, and nothing is to be told.
  mutable std::atomic<core::TimeNs> quiet_until_ns_{0};
  mutable std::atomic<core::TimeNs> look_ns_{kUnknown};  // of the last call, if it was NextLookNs
};

absl::Status Outside(absl::string_view field, double value, double low, double high) {
  return absl::InvalidArgumentError(absl::StrCat("The profile has ", field, " ", value,
                                                 ", and it must lie between ", low, " and ", high,
                                                 "."));
}

absl::Status CheckProfile(const core::DeviceProfile& profile) {
  struct Field {
    const char* name;
    double value;
    double low;
    double high;
  };
  constexpr double kLatencyMaxNs = 1e9;
  constexpr double kRateMax = 1e6;
  const int32_t groups_max = profile.sm_count / std::max(1, profile.sm_granularity);
  const Field fields[] = {
      {"sm_count", double(profile.sm_count), 1, kMaxSms},
      {"sm_granularity", double(profile.sm_granularity), 1, double(profile.sm_count)},
      {"sm_groups", double(profile.sm_groups), 0, double(groups_max)},
      {"registers_per_sm", double(profile.registers_per_sm), 1, 1 << 24},
      {"shared_memory_per_sm_bytes", double(profile.shared_memory_per_sm_bytes), 0, 1 << 28},
      {"threads_per_sm", double(profile.threads_per_sm), 1, 1 << 16},
      {"blocks_per_sm", double(profile.blocks_per_sm), 1, 1024},
      {"hardware_queues", double(profile.hardware_queues), 1, 1024},
      {"launch_latency_ns", double(profile.launch_latency_ns), 0, kLatencyMaxNs},
      {"graph_launch_latency_ns", double(profile.graph_launch_latency_ns), 0, kLatencyMaxNs},
      {"completion_latency_ns", double(profile.completion_latency_ns), 0, kLatencyMaxNs},
      {"eviction_write_latency_ns", double(profile.eviction_write_latency_ns), 0, kLatencyMaxNs},
      {"copy_latency_ns", double(profile.copy_latency_ns), 0, kLatencyMaxNs},
      {"pinned_bytes_per_ns", profile.pinned_bytes_per_ns, 1e-6, kRateMax},
      {"duplex_bytes_per_ns", profile.duplex_bytes_per_ns, 1e-6, kRateMax},
      {"pageable_h2d_bytes_per_ns", profile.pageable_h2d_bytes_per_ns, 1e-6, kRateMax},
      {"pageable_d2h_bytes_per_ns", profile.pageable_d2h_bytes_per_ns, 1e-6, kRateMax},
  };
  for (const Field& field : fields) {
    // Written as a negation, so that NaN is out of range, too.
    if (!(field.value >= field.low && field.value <= field.high)) {
      return Outside(field.name, field.value, field.low, field.high);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<core::Device>> MakeSimDevice(
    const SimOptions& options, std::unique_ptr<const core::Clock> clock) {
  if (absl::Status status = CheckProfile(options.profile); !status.ok()) return status;
  if (!(options.faults.slow_copy_factor >= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("The slow-copy factor is ",
                                                   options.faults.slow_copy_factor,
                                                   ", and it must be 1 or more."));
  }
  if (!(options.faults.misprediction_factor > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("The misprediction factor is ",
                                                   options.faults.misprediction_factor,
                                                   ", and it must be above 0."));
  }
  if (options.real_time && options.faults.clock_jump_at_ns != core::kNever) {
    return absl::InvalidArgumentError(
        "The fault 'clock_jump_at_ns' needs a clock in virtual time, and the device is in real "
        "time.");
  }
  return std::unique_ptr<core::Device>(std::make_unique<SimDevice>(options, std::move(clock)));
}

}  // namespace gpushare::sim
