// Feeds a lane with segments. See segment_feed.h.

#include "src/cuda/lanes/segment_feed.h"

#include <algorithm>
#include <utility>

#include "src/core/queueing/segment_blocking.h"
#include "src/cuda/driver/errors.h"

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
  const auto word =
      static_cast<uint32_t>(run_.eviction_word->load(std::memory_order_acquire) >> 32);
  return static_cast<int32_t>(word - run_.epoch) >= 0;
}

bool SegmentFeed::HasRoom() const {
  const size_t outstanding = next() - ended_;
  if (finished() || outstanding >= kOutstanding) return false;
  if (outstanding == 0 || run_.durations_ns.empty()) return true;
  int64_t sum_ns = 0;
  for (size_t segment = ended_; segment < next(); ++segment) sum_ns += run_.durations_ns[segment];
  return core::JoinsOutstanding(sum_ns, run_.durations_ns[next()], run_.segment_ns);
}

CUresult SegmentFeed::LaunchNext(const DriverApi& api, CUstream stream) {
  const size_t segment = next();
  CUresult code = api.cuGraphLaunch(run_.segments[segment], stream);
  if (code != CUDA_SUCCESS) return code;
  // From here on the segment runs, whatever the driver answers.
  next_.store(segment + 1, std::memory_order_relaxed);
  if (finished() && run_.signal != nullptr) signal_error_ = api.cuEventRecord(run_.signal, stream);
  code = api.cuEventRecord(events_[segment % kOutstanding], stream);
  if (code == CUDA_SUCCESS) recorded_ = segment + 1;
  return code;
}

CUresult SegmentFeed::Start(const DriverApi& api, CUstream stream, const SegmentRun& run,
                            core::TimeNs now_ns) {
  run_ = run;
  next_.store(run.first, std::memory_order_relaxed);
  ended_ = run.first;
  recorded_ = run.first;
  error_ = signal_error_ = CUDA_SUCCESS;
  looked_ns_ = last_end_ns_ = now_ns;
  longest_ns_ = 0;
  while (HasRoom() && !IsEvicted()) {
    const CUresult code = LaunchNext(api, stream);
    if (code == CUDA_SUCCESS) continue;
    if (next() == run.first) return code;
    error_ = code;
    break;
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
  if (!answers && recorded_ == next()) {
    code =
        ended_ == next() ? CUDA_SUCCESS : api.cuEventQuery(events_[(recorded_ - 1) % kOutstanding]);
  }
  return code == CUDA_SUCCESS || IsSticky(code);
}

// Measures the oldest segment, which has ended since the host last looked. Three kinds of segments
// are not measured: the first one if it may have waited for work on the lane; those of a run that
// is evicted, because they wait for LC work; and those whose end the host saw late.
void SegmentFeed::Measure(core::TimeNs now_ns) {
  const int64_t took_ns = now_ns - std::exchange(last_end_ns_, now_ns);
  if (ended_ == run_.first && !run_.starts_at_once) return;
  if (IsEvicted() || now_ns - looked_ns_ > took_ns / kLateLook) return;
  longest_ns_ = std::max(longest_ns_, took_ns);
}

core::TimeNs SegmentFeed::NextLookNs(core::TimeNs now_ns) const {
  constexpr uint64_t kMeasuredLaunches = 16;
  if (error_ != CUDA_SUCCESS || ended_ == next()) return now_ns + core::kNapNsMin;
  if (run_.sequence % kMeasuredLaunches == 1) return now_ns;
  const int64_t segment_ns =
      run_.durations_ns.empty() ? run_.segment_ns : run_.durations_ns[ended_];
  const core::TimeNs end_ns = last_end_ns_ + segment_ns;
  const int64_t margin_ns = segment_ns / core::kBeLookShare;
  if (now_ns < end_ns - margin_ns) return end_ns - margin_ns;
  if (now_ns < end_ns + margin_ns) return now_ns;
  return now_ns + std::max(core::kNapNsMin, (now_ns - last_end_ns_) / core::kBeLookShare);
}

bool SegmentFeed::Advance(const DriverApi& api, CUstream stream, core::TimeNs now_ns) {
  if (error_ != CUDA_SUCCESS) return Drained(api, stream);
  while (ended_ < next()) {
    const CUresult code = api.cuEventQuery(events_[ended_ % kOutstanding]);
    if (code == CUDA_ERROR_NOT_READY) break;
    if (code != CUDA_SUCCESS) {
      error_ = code;
      return Drained(api, stream);
    }
    Measure(now_ns);
    ++ended_;
  }
  looked_ns_ = now_ns;
  while (HasRoom() && !IsEvicted()) {
    error_ = LaunchNext(api, stream);
    if (error_ != CUDA_SUCCESS) return Drained(api, stream);
  }
  return ended_ == next() && (finished() || IsEvicted());
}

}  // namespace gpushare::cuda
