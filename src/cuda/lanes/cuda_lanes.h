// All lanes of the device: makes and replaces them, publishes their launches to the poller, sets
// their marks and asks silent ones for errors.
//
// Where in the flow: launch and complete. A launch on a lane runs
//   LockLane -> CheckTakes -> the launcher's call -> Publish -> RequestMark or MarkIfDue -> unlock
// and a poll runs, for each lane in Busy(),
//   SetWantedMark -> the poller's Collect -> CheckSilent if nothing was reported -> StopIfEmpty
// Invariants: a lane that hung is replaced under its index and stays until the end, because a
// launch or the poller may hold it. A lane in Busy() has launches that were not reported, or had
// some at the last poll. The poller touches no other lane, so a lane outside Busy() may end.
// Threads: Find, Evict, Abandon and RequestMark on any. Create, Replace, RemoveFrom and Close take
// `making`.
// Functions that name "the lane's mutex" need it. One thread polls; the primary context is current
// on it and on the launching thread.

#ifndef GPUSHARE_SRC_CUDA_LANES_CUDA_LANES_H_
#define GPUSHARE_SRC_CUDA_LANES_CUDA_LANES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/limits.h"
#include "src/core/base/mutex.h"
#include "src/core/seams/device.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/device_loss.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/lanes/cuda_lane.h"
#include "src/cuda/lanes/lane_check.h"
#include "src/cuda/library/library_calls.h"

namespace gpushare::cuda {

class CudaLanes {
 public:
  // `making` is held while a lane is made; the device holds it while it makes a place.
  CudaLanes(const Context& context, const Places& places, LibraryCalls& library, DeviceLoss& loss,
            core::Mutex& making)
      : context_(context),
        places_(places),
        library_(library),
        loss_(loss),
        making_(making),
        check_(context, kWordSets) {}

  // Allocates the words of all lanes and of their replacements, and loads the self-test. `least`
  // and `greatest` are the driver's numbers for the priorities of streams.
  absl::Status Open(int least, int greatest);

  // Errors: INVALID_ARGUMENT for an unknown place. RESOURCE_EXHAUSTED past the last lane.
  // DEADLINE_EXCEEDED if an evictable lane does not see evictions. Otherwise the driver's error.
  absl::StatusOr<core::LaneIndex> Create(const core::LaneSpec& spec);
  // Ends the lanes of a place. FAILED_PRECONDITION, and all stay, while work is on one of them, or
  // if one of them ever hung.
  absl::Status RemoveFrom(core::PlaceIndex place);
  // Puts a new lane in the place of one that was abandoned.
  absl::Status Replace(core::LaneIndex index, const core::LaneSpec& spec);
  void Abandon(core::LaneIndex index);

  // The lane that has the index now; null if there is none.
  CudaLane* Find(core::LaneIndex index) const;
  static absl::Status NoSuchLane(core::LaneIndex index);
  // Writes the lane's eviction word.
  absl::Status Evict(core::LaneIndex index, uint64_t epoch, int32_t workers_to_keep) const;

  // FAILED_PRECONDITION for a lane that hung.
  static absl::Status CheckNotAbandoned(const CudaLane& lane, core::LaneIndex index);
  // Whether the lane takes launch `sequence` now. FAILED_PRECONDITION while it has a launch in
  // segments, RESOURCE_EXHAUSTED while its ring is full. Needs the lane's mutex.
  static absl::Status CheckTakes(const CudaLane& lane, core::LaneIndex index, uint64_t sequence);
  // What is put on `lane` from now on starts after all that is on lane `before` now.
  absl::Status OrderAfter(const CudaLane& lane, core::LaneIndex before) const;
  // Hands launch `sequence`, which is on the stream, to the poller. Needs the lane's mutex.
  void Publish(CudaLane& lane, core::LaneIndex index, uint64_t sequence);

  // Asks the poller to set a mark behind launch `sequence`, so that the submitter does not pay for
  // it.
  static void RequestMark(CudaLane& lane, uint64_t sequence);
  // Sets a mark behind the launches before `sequence` that were not reported. Without it the next
  // mark would be behind launch `sequence` too, and they would seem to end with it. Needs the
  // lane's mutex.
  void MarkBefore(CudaLane& lane, uint64_t sequence);
  // On a lane of queries, sets the mark that the poller has not come to. Behind the next query's
  // launch it would report this query as late as that one: of queries of 1.6 ms at half load, one
  // in 220 was. Needs the lane's mutex.
  void MarkQueryBefore(CudaLane& lane);
  // Sets a mark if the oldest launch without one is old. Needs the lane's mutex.
  void MarkIfDue(CudaLane& lane, core::TimeNs now_ns);

  // The lanes to poll, a bit each by index.
  uint64_t Busy() const { return busy_.load(std::memory_order_acquire); }
  // Sets the mark that a launch asked for. These three belong to the thread that polls.
  void SetWantedMark(CudaLane& lane);
  // Sets the mark that a lane without completions lacks, and asks its stream for errors.
  void CheckSilent(CudaLane& lane, core::TimeNs now_ns);
  // Polls the lane no more if it is empty or abandoned. A launch at the same moment sets its bit
  // again.
  void StopIfEmpty(const CudaLane& lane, core::LaneIndex index);

  // Whether no lane, replaced ones included, has work on its stream.
  bool Idle();
  // Destroys streams and events. No other call may follow.
  void Close();
  // Keeps the memory until the process ends: the device is lost or busy.
  void Leak();

 private:
  // Sets of a lane's words. The device may still write to those of a lane that hung, so the lane
  // that replaces it gets others. They are allocated at the start: an allocation may wait for the
  // device.
  static constexpr size_t kWordSets = core::kMaxLanes + core::kMaxLaneReplacements;

  absl::Status Allocate();
  absl::Status CheckEnds(core::PlaceIndex place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(making_);
  // A new lane with set `words` of the words. Its index does not name it yet.
  absl::StatusOr<CudaLane*> Make(const core::LaneSpec& spec, core::LaneIndex index, size_t words)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(making_);
  absl::Status OpenStream(CudaLane& lane, core::LaneIndex index, size_t words);
  void CloseLane(CudaLane& lane) const;
  LaneWords WordsOf(size_t set, bool evictable) const;
  // Sets a mark behind everything on the lane. If that fails, the poller tries later.
  void MarkLocked(CudaLane& lane);
  // Replaces a lost mark by a new one behind everything on the lane. The new one reports the same
  // launches.
  void ReplaceMark(CudaLane& lane);

  const Context& context_;
  const Places& places_;
  LibraryCalls& library_;
  DeviceLoss& loss_;
  core::Mutex& making_;
  LaneCheck check_;
  MappedMemory records_;
  MappedMemory host_eviction_words_;
  DeviceMemory eviction_words_;
  DeviceMemory scratch_;
  std::array<int, 3> priorities_{};  // the driver's numbers, by core::LanePriority
  std::vector<std::unique_ptr<CudaLane>> owned_ ABSL_GUARDED_BY(making_);
  std::array<std::atomic<CudaLane*>, core::kMaxLanes> lanes_{};  // by index
  std::atomic<int32_t> count_{0};
  // By set of words: the sequence number after which the next lane with them begins. It survives a
  // failed Create or Replace.
  std::array<uint64_t, kWordSets> first_sequence_ ABSL_GUARDED_BY(making_) = {};
  size_t word_sets_used_ ABSL_GUARDED_BY(making_) = core::kMaxLanes;
  // By lane: the set that a failed Replace took, or 0.
  std::array<size_t, core::kMaxLanes> words_of_attempt_ ABSL_GUARDED_BY(making_) = {};
  std::atomic<uint64_t> busy_{0};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_CUDA_LANES_H_
