// Feeds a lane with the segments of one graph: at most kSegmentsOutstanding of them on its stream,
// and a long one alone.
//
// Where the device allows longer segments, groups of them are launched as one. What is allowed is
// read before each launch, so a run changes its length at the next boundary of both lengths.
//
// A segment that is one node with a twin is launched as workers, alone at the end of what is on the
// stream. It may leave with block tasks undone; then the next launch of workers, of this run or a
// later one, begins with the rest of it.
//
// Where in the flow: Launch starts the run with the first segments, and each poll of the lane asks
// for the end of the oldest one and launches the next, unless the lane's eviction word says leave.
//   Open -> (Start -> Advance ... -> true -> Take) ... -> Close
// An event without timing behind each segment takes no GPU time (docs/hardware.md).
// Invariants: after an error nothing more is launched, and the run ends when the stream is empty:
// an event that was not recorded seems to be reached. Nothing is on the stream behind workers, and
// no other segment is launched until they have left no block task (the chain rule, lc_gate.h).
// Threads: Start under the lane's mutex, Advance and Take on the polling thread, busy on any. The
// lane takes no launch while the feed is busy, so nobody else uses its stream.

#ifndef GPUSHARE_SRC_CUDA_LANES_SEGMENT_FEED_H_
#define GPUSHARE_SRC_CUDA_LANES_SEGMENT_FEED_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "src/core/base/clock.h"
#include "src/core/base/tuning.h"
#include "src/core/queueing/segment_blocking.h"
#include "src/core/seams/segment_lengths.h"
#include "src/cuda/driver/driver_api.h"
#include "src/cuda/lanes/segment_run.h"

namespace gpushare::cuda {

class SegmentFeed {
 public:
  // Makes the events. The primary context must be current.
  absl::Status Open(const DriverApi& api);
  // Destroys them. No other call may follow.
  void Close(const DriverApi& api);

  // Whether a run was started and not taken.
  bool busy() const { return busy_.load(std::memory_order_acquire); }
  // Launches the first segments, which begin at `now_ns` if the run starts at once. After an error
  // nothing was launched, and the feed is not busy.
  CUresult Start(const DriverApi& api, CUstream stream, const SegmentRun& run, core::TimeNs now_ns);
  // Looks at the device and launches the segments that are due. Returns whether the run has ended.
  bool Advance(const DriverApi& api, CUstream stream, core::TimeNs now_ns);
  // Frees the feed for the next run. Call after the end, or after the loss of the device.
  void Take() { busy_.store(false, std::memory_order_release); }

  // When the next Advance is due: shortly before the oldest segment on the stream should end, then
  // at once, and from time to time if the segment takes longer, or if nobody knows how long a group
  // takes. Where nobody measured the graph, its own segments are polled without a pause in every
  // sixteenth launch of the lane, because only an end that is seen at once is measured. Groups
  // never are. Polling thread.
  core::TimeNs NextLookNs(core::TimeNs now_ns) const;

  const SegmentRun& run() const { return run_; }
  // Launched so far, less the segment of which the workers have left block tasks.
  size_t next() const { return next_.load(std::memory_order_relaxed); }
  // As SegmentRun::rest_ns, of the segment next().
  int64_t rest_ns() const { return rest_ns_; }
  bool finished() const { return next() == run_.segments.size(); }
  CUresult error() const { return error_; }
  CUresult signal_error() const { return signal_error_; }
  int64_t longest_ns() const { return longest_ns_; }

 private:
  static constexpr size_t kOutstanding = core::kSegmentsOutstanding;

  // What was launched as one.
  struct Outstanding {
    size_t end = 0;  // the segment behind it
    int64_t duration_ns = 0;
    bool is_own = true;    // one of the graph's own segments
    bool is_node = false;  // as workers
  };

  bool IsEvicted() const;
  bool Evicts(uint64_t word) const;  // the run that is on the lane
  // Whether the step runs as workers.
  bool IsNode(const core::SegmentStep& step) const;
  bool AwaitsWorkers() const { return outstanding() > 0 && oldest().is_node; }
  void KeepNoWorkers();
  CUresult EndNode(const DriverApi& api, CUstream stream);
  core::SegmentStep NextStep() const;
  int64_t LongestNs() const;
  int64_t DurationOf(const core::SegmentStep& step) const;
  size_t outstanding() const { return launched_ - reached_; }
  const Outstanding& oldest() const { return outstanding_[reached_ % kOutstanding]; }
  // Whether the step joins those on the stream.
  bool HasRoom(const core::SegmentStep& step) const;
  void Measure(core::TimeNs now_ns);
  CUresult LaunchStep(const DriverApi& api, CUstream stream, const core::SegmentStep& step);
  // Launches what is due.
  CUresult Feed(const DriverApi& api, CUstream stream);
  // After an error: nothing of the run is left on the stream, or the device is lost.
  bool Drained(const DriverApi& api, CUstream stream) const;

  std::array<CUevent, kOutstanding> events_{};  // of launch n: n % kOutstanding
  std::array<Outstanding, kOutstanding> outstanding_{};
  std::atomic<bool> busy_{false};
  SegmentRun run_;
  std::atomic<size_t> next_{0};  // the first segment that is not launched
  int64_t rest_ns_ = 0;
  uint64_t node_launches_ = 0;  // of workers, of all runs of the lane
  size_t launched_ = 0;         // launches of this run
  size_t reached_ = 0;          // of them, those whose end was seen
  size_t recorded_ = 0;         // launches up to here have an event behind the last of them
  CUresult error_ = CUDA_SUCCESS;
  CUresult signal_error_ = CUDA_SUCCESS;
  core::TimeNs looked_ns_ = 0;    // when the host last looked at the device
  core::TimeNs last_end_ns_ = 0;  // when the host saw the last segment's end
  int64_t longest_ns_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_SEGMENT_FEED_H_
