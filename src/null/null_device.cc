// The null device. See null_device.h.
//
// A launch checks its arguments, runs an opaque host function, updates its claim counter, and
// pushes its completion into a bounded lock-free queue.
// Invariants: each completion is pushed exactly once. Launch reserves a slot of the queue first, so
// a refused launch changes nothing and a push never waits.

#include "src/null/null_device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "atomic_queue/atomic_queue.h"
#include "src/core/base/mutex.h"
#include "src/core/checks/launch_check.h"
#include "src/core/seams/graph_cut.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::null {
namespace {

using core::DeviceCompletion;
using core::LaneIndex;
using core::PlaceIndex;

// The most completions that wait to be polled: above the scheduler's launch table, so it never
// reaches this bound.
constexpr uint32_t kCompletionsMax = 2 * core::kMaxInFlightLaunches;

struct Lane {
  std::atomic<bool> made{false};
  PlaceIndex place = core::kWholeDevice;
  std::atomic<bool> evictable{false};
  std::atomic<bool> abandoned{false};
  std::atomic<uint32_t> generation{0};  // rises when it is replaced
  std::atomic<uint64_t> word{0};
  std::atomic<int32_t> workers_to_keep{0};
  std::atomic<int32_t> unreported{0};  // launches whose completion nobody polled
};

struct Entry {
  DeviceCompletion completion;
  LaneIndex lane = core::kNoLane;
  uint32_t lane_generation = 0;
};

class NullDevice final : public core::Device {
 public:
  NullDevice() {
    capabilities_.profile.name = "null";
    capabilities_.profile.gpu_model = "null";
    // No GPU ran anything, so reports carry the SIMULATED stamp.
    capabilities_.simulated = true;
    capabilities_.partitions = true;
    capabilities_.eviction = true;
    capabilities_.timestamps = true;
  }

  core::TimeNs NowNs() const override { return clock_.NowNs(); }
  const core::DeviceCapabilities& capabilities() const override { return capabilities_; }

  absl::Status PrepareKernel(const core::KernelDesc&) override { return absl::OkStatus(); }
  core::GraphCut CutOf(const core::KernelDesc& graph) const override {
    return core::CutOfRecord(graph);
  }
  absl::StatusOr<std::vector<core::NodePiece>> CutAtNodes(
      const core::KernelDesc& graph, absl::Span<const core::NodeKernel> kernels) override {
    return core::PiecesOfRecord(graph, kernels);
  }

  absl::Status CreatePlace(PlaceIndex place, const core::PlaceSpec& spec) override {
    if (absl::Status status = core::CheckNewPlace(place, spec, capabilities_.profile);
        !status.ok()) {
      return status;
    }
    core::MutexLock lock(&mutex_);
    if (HasPlace(place)) return core::PlaceExists(place);
    places_ |= uint64_t{1} << place;
    return absl::OkStatus();
  }

  absl::Status DestroyPlace(PlaceIndex place) override {
    core::MutexLock lock(&mutex_);
    if (place == core::kWholeDevice || !HasPlace(place)) return core::NoSuchPlace(place);
    const auto is_there = [place](const Lane& lane) { return lane.made && lane.place == place; };
    for (const Lane& lane : lane_) {
      if (!is_there(lane)) continue;
      if (lane.unreported > 0 || lane.abandoned || lane.generation != 0) {
        return absl::FailedPreconditionError(absl::StrCat(
            "Place ", place, " is asked to end, and a lane of it is in use or was given up."));
      }
    }
    for (Lane& lane : lane_) {
      if (is_there(lane)) lane.made = false;
    }
    places_ &= ~(uint64_t{1} << place);
    return absl::OkStatus();
  }

  absl::StatusOr<LaneIndex> CreateLane(const core::LaneSpec& spec) override {
    core::MutexLock lock(&mutex_);
    if (!HasPlace(spec.place)) {
      return absl::InvalidArgumentError(absl::StrCat("A lane asks for place ", spec.place,
                                                     ", and the device has made no such place."));
    }
    LaneIndex index = 0;
    while (index < capabilities_.lanes_max && lane_[static_cast<size_t>(index)].made) ++index;
    if (index == capabilities_.lanes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The device has ", capabilities_.lanes_max, " lanes already."));
    }
    Lane& lane = lane_[static_cast<size_t>(index)];
    lane.place = spec.place;
    lane.evictable = spec.evictable;
    lane.word = 0;
    lane.workers_to_keep = 0;
    // release: a launch that sees the lane also sees its fields.
    lane.made.store(true, std::memory_order_release);
    return index;
  }

  void AbandonLane(LaneIndex lane) override {
    if (Lane* found = Find(lane); found != nullptr) {
      found->abandoned.store(true, std::memory_order_release);
    }
  }

  absl::Status ReplaceLane(LaneIndex index, const core::LaneSpec& spec) override {
    Lane* lane = Find(index);
    if (lane == nullptr || !lane->abandoned.load(std::memory_order_acquire)) {
      return absl::FailedPreconditionError(
          absl::StrCat("Lane ", index, " was not abandoned, and only such a lane is replaced."));
    }
    lane->evictable = spec.evictable;
    lane->generation.fetch_add(1, std::memory_order_relaxed);
    lane->word.store(0, std::memory_order_relaxed);
    lane->abandoned.store(false, std::memory_order_release);
    return absl::OkStatus();
  }

  absl::Status Launch(const core::LaunchRequest& request) override {
    const core::TimeNs start = clock_.NowNs();
    Lane* lane = Find(request.parts[0].lane);
    if (lane == nullptr) return NoSuchLane(request.parts[0].lane);
    if (absl::Status status = core::CheckLaunchRequest(request); !status.ok()) return status;
    if (lane->abandoned.load(std::memory_order_acquire)) {
      return absl::FailedPreconditionError(
          absl::StrCat("Lane ", request.parts[0].lane, " was given up after it hung."));
    }
    const bool fused = request.form == core::Form::kFused;
    Lane* partner_lane = fused ? Find(request.parts[1].lane) : nullptr;
    if (fused && partner_lane == nullptr) return NoSuchLane(request.parts[1].lane);
    const uint32_t count = fused ? 2 : 1;
    if (unpolled_.fetch_add(count, std::memory_order_relaxed) > kCompletionsMax - count) {
      unpolled_.fetch_sub(count, std::memory_order_relaxed);
      return absl::ResourceExhaustedError(
          absl::StrCat("The device holds ", kCompletionsMax, " completions that nobody polled."));
    }
    Entry entry;
    entry.lane = request.parts[0].lane;
    entry.lane_generation = lane->generation.load(std::memory_order_relaxed);
    entry.completion.launch = request.parts[0].launch;
    entry.completion.start_ns = start;
    entry.completion.end_ns = start;
    if (request.form == core::Form::kOpaque) {
      // Opaque work without a function marks the end of a region.
      if (request.parts[0].work.host_function != nullptr)
        request.parts[0].work.host_function(nullptr, request.parts[0].work.host_user);
      entry.completion.end_ns = clock_.NowNs();
    } else {
      RunBlocks(request, *lane, entry.completion);
    }
    lane->unreported.fetch_add(1, std::memory_order_relaxed);
    completions_.push(entry);
    if (fused) PushPartner(request, *partner_lane, start);
    return absl::OkStatus();
  }

  absl::Status Evict(LaneIndex index, uint64_t epoch, int32_t workers_to_keep) override {
    Lane* lane = Find(index);
    if (lane == nullptr) return NoSuchLane(index);
    if (workers_to_keep < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("An eviction keeps ", workers_to_keep, " workers, and the least is 0."));
    }
    lane->workers_to_keep.store(workers_to_keep, std::memory_order_relaxed);
    lane->word.store(epoch, std::memory_order_release);
    return absl::OkStatus();
  }

  void* LaneStream(LaneIndex) override { return nullptr; }

  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    if (completions_.was_empty()) return 0;
    core::MutexLock lock(&poll_mutex_);
    size_t count = 0;
    Entry entry;
    while (count < out.size() && completions_.try_pop(entry)) {
      unpolled_.fetch_sub(1, std::memory_order_relaxed);
      Lane& lane = lane_[static_cast<size_t>(entry.lane)];
      lane.unreported.fetch_sub(1, std::memory_order_relaxed);
      if (lane.abandoned.load(std::memory_order_acquire)) continue;
      if (lane.generation.load(std::memory_order_relaxed) != entry.lane_generation) continue;
      // Launchers read the clock before they push, so their pushes may swap. The reported ends
      // follow the queue, so that they never go backwards.
      DeviceCompletion& completion = entry.completion;
      completion.start_ns = std::max(completion.start_ns, last_end_ns_);
      completion.end_ns = std::max(completion.end_ns, completion.start_ns);
      last_end_ns_ = completion.end_ns;
      out[count++] = completion;
    }
    return count;
  }

  core::TimeNs NextEventNs() const override { return core::kNever; }
  void AdvanceTo(core::TimeNs) override {}
  int64_t BusySmNs() const override { return 0; }  // nothing takes time

 private:
  Lane* Find(LaneIndex lane) {
    if (lane < 0 || lane >= core::kMaxLanes) return nullptr;
    Lane& found = lane_[static_cast<size_t>(lane)];
    return found.made.load(std::memory_order_acquire) ? &found : nullptr;
  }
  bool HasPlace(PlaceIndex place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return place >= 0 && place < core::kMaxPlaces && (places_ >> place & 1) != 0;
  }

  static absl::Status NoSuchLane(LaneIndex lane) {
    return absl::InvalidArgumentError(absl::StrCat("Lane ", lane, " does not exist."));
  }

  void RunBlocks(const core::LaunchRequest& request, const Lane& lane,
                 DeviceCompletion& completion) {
    const bool is_workers = core::ClaimsBlockTasks(request.form);
    const bool has_counter = is_workers && request.parts[0].counter >= 0;
    std::atomic<int64_t>* counter =
        has_counter ? &counters_[static_cast<size_t>(request.parts[0].counter)] : nullptr;
    if (has_counter && request.parts[0].reset_counter) counter->store(0, std::memory_order_relaxed);
    const bool reads_word = lane.evictable || request.form == core::Form::kSegments;
    if (is_workers && reads_word && IsEvicted(lane, request)) {
      // Every worker reads the word before its first claim.
      completion.outcome = core::Outcome::kEvicted;
      return;
    }
    // The launch takes every block task that is still unclaimed. A counter only grows between
    // resets.
    const int64_t claimed =
        has_counter ? counter->exchange(request.parts[0].block_count, std::memory_order_relaxed)
                    : 0;
    completion.block_tasks_done = std::max<int64_t>(0, request.parts[0].block_count - claimed);
  }

  // Completes the second part of a fused launch like a worker launch of its own.
  void PushPartner(const core::LaunchRequest& request, Lane& lane, core::TimeNs start) {
    const core::LaunchPart& partner = request.parts[1];
    core::LaunchRequest alone;
    alone.form = core::Form::kWorkers;
    alone.parts[0] = partner;
    Entry entry;
    entry.lane = partner.lane;
    entry.lane_generation = lane.generation.load(std::memory_order_relaxed);
    entry.completion.launch = partner.launch;
    entry.completion.start_ns = entry.completion.end_ns = start;
    RunBlocks(alone, lane, entry.completion);
    lane.unreported.fetch_add(1, std::memory_order_relaxed);
    completions_.push(entry);
  }

  static bool IsEvicted(const Lane& lane, const core::LaunchRequest& request) {
    const uint64_t word = lane.word.load(std::memory_order_acquire);
    return static_cast<int64_t>(word - request.parts[0].epoch) >= 0 &&
           (request.form == core::Form::kSegments ||
            lane.workers_to_keep.load(std::memory_order_relaxed) == 0);
  }

  const core::SteadyClock clock_;
  core::DeviceCapabilities capabilities_;

  core::Mutex mutex_;                            // held while a place or a lane is made or ends
  uint64_t places_ ABSL_GUARDED_BY(mutex_) = 1;  // a bit each
  std::array<Lane, core::kMaxLanes> lane_;
  std::array<std::atomic<int64_t>, core::kMaxCounters> counters_{};

  alignas(64) std::atomic<uint32_t> unpolled_{0};
  atomic_queue::AtomicQueue2<Entry, kCompletionsMax> completions_;
  core::Mutex poll_mutex_;
  core::TimeNs last_end_ns_ ABSL_GUARDED_BY(poll_mutex_) = 0;
};

}  // namespace

std::unique_ptr<core::Device> MakeNullDevice() { return std::make_unique<NullDevice>(); }

}  // namespace gpushare::null
