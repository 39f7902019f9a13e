// Runs of a graph in its places. See measured_places.h.

#include "src/cuda/graphs/measured_places.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/cuda/graphs/timed_run.h"

namespace gpushare::cuda {
namespace {

// Runs of each instance; the shortest counts.
constexpr int kTimedRuns = 3;
// The distance between the places that are measured first. Places are numbered in the order of
// their sizes, so these sizes are far apart.
constexpr core::PlaceIndex kFirstStride = 8;
// Choosing an instance for the whole device takes at most a fourth of kMeasurePlacesNs: the places
// need the rest.
constexpr int64_t kChoiceShare = 4;

}  // namespace

bool MeasuredPlaces::HasTime() const { return spent_ns_ <= core::kMeasurePlacesNs; }

absl::StatusOr<int64_t> MeasuredPlaces::TimeIn(core::PlaceIndex place, CUgraphExec instance) {
  absl::StatusOr<CUstream> stream = places_.MakeStream(place, 0);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<int64_t> ns = TimeInstance(api_, instance, *stream, kTimedRuns);
  api_.cuStreamDestroy(*stream);
  if (ns.ok()) spent_ns_ += *ns * kTimedRuns;
  return ns;
}

absl::Status MeasuredPlaces::MeasureIn(core::PlaceIndex place) {
  const int32_t sms = places_.place(place).sms;
  CUgraphExec instance = instances_[static_cast<size_t>(place)].load();
  if (instance == nullptr || duration_ns_.count(sms) != 0) return absl::OkStatus();
  const absl::StatusOr<int64_t> ns = TimeIn(place, instance);
  if (ns.ok()) duration_ns_[sms] = *ns;
  return ns.status();
}

absl::Status MeasuredPlaces::Measure(const MakeInstance& make) {
  absl::Status status = MeasureIn(core::kWholeDevice);
  const bool is_short = spent_ns_ * core::kInstancesTried <= core::kMeasurePlacesNs / kChoiceShare;
  if (status.ok() && is_short) status = KeepFastestIn(core::kWholeDevice, make);
  for (core::PlaceIndex stride = kFirstStride; stride > 0; stride /= 2) {
    for (core::PlaceIndex place = stride; place < places_.count(); place += stride) {
      if (!status.ok() || !HasTime() || duration_ns_.size() >= core::kMaxSpeedPoints) break;
      status = MeasureIn(place);
    }
  }
  for (core::PlaceIndex place : LargestFirst()) {
    if (!status.ok() || !HasTime()) break;
    status = KeepFastestIn(place, make);
  }
  return status;
}

std::vector<core::PlaceIndex> MeasuredPlaces::LargestFirst() const {
  std::vector<core::PlaceIndex> order;
  for (core::PlaceIndex place = core::kWholeDevice + 1; place < places_.count(); ++place) {
    order.push_back(place);
  }
  std::stable_sort(order.begin(), order.end(), [&](core::PlaceIndex a, core::PlaceIndex b) {
    return places_.place(a).sms > places_.place(b).sms;
  });
  return order;
}

// Keeps all instances until one is chosen: a new instance would get the memory of a destroyed one,
// and so its speed.
absl::Status MeasuredPlaces::KeepFastestIn(core::PlaceIndex place, const MakeInstance& make) {
  CUgraphExec first = instances_[static_cast<size_t>(place)].load();
  if (make == nullptr || first == nullptr) return absl::OkStatus();
  std::vector<CUgraphExec> tried = {first};
  absl::Status status;
  while (tried.size() < static_cast<size_t>(core::kInstancesTried)) {
    const absl::StatusOr<CUgraphExec> other = make(place);
    if (absl::IsDataLoss(other.status())) status = other.status();
    // Without memory for another instance, chooses among those that there are.
    if (!other.ok() || *other == nullptr) break;
    tried.push_back(*other);
  }
  if (status.ok() && tried.size() > 1) status = KeepFastest(tried, place);
  if (absl::IsDataLoss(status)) return status;  // no call to a device that is lost
  for (CUgraphExec instance : tried) {
    if (instance != instances_[static_cast<size_t>(place)]) api_.cuGraphExecDestroy(instance);
  }
  return status;
}

absl::Status MeasuredPlaces::KeepFastest(const std::vector<CUgraphExec>& tried,
                                         core::PlaceIndex place) {
  int64_t shortest_ns = core::kNever;
  for (CUgraphExec instance : tried) {
    const absl::StatusOr<int64_t> ns = TimeIn(place, instance);
    if (!ns.ok()) return ns.status();
    if (*ns >= shortest_ns) continue;
    shortest_ns = *ns;
    instances_[static_cast<size_t>(place)].store(instance, std::memory_order_release);
  }
  const auto known = duration_ns_.find(places_.place(place).sms);
  if (known != duration_ns_.end()) known->second = std::min(known->second, shortest_ns);
  return absl::OkStatus();
}

std::vector<core::SpeedPoint> MeasuredPlaces::Speeds() const {
  std::vector<core::SpeedPoint> speeds;
  const auto whole = duration_ns_.find(places_.place(core::kWholeDevice).sms);
  if (whole == duration_ns_.end()) return speeds;
  for (const auto& [sms, ns] : duration_ns_) {
    speeds.push_back({sms, static_cast<double>(whole->second) / static_cast<double>(ns)});
  }
  return speeds;
}

}  // namespace gpushare::cuda
