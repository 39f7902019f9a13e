// Runs an instance between two events. See timed_run.h.

#include "src/cuda/graphs/timed_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "src/core/base/tuning.h"
#include "src/cuda/driver/await_stream.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

constexpr double kNsPerMs = 1e6;
absl::Status AwaitRun(const DriverApi& api, CUstream stream) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(core::kTimedRunMaxNs);
  const CUresult code = AwaitStream(api, stream, until);
  if (code == CUDA_ERROR_NOT_READY) {
    return absl::DeadlineExceededError(
        absl::StrCat("It was executed to measure it, and did not end within ", core::kTimedRunMaxNs,
                     " ns. It still runs: its memory is in use until the device has ended it."));
  }
  return StatusOf(api, code, "cuStreamQuery(stream)", __FILE__, __LINE__);
}

}  // namespace

TimingEvents::~TimingEvents() {
  for (CUevent event : events_) api_.cuEventDestroy(event);
}

absl::Status TimingEvents::Make(size_t count) {
  while (events_.size() < count) {
    CUevent event = nullptr;
    GPUSHARE_CU_RETURN(api_, cuEventCreate(&event, CU_EVENT_DEFAULT));
    events_.push_back(event);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TimingEvents::NsBehind(size_t i) const {
  float ms = 0;
  GPUSHARE_CU_RETURN(api_, cuEventElapsedTime(&ms, events_[i], events_[i + 1]));
  return std::max<int64_t>(1, std::llround(static_cast<double>(ms) * kNsPerMs));
}

absl::Status RunToEnd(const DriverApi& api, CUgraphExec exec, CUstream stream) {
  GPUSHARE_CU_RETURN(api, cuGraphLaunch(exec, stream));
  return AwaitRun(api, stream);
}

absl::StatusOr<int64_t> TimeInstance(const DriverApi& api, CUgraphExec exec, CUstream stream,
                                     int runs) {
  TimingEvents events(api);
  if (absl::Status status = events.Make(2); !status.ok()) return status;
  int64_t shortest_ns = std::numeric_limits<int64_t>::max();
  for (int run = 0; run < runs; ++run) {
    GPUSHARE_CU_RETURN(api, cuEventRecord(events[0], stream));
    GPUSHARE_CU_RETURN(api, cuGraphLaunch(exec, stream));
    GPUSHARE_CU_RETURN(api, cuEventRecord(events[1], stream));
    if (absl::Status status = AwaitRun(api, stream); !status.ok()) return status;
    const absl::StatusOr<int64_t> took_ns = events.NsBehind(0);
    if (!took_ns.ok()) return took_ns.status();
    shortest_ns = std::min(shortest_ns, *took_ns);
  }
  return shortest_ns;
}

}  // namespace gpushare::cuda
