// Turns completion records and marks into completions. See completion_poller.h.

#include "src/cuda/lanes/completion_poller.h"

#include <algorithm>
#include <atomic>

namespace gpushare::cuda {
namespace {

// Reads a word that the GPU writes. Everything that the GPU wrote before the word is visible after
// this load.
uint64_t ReadWord(const uint64_t& word) {
  const uint64_t value = *const_cast<const volatile uint64_t*>(&word);
  std::atomic_thread_fence(std::memory_order_acquire);
  return value;
}

// A launch whose signal event was not recorded counts as failed: work that waits for the event
// would start before the launch has ended.
void FailWithoutSignal(const InFlightLaunch& launch, core::DeviceCompletion& out) {
  if (launch.signal_error == CUDA_SUCCESS) return;
  out.outcome = core::Outcome::kFailed;
  out.error_code = static_cast<int32_t>(launch.signal_error);
}

// Whether the launch comes after a launch of another lane that is not reported yet. The end of the
// earlier launch gives the start of the later one, so the earlier one is reported first.
bool IsBehind(const InFlightLaunch& launch) {
  return launch.after != nullptr &&
         launch.after->reported.load(std::memory_order_acquire) < launch.after_sequence &&
         !launch.after->abandoned.load(std::memory_order_acquire);
}

}  // namespace

void CompletionPoller::Finish(CudaLane& lane, core::DeviceCompletion& completion, bool beside) {
  if (!beside) completion.start_ns = std::max(completion.start_ns, lane.last_end_ns);
  completion.end_ns = std::max(completion.end_ns, completion.start_ns);
  lane.last_end_ns = std::max(lane.last_end_ns, completion.end_ns);
  busy_time_.Add(places_.place(lane.spec.place).spec, completion.start_ns, completion.end_ns);
}

bool CompletionPoller::CollectWorkers(CudaLane& lane, uint64_t sequence, core::TimeNs now_ns,
                                      core::DeviceCompletion& out) {
  const InFlightLaunch& launch = lane.At(sequence);
  const gpushare_worker_completion& record = lane.words.records[lane.Slot(sequence)];
  if (ReadWord(record.sequence) != sequence) return false;
  clock_.Observe(record.end_globaltimer_ns, now_ns);
  out.launch = launch.launch;
  out.outcome = record.block_tasks_left > 0 ? core::Outcome::kEvicted : core::Outcome::kFinished;
  FailWithoutSignal(launch, out);
  out.block_tasks_done = record.block_tasks_done;
  out.start_ns =
      std::clamp(clock_.HostTime(record.start_globaltimer_ns), launch.launched_ns, now_ns);
  out.end_ns = std::clamp(clock_.HostTime(record.end_globaltimer_ns), out.start_ns, now_ns);
  Finish(lane, out, launch.fused);
  return true;
}

size_t CompletionPoller::CollectMarked(CudaLane& lane, core::TimeNs now_ns, uint64_t last,
                                       absl::Span<core::DeviceCompletion> out, size_t count) {
  const uint64_t first = lane.reported.load(std::memory_order_relaxed) + 1;
  const auto launches = static_cast<int64_t>(last - first + 1);
  const core::TimeNs end_ns = now_ns - profile_.completion_latency_ns;
  core::TimeNs start_ns = std::max(
      lane.last_end_ns, std::min(end_ns, lane.At(first).launched_ns + profile_.launch_latency_ns));
  if (const CudaLane* const after = lane.At(first).after; after != nullptr) {
    start_ns = std::max(start_ns, std::min(end_ns, after->last_end_ns));
  }
  const int64_t share_ns = std::max<int64_t>(0, end_ns - start_ns) / launches;
  for (uint64_t sequence = first; sequence <= last && count < out.size(); ++sequence) {
    const InFlightLaunch& launch = lane.At(sequence);
    core::DeviceCompletion& completion = out[count++] = core::DeviceCompletion();
    const auto before = static_cast<int64_t>(sequence - first);
    completion.launch = launch.launch;
    FailWithoutSignal(launch, completion);
    completion.block_tasks_done = launch.block_tasks;
    completion.timed = launches == 1;
    completion.start_ns = std::max(start_ns + before * share_ns, launch.launched_ns);
    completion.end_ns = std::max(completion.start_ns, start_ns + (before + 1) * share_ns);
    Finish(lane, completion, false);
    lane.reported.store(sequence, std::memory_order_release);
  }
  return count;
}

size_t CompletionPoller::Collect(const DriverApi& api, CudaLane& lane, core::TimeNs now_ns,
                                 absl::Span<core::DeviceCompletion> out, size_t count) {
  while (count < out.size()) {
    const uint64_t reported = lane.reported.load(std::memory_order_relaxed);
    const uint64_t launched = lane.launched.load(std::memory_order_acquire);
    if (reported == launched || IsBehind(lane.At(reported + 1))) break;
    if (const InFlightLaunch& first = lane.At(reported + 1); first.workers) {
      // A part whose stream belongs to an abandoned lane will never report; skip it.
      const bool over =
          first.collected || (first.stream_lane != nullptr && first.stream_lane != &lane &&
                              first.stream_lane->abandoned.load());
      out[count] = core::DeviceCompletion();
      if (!over && !CollectWorkers(lane, reported + 1, now_ns, out[count])) {
        // Both parts of a fused launch may be on one lane. The second part may end before the
        // first.
        if (reported + 2 > launched) break;
        InFlightLaunch& second = lane.At(reported + 2);
        if (second.stream_lane != &lane || second.collected) break;
        second.collected = CollectWorkers(lane, reported + 2, now_ns, out[count]);
        count += second.collected ? 1 : 0;
        break;
      }
      count += over ? 0 : 1;
      lane.reported.store(reported + 1, std::memory_order_release);
      continue;
    }
    uint64_t last = std::min(launched, lane.marks.Reached(api));
    // A mark does not report a worker launch, which has a record, nor a launch in segments, whose
    // end the feed knows.
    for (uint64_t sequence = reported + 1; sequence <= last; ++sequence) {
      const InFlightLaunch& launch = lane.At(sequence);
      const bool behind = sequence > reported + 1 && launch.after != nullptr;
      if (launch.workers || launch.segments || behind) last = sequence - 1;
    }
    if (last <= reported) break;
    count = CollectMarked(lane, now_ns, last, out, count);
  }
  return count;
}

void CompletionPoller::CollectSegments(CudaLane& lane, core::TimeNs now_ns,
                                       core::DeviceCompletion& out) {
  const SegmentFeed& feed = lane.feed;
  const uint64_t sequence = feed.run().sequence;
  const InFlightLaunch& launch = lane.At(sequence);
  out = core::DeviceCompletion();
  out.launch = launch.launch;
  out.outcome = feed.finished() ? core::Outcome::kFinished : core::Outcome::kEvicted;
  out.block_tasks_done = static_cast<int64_t>(feed.next() - feed.run().first);
  out.longest_segment_ns = feed.longest_ns();
  for (const CUresult error : {feed.signal_error(), feed.error()}) {
    if (error == CUDA_SUCCESS) continue;
    out.outcome = core::Outcome::kFailed;
    out.error_code = static_cast<int32_t>(error);
  }
  out.start_ns = launch.launched_ns + profile_.graph_launch_latency_ns;
  out.end_ns = std::max(out.start_ns, now_ns - profile_.completion_latency_ns);
  Finish(lane, out, false);
}

size_t CompletionPoller::CollectLost(CudaLane& lane, int32_t error_code,
                                     absl::Span<core::DeviceCompletion> out, size_t count) {
  while (count < out.size()) {
    const uint64_t reported = lane.reported.load(std::memory_order_relaxed);
    if (reported == lane.launched.load(std::memory_order_acquire)) break;
    if (lane.At(reported + 1).collected) {
      lane.reported.store(reported + 1, std::memory_order_release);
      continue;
    }
    core::DeviceCompletion& completion = out[count++] = core::DeviceCompletion();
    completion.launch = lane.At(reported + 1).launch;
    completion.outcome = core::Outcome::kDeviceLost;
    completion.error_code = error_code;
    completion.start_ns = completion.end_ns = lane.At(reported + 1).launched_ns;
    lane.reported.store(reported + 1, std::memory_order_release);
  }
  return count;
}

void CompletionPoller::SortByEnd(absl::Span<core::DeviceCompletion> completions) {
  // Insertion sort: the array is short and nearly sorted, and the poller must not allocate.
  for (size_t i = 1; i < completions.size(); ++i) {
    for (size_t k = i; k > 0 && completions[k].end_ns < completions[k - 1].end_ns; --k) {
      std::swap(completions[k], completions[k - 1]);
    }
  }
  // The poller may see a word some hundred nanoseconds after a later one; keep ends from going
  // backwards.
  for (core::DeviceCompletion& completion : completions) {
    completion.end_ns = last_end_ns_ = std::max(last_end_ns_, completion.end_ns);
  }
}

}  // namespace gpushare::cuda
