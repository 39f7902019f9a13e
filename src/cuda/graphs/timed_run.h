// Executes a graph to time it, with events on the device and a wait that has a limit.
//
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_TIMED_RUN_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_TIMED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class TimingEvents {
 public:
  explicit TimingEvents(const DriverApi& api) : api_(api) {}
  ~TimingEvents();
  TimingEvents(const TimingEvents&) = delete;
  TimingEvents& operator=(const TimingEvents&) = delete;

  absl::Status Make(size_t count);
  CUevent operator[](size_t i) const { return events_[i]; }
  // The time from event i to event i + 1 in ns, at least 1.
  absl::StatusOr<int64_t> NsBehind(size_t i) const;

 private:
  const DriverApi& api_;
  std::vector<CUevent> events_;
};

// Launches the instance and waits for its end. DEADLINE_EXCEEDED if it does not end within
// kTimedRunMaxNs; the instance then continues to run, on memory of the application.
absl::Status RunToEnd(const DriverApi& api, CUgraphExec exec, CUstream stream);

// The duration of the instance on the stream in ns: the shortest of `runs` runs.
absl::StatusOr<int64_t> TimeInstance(const DriverApi& api, CUgraphExec exec, CUstream stream,
                                     int runs);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_TIMED_RUN_H_
