// The device seam: all that the scheduler asks of a GPU.
//
// Three devices implement it and pass one contract suite (tests/contract): `cuda`, `sim` (seeded,
// injects faults, in virtual or real time) and `null` (completes at once). Nothing above this seam
// knows whether time is real.
//
// Contract
// - Launches on one lane start in order; lanes of one place run side by side as the device allows.
//   A launch that names an `after_lane` waits for that lane's earlier launches too, and may wait
//   for ever if that lane hangs.
// - Every accepted launch is reported by PollCompletions exactly once, unless the device hangs:
//   then the scheduler times it out and calls AbandonLane.
// - A launch whose signal event cannot be recorded is accepted, runs to its end, and is reported as
//   failed with the event's error code.
// - A worker launch made at epoch e on a lane leaves once that lane's eviction word w satisfies
//   w - e >= 0 (signed difference, so that wrapping is harmless): after Evict(lane, w, keep) all
//   but `keep` of its workers leave at their next block-task boundary or yield point. Where w - e
//   >= 0 when the launch is made, the others execute no block task. Launches made later with e > w
//   are untouched. A device may compare the low 32 bits: the words of a lane move by less than 2^31
//   between two worker launches on it. Where a lane was made without an eviction word for workers,
//   Evict reaches launches in segments alone.
// - Launches of one task share a counter: block tasks are claimed once, whoever claims them; the
//   counter is zeroed only by a launch with reset_counter. What an evicted launch did not claim
//   stays for the next launch on that counter.
// - A launch in segments (kSegments) runs the segments of its graph one after another, from the
//   counter's position on. At most kSegmentsOutstanding of them are on the device at a time, so the
//   device launches the next ones inside PollCompletions. Where both the request and LimitSegments
//   allow it, several of them are launched as one, and count as one of those. Once its lane's word
//   w satisfies w - e >= 0, whatever the word keeps, it starts no further segment and is reported
//   when those on the device have ended. The rest may run in any place. Until it is reported its
//   counter has no other launch, and its lane takes none.
//   Of a measured graph, a segment that is one long node with a twin runs as workers
//   (GraphCut::evictable_segments), unless it is part of a longer one. Nothing of the graph is
//   behind it on the device. Evicted, its workers leave at their next block task, and the segment
//   is not done: the next launch on the counter begins with the rest of it, alone. A segment counts
//   as done when all of its block tasks are. On a lane without an eviction word for workers such a
//   segment runs whole, but for a rest that another lane left.
// - A fused launch (kFused) is two launches that share blocks: each part has its own identifier,
//   claim counter, epoch and lane, and is reported as soon as it has ended, finished or evicted,
//   whatever the other part does. It starts in the order of the first part's lane, whose next
//   launch waits for both parts. The second part has a lane of its own for its eviction word, and
//   that lane holds nothing else meanwhile; without a word it may name the first part's lane.
// - No call blocks on the GPU. Calls are thread-safe: the LC fast path launches from the
//   submitter's thread.

#ifndef GPUSHARE_SRC_CORE_SEAMS_DEVICE_H_
#define GPUSHARE_SRC_CORE_SEAMS_DEVICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/base/clock.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/launch_counts.h"
#include "src/core/seams/node_cut.h"
#include "src/core/seams/work.h"

namespace gpushare::core {

struct DeviceCapabilities {
  DeviceProfile profile;  // sizes and latencies of this GPU
  bool simulated = false;
  bool virtual_time = false;  // time moves only in AdvanceTo
  bool partitions = false;
  bool eviction = false;
  bool timestamps = false;    // completions carry device times of start and end
  bool reads_claims = false;  // ReadClaims answers
  // Launch of a copy of pageable memory returns when the copy has ended.
  bool pageable_copies_block = false;
  int64_t block_tasks_max = kMaxBlockTasks;  // of one task
  int32_t lanes_max = kMaxLanes;
  int32_t places_max = kMaxPlaces;
};

// Which SMs: groups [first_group, first_group + groups) of sm_granularity SMs, and the SMs that
// whole groups leave over when with_remainder.
struct PlaceSpec {
  int32_t first_group = 0;
  int32_t groups = 0;
  bool with_remainder = false;
};

enum class LanePriority : uint8_t { kLow = 0, kNormal = 1, kHigh = 2 };

struct LaneSpec {
  PlaceIndex place = kWholeDevice;
  LanePriority priority = LanePriority::kNormal;
  bool evictable = false;  // has an eviction word for workers
};

// One task's share of a launch.
struct LaunchPart {
  LaunchId launch;  // chosen by the scheduler, echoed in the completion
  // The lane whose eviction word it reads. The first part's lane gives the launch its order.
  LaneIndex lane = kNoLane;
  // Of the whole task, but for a copy: there the bytes and the offset are this launch's.
  Work work;
  // Block tasks of the slice, or of the whole task where it claims them (launch_claims.h).
  int64_t block_count = 0;
  int32_t counter = -1;        // where it claims: the task's claim counter
  bool reset_counter = false;  // where it claims
  uint64_t epoch = 0;          // where it claims
};

struct LaunchRequest {
  LaunchRequest() { parts.Add(); }

  Form form = Form::kOriginal;
  BoundedList<LaunchPart, kMaxLaunchParts> parts;  // one; two for kFused
  const FusedKernelDesc* fused = nullptr;          // kFused only; the parts are those of the pair
  int64_t block_begin = 0;                         // first block task (kSlice), else 0
  int32_t workers = 0;  // kWorkers; kFused: fused blocks. 0: all that the place holds
  // It also starts after all that was launched on this lane before; kNoLane: after no other lane's.
  // So a queue goes on in a larger place while its earlier work is in flight.
  LaneIndex after_lane = kNoLane;
  absl::Span<void* const> wait_events;  // native events to wait for before, empty on sim and null
  // Native event to record after. A fused launch records it after both parts, so the scheduler
  // fuses no task that has one.
  void* signal_event = nullptr;
  // LC work of form kOriginal: everything on its SMs was told to leave, and the launch has time to
  // wait for that. The device may start blocks on an SM only when the SM is empty: an SM that is
  // not empty cannot change how it divides its memory between L1 and shared memory. A device may
  // ignore this. Stream order and reports do not change.
  bool waits_for_empty_sms = false;
  // kSegments, on the whole device: the segments may be longer, up to what LimitSegments says.
  bool longer_segments = false;
  // kSegments: how long the whole graph took alone; 0: nobody knows.
  int64_t graph_ns = 0;
  // More launches of the same query follow on this lane: the device may leave the completion word
  // to one of them or to FlushLane, and reports by stream order.
  bool more_follows = false;
};

// Which part of its pair a fused launch's first one is. A pair of one kernel: the TC part.
inline bool FirstIsTensorPart(const LaunchRequest& request) {
  return request.fused->tensor_part == request.parts[0].work.kernel->id;
}

enum class Outcome : uint8_t {
  kFinished = 0,
  kEvicted = 1,  // workers left; the counter may hold unclaimed block tasks
  kFailed = 2,   // this launch failed; the device goes on
  kDeviceLost = 3,
};

struct DeviceCompletion {
  LaunchId launch;
  Outcome outcome = Outcome::kFinished;
  TimeNs start_ns = 0;  // device's view, on the device's clock
  TimeNs end_ns = 0;
  int64_t block_tasks_done = 0;  // executed to their end by this launch
  int32_t error_code = 0;        // native code (CUresult) when kFailed or kDeviceLost
  // False where the launch shared its completion word with others of its query, so that its own
  // times are a share of theirs: nothing is learned from them.
  bool timed = true;
  // kSegments: the longest of its segments that ran without LC work beside them; 0: unknown.
  int64_t longest_segment_ns = 0;
};

// A call that returns a status and finds no memory left may throw std::bad_alloc instead: it has
// then done nothing. The other calls do not allocate.
class Device : public Clock {
 public:
  virtual const DeviceCapabilities& capabilities() const = 0;

  // Fills what the device can read from the kernel's functions and the caller left at 0: threads,
  // registers, shared memory, workers per SM. INVALID_ARGUMENT when they contradict the options.
  virtual absl::Status DescribeKernel(KernelDesc& /*kernel*/) { return absl::OkStatus(); }

  // Called once for each kernel before its first launch: loads modules, instantiates graphs for
  // every place. INVALID_ARGUMENT when the kernel cannot run on this device. It may take long:
  // other threads make other calls meanwhile, but no PrepareKernel, ReleaseKernel, DescribeKernel,
  // CreatePlace or DestroyPlace. ReplaceLane may be called meanwhile, and must not wait for this
  // call: the kernel may run on the new lane once both have returned.
  virtual absl::Status PrepareKernel(const KernelDesc& kernel) = 0;

  // The kernel has no launch and gets none: the device may free what PrepareKernel made of it. Its
  // identifier may be given to another kernel. As PrepareKernel as to other calls.
  virtual void ReleaseKernel(KernelId /*kernel*/) {}

  // The application has given the kernel of PTX up, which may still have launches: its original may
  // become another function, so no graph that is prepared from now on gets its twin. May come more
  // than once. As PrepareKernel as to other calls.
  virtual void RetireKernel(KernelId /*kernel*/) {}

  // How the prepared graph is cut, at the same nodes for every place.
  virtual GraphCut CutOf(const KernelDesc& /*graph*/) const {
    return {.segments = 1, .whole_reason = "This device does not cut graphs."};
  }

  // How fast the prepared graph is on fewer SMs, in their order, the whole device the last; only
  // with measure_places, and empty where the device measured nothing.
  virtual absl::Span<const SpeedPoint> SpeedsOf(KernelId /*graph*/) const { return {}; }

  // The pieces of a prepared graph that LC apps submit, cut at nodes that launch one of `kernels`
  // and take long enough. Empty: the graph runs whole only. What it made of the graph stays until
  // ReleaseKernel of the graph. As PrepareKernel as to other calls.
  virtual absl::StatusOr<std::vector<NodePiece>> CutAtNodes(
      const KernelDesc& /*graph*/, absl::Span<const NodeKernel> /*kernels*/) {
    return std::vector<NodePiece>();
  }

  // Called once for each fused kernel before its first launch, with its identifier, once both parts
  // are prepared; as PrepareKernel as to other calls. Fills what the caller left at 0.
  virtual absl::Status PrepareFusedKernel(FusedKernelDesc& fused) {
    if (fused.blocks_per_sm == 0) fused.blocks_per_sm = 1;
    return absl::OkStatus();
  }

  // Makes a place under an index that no place has, from 1 to places_max - 1: as of launches, the
  // caller chooses it. All that prepared kernels need there is complete when it returns. It may
  // take milliseconds, and while it runs a launch may have to wait for the driver, so a caller
  // makes places in quiet moments and never on the LC path. As PrepareKernel as to other calls.
  // ALREADY_EXISTS: a place has the index. After any error there is no such place.
  virtual absl::Status CreatePlace(PlaceIndex place, const PlaceSpec& spec) = 0;
  // Gives back a place, its lanes, and what was prepared for it. The indices are free: a place made
  // later may have this one, and lanes made later get those of the lanes.
  // FAILED_PRECONDITION, and nothing changes: the whole device; no such place; a launch on one of
  // its lanes is not reported; one of its lanes was ever abandoned, because its stream may never
  // end; or the device keeps something there that it cannot free. A device may also refuse for a
  // moment after the last report, so a caller that is refused asks again later.
  // No other call names the place or its lanes meanwhile. As CreatePlace otherwise.
  virtual absl::Status DestroyPlace(PlaceIndex place) = 0;
  // Gets the lowest index that no lane has.
  virtual absl::StatusOr<LaneIndex> CreateLane(const LaneSpec& spec) = 0;
  // Whether the prepared kernel runs on the place's SMs alone. False: its launches there run on
  // every SM, in the lane's order (a graph whose clusters do not fit the place).
  virtual bool Confines(KernelId /*kernel*/, PlaceIndex /*place*/) const { return true; }
  // A hung lane: nothing is launched on it until it is replaced. Its launches are never reported.
  virtual void AbandonLane(LaneIndex lane) = 0;
  // Gives an abandoned lane a new stream and eviction word under its old index. Launches made
  // before stay on the old stream and are never reported. At most kMaxLaneReplacements times.
  // FAILED_PRECONDITION for a lane that was not abandoned; other errors as CreateLane.
  virtual absl::Status ReplaceLane(LaneIndex /*lane*/, const LaneSpec& /*spec*/) {
    return absl::UnimplementedError("The device replaces no lanes.");
  }

  // UNAVAILABLE, DATA_LOSS: the device is lost, for every later call too. Any other failure
  // concerns this launch, of which nothing has started. The status carries a native code
  // (native_code.h).
  virtual absl::Status Launch(const LaunchRequest& request) = 0;

  // No launch of the query follows that more_follows announced on this lane.
  virtual void FlushLane(LaneIndex /*lane*/) {}

  // Writes {epoch, workers_to_keep} to the lane's eviction word. Returns when the write is issued.
  virtual absl::Status Evict(LaneIndex lane, uint64_t epoch, int32_t workers_to_keep) = 0;

  // From now on segments that launches with longer_segments begin may be up to longest_ns long
  // (segment_lengths.h); 0: the kernel's own, kNever: whole graphs. At the beginning it is 0. What
  // is on the device runs to its end, so a change takes as long as that. Any thread.
  virtual void LimitSegments(int64_t /*longest_ns*/) {}

  // The native stream of a lane, for regions; null where the device has none.
  virtual void* LaneStream(LaneIndex lane) = 0;

  // Fills `out` with completions that are due, oldest first, and returns how many.
  virtual size_t PollCompletions(absl::Span<DeviceCompletion> out) = 0;

  // Virtual time only: the time of the next event (kNever when idle), and moving to a time.
  // On real devices NextEventNs returns kNever and AdvanceTo does nothing.
  virtual TimeNs NextEventNs() const = 0;
  virtual void AdvanceTo(TimeNs time) = 0;

  // Real devices: when PollCompletions next has work of its own beside reporting ends, such as a
  // launch of the next segment. A time that has passed: soon. kNever: it has none. Called by the
  // thread that polls. Ends need no such call, as the flow predicts them; one may be named.
  virtual TimeNs NextLookNs() { return kNever; }

  // How many block tasks or segments were claimed from a counter since it was zeroed: shows whether
  // a launch that seems to hang makes progress. A device whose counters are in its own memory
  // starts to read and answers at a later call; nothing until then.
  virtual std::optional<int64_t> ReadClaims(int32_t /*counter*/) { return std::nullopt; }

  // Device seconds times SMs that were busy, for utilisation: SM-nanoseconds since creation.
  virtual int64_t BusySmNs() const = 0;

  // What the device counts while `run` launches work and waits for its end (Kernelet 4.4). A device
  // counts a few things at a time, so it calls `run` several times, which does as much work each
  // time. `run` calls Launch and PollCompletions; nothing else runs on the device meanwhile.
  // Counting may slow the device down, so nobody learns from the times of these launches. The first
  // error of `run` ends the counting and is the answer. As PrepareKernel as to other calls.
  // UNIMPLEMENTED: the device counts nothing. UNAVAILABLE, PERMISSION_DENIED, FAILED_PRECONDITION:
  // it does not here, not for this user, or not now.
  virtual absl::StatusOr<LaunchCounts> CountLaunches(absl::FunctionRef<absl::Status()> /*run*/) {
    return absl::UnimplementedError("This device has no counters.");
  }
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_DEVICE_H_
