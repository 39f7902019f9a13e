// How fast a graph is on the SMs of each place, and which of several instances a place keeps.
//
// Instances of one graph differ for as long as they live: a graph of 672 short nodes takes 1.727 to
// 1.842 ms in twelve of them on an H200 (docs/hardware.md). So a place tries several and keeps the
// one whose shortest run is the shortest.
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_MEASURED_PLACES_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_MEASURED_PLACES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"
#include "src/cuda/driver/driver_api.h"
#include "src/cuda/driver/places.h"

namespace gpushare::cuda {

// The instances of a graph by place; null if a kernel of the graph does not fit the place.
using GraphInstances = std::array<std::atomic<CUgraphExec>, core::kMaxPlaces>;

class MeasuredPlaces {
 public:
  MeasuredPlaces(const DriverApi& api, const Places& places, GraphInstances& instances)
      : api_(api), places_(places), instances_(instances) {}

  // Makes another instance for a place and puts it on the device.
  using MakeInstance = std::function<absl::StatusOr<CUgraphExec>(core::PlaceIndex)>;
  // Runs the graph in each size of place, in places far apart first, so that those for which no
  // time is left lie between two that were measured. With `make` a place keeps the fastest of
  // several instances: the whole device if the graph is short, then, for as long as time is
  // left, the others, the largest first.
  absl::Status Measure(const MakeInstance& make);

  // The speed at each number of SMs that was measured, as a fraction of the speed on the whole
  // device. In the order of SMs.
  std::vector<core::SpeedPoint> Speeds() const;

 private:
  absl::StatusOr<int64_t> TimeIn(core::PlaceIndex place, CUgraphExec instance);
  absl::Status MeasureIn(core::PlaceIndex place);
  absl::Status KeepFastestIn(core::PlaceIndex place, const MakeInstance& make);
  absl::Status KeepFastest(const std::vector<CUgraphExec>& tried, core::PlaceIndex place);
  std::vector<core::PlaceIndex> LargestFirst() const;
  bool HasTime() const;

  const DriverApi& api_;
  const Places& places_;
  GraphInstances& instances_;
  std::map<int32_t, int64_t> duration_ns_;  // by number of SMs: of the fastest instance
  int64_t spent_ns_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_MEASURED_PLACES_H_
