// Feeds a lane with segments. See segment_feed.h.

#include "src/cuda/lanes/segment_feed.h"

#include <algorithm>
#include <utility>

#include "src/core/queueing/segment_blocking.h"
#include "src/core/seams/segment_lengths.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/lanes/node_workers.h"

namespace gpushare::cuda {

namespace {

// A segment is measured if the host last looked at it within this part of its duration before it
// saw the end. The scheduler's thread looks each few us, and a segment takes about 100 us.
constexpr int64_t kLateLook = 4;

}  // namespace

absl::Status SegmentFeed::Open(const DriverApi& api) {
  for (CUevent& event : events_) {
    GPUSHARE_CU_RETURN(api, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
  return absl::OkStatus();
}

void SegmentFeed::Close(const DriverApi& api) {
  for (CUevent& event : events_) {
    if (event != nullptr) api.cuEventDestroy(event);
    event = nullptr;
  }
}

bool SegmentFeed::IsEvicted() const {
  if (run_.eviction_word == nullptr) return false;
  return Evicts(run_.eviction_word->load(std::memory_order_acquire));
}

bool SegmentFeed::Evicts(uint64_t word) const {
  return static_cast<int32_t>(static_cast<uint32_t>(word >> 32) - run_.epoch) >= 0;
}

bool SegmentFeed::IsNode(const core::SegmentStep& step) const {
  if (step.cut != core::SegmentStep::kOwn || run_.workers == nullptr) return false;
  if (step.begin >= run_.block_tasks_ns.size() || run_.block_tasks_ns[step.begin] <= 0)
    return false;
  return run_.evicts_workers || rest_ns_ > 0;
}

// The word may keep workers, and a graph keeps none. A newer word stays as it is.
void SegmentFeed::KeepNoWorkers() {
  constexpr uint64_t kKeep = 0xffffffff;
  uint64_t word = run_.eviction_word->load(std::memory_order_acquire);
  while (
      Evicts(word) && (word & kKeep) != 0 &&
      !run_.eviction_word->compare_exchange_weak(word, word & ~kKeep, std::memory_order_acq_rel)) {
  }
}

// The workers of the oldest launch have left, with all block tasks done or with some left.
CUresult SegmentFeed::EndNode(const DriverApi& api, CUstream stream) {
  const size_t segment = oldest().end - 1;
  const NodeWorkers::Ended ended =
      run_.workers->EndOfNode(*run_.lane, run_, segment, node_launches_);
  if (!ended.known) return CUDA_ERROR_UNKNOWN;
  if (ended.block_tasks_left > 0) {
    const double share = static_cast<double>(ended.block_tasks_left) /
                         static_cast<double>(std::max<int64_t>(1, ended.block_tasks));
    const auto whole_ns = static_cast<double>(run_.durations_ns[segment]);
    rest_ns_ = std::max<int64_t>(1, static_cast<int64_t>(share * whole_ns));
    next_.store(segment, std::memory_order_relaxed);
  } else if (finished() && run_.signal != nullptr) {
    signal_error_ = api.cuEventRecord(run_.signal, stream);
  }
  return CUDA_SUCCESS;
}

int64_t SegmentFeed::LongestNs() const {
  return run_.longest_ns == nullptr ? 0 : run_.longest_ns->load(std::memory_order_relaxed);
}

core::SegmentStep SegmentFeed::NextStep() const {
  const size_t since = next() + (rest_ns_ > 0 ? 1 : 0);  // a group would begin at the first node
  return core::StepAt(run_.longer, next(), since, run_.segments.size(), LongestNs());
}

int64_t SegmentFeed::DurationOf(const core::SegmentStep& step) const {
  if (rest_ns_ > 0 && step.begin == next()) return rest_ns_;
  if (run_.durations_ns.empty())
    return static_cast<int64_t>(step.end - step.begin) * run_.segment_ns;
  int64_t sum_ns = 0;
  for (size_t i = step.begin; i < step.end; ++i) sum_ns += run_.durations_ns[i];
  return sum_ns;
}

bool SegmentFeed::HasRoom(const core::SegmentStep& step) const {
  if (finished() || outstanding() >= kOutstanding) return false;
  if (outstanding() == 0) return true;
  core::SegmentLoad on_device;
  for (size_t i = reached_; i < launched_; ++i) {
    const Outstanding& launch = outstanding_[i % kOutstanding];
    on_device.duration_ns += launch.duration_ns;
    on_device.evictable = on_device.evictable || launch.is_node;
  }
  return core::JoinsOutstanding(on_device, {DurationOf(step), IsNode(step)},
                                core::LengthInForce(run_.segment_ns, LongestNs()));
}

CUresult SegmentFeed::LaunchStep(const DriverApi& api, CUstream stream,
                                 const core::SegmentStep& step) {
  const bool is_own = step.cut == core::SegmentStep::kOwn;
  const bool is_node = IsNode(step);
  CUresult code = CUDA_SUCCESS;
  if (is_node) {
    code = run_.workers->LaunchNode(*run_.lane, run_, step.begin, rest_ns_ == 0, ++node_launches_);
  } else {
    const CUgraphExec instance =
        is_own ? run_.segments[step.begin] : run_.groups[step.cut][step.group];
    code = api.cuGraphLaunch(instance, stream);
  }
  if (code != CUDA_SUCCESS) return code;
  // From here on the segments run, whatever the driver answers.
  const size_t launch = launched_++;
  outstanding_[launch % kOutstanding] = {step.end, DurationOf(step), is_own, is_node};
  rest_ns_ = 0;
  next_.store(step.end, std::memory_order_relaxed);
  // Workers may leave before the graph is done.
  if (finished() && !is_node && run_.signal != nullptr) {
    signal_error_ = api.cuEventRecord(run_.signal, stream);
  }
  code = api.cuEventRecord(events_[launch % kOutstanding], stream);
  if (code == CUDA_SUCCESS) recorded_ = launched_;
  return code;
}

CUresult SegmentFeed::Feed(const DriverApi& api, CUstream stream) {
  for (;;) {
    if (finished()) return CUDA_SUCCESS;
    const core::SegmentStep step = NextStep();
    if (!HasRoom(step) || IsEvicted()) return CUDA_SUCCESS;
    if (const CUresult code = LaunchStep(api, stream, step); code != CUDA_SUCCESS) return code;
  }
}

CUresult SegmentFeed::Start(const DriverApi& api, CUstream stream, const SegmentRun& run,
                            core::TimeNs now_ns) {
  run_ = run;
  next_.store(run.first, std::memory_order_relaxed);
  launched_ = reached_ = recorded_ = 0;
  error_ = signal_error_ = CUDA_SUCCESS;
  looked_ns_ = last_end_ns_ = now_ns;
  longest_ns_ = 0;
  rest_ns_ = run.rest_ns;
  if (const CUresult code = Feed(api, stream); code != CUDA_SUCCESS) {
    if (launched_ == 0) return code;
    error_ = code;
  }
  busy_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

bool SegmentFeed::Drained(const DriverApi& api, CUstream stream) const {
  if (IsSticky(error_)) return true;
  CUresult code = api.cuStreamQuery(stream);
  // A stream that is captured answers with an error. The last segment's event answers for it, if it
  // was recorded; if not, the lane hangs until its limit, because the segment may still run.
  const bool answers = code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY || IsSticky(code);
  if (!answers && recorded_ == launched_) {
    code = outstanding() == 0 ? CUDA_SUCCESS
                              : api.cuEventQuery(events_[(recorded_ - 1) % kOutstanding]);
  }
  return code == CUDA_SUCCESS || IsSticky(code);
}

// Measures the oldest launch, which has ended since the host last looked. Five kinds are not
// measured: groups of segments; workers, which may have left; the first one if it may have waited
// for work on the lane; those of a run that is evicted, because they wait for LC work; and those
// whose end the host saw late.
void SegmentFeed::Measure(core::TimeNs now_ns) {
  const int64_t took_ns = now_ns - std::exchange(last_end_ns_, now_ns);
  if (!oldest().is_own || oldest().is_node || (reached_ == 0 && !run_.starts_at_once)) return;
  if (IsEvicted() || now_ns - looked_ns_ > took_ns / kLateLook) return;
  longest_ns_ = std::max(longest_ns_, took_ns);
}

core::TimeNs SegmentFeed::NextLookNs(core::TimeNs now_ns) const {
  constexpr uint64_t kMeasuredLaunches = 16;
  if (error_ != CUDA_SUCCESS || outstanding() == 0) return now_ns + core::kNapNsMin;
  if (AwaitsWorkers() && IsEvicted()) return now_ns;  // they leave within a block task
  const bool is_known = !run_.durations_ns.empty();
  const bool is_own = oldest().is_own;
  if (!is_known && is_own && run_.sequence % kMeasuredLaunches == 1) return now_ns;
  int64_t duration_ns = oldest().duration_ns;
  if (!is_known && !is_own) duration_ns = duration_ns / run_.segment_ns * run_.mean_ns;
  const core::TimeNs end_ns = last_end_ns_ + duration_ns;
  const int64_t margin_ns = duration_ns / core::kBeLookShare;
  if (now_ns < end_ns - margin_ns) return end_ns - margin_ns;
  if (now_ns < end_ns + margin_ns) return now_ns;
  // A group takes as long as many segments, and is seen as soon as one of them.
  int64_t taken_ns = now_ns - last_end_ns_;
  if (!is_own) taken_ns = std::min(taken_ns, run_.segment_ns);
  return now_ns + std::max(core::kNapNsMin, taken_ns / core::kBeLookShare);
}

bool SegmentFeed::Advance(const DriverApi& api, CUstream stream, core::TimeNs now_ns) {
  if (error_ != CUDA_SUCCESS) return Drained(api, stream);
  if (AwaitsWorkers() && IsEvicted()) KeepNoWorkers();
  while (outstanding() > 0) {
    const CUresult code = api.cuEventQuery(events_[reached_ % kOutstanding]);
    if (code == CUDA_ERROR_NOT_READY) break;
    if (code != CUDA_SUCCESS) {
      error_ = code;
      return Drained(api, stream);
    }
    Measure(now_ns);
    if (oldest().is_node) error_ = EndNode(api, stream);
    ++reached_;
    if (error_ != CUDA_SUCCESS) return Drained(api, stream);
  }
  looked_ns_ = now_ns;
  error_ = Feed(api, stream);
  if (error_ != CUDA_SUCCESS) return Drained(api, stream);
  return outstanding() == 0 && (finished() || IsEvicted());
}

}  // namespace gpushare::cuda
