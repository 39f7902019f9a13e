// The answers of the recorded device. See replay_device.h.

#include "src/core/replay/replay_device.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/core/base/tuning.h"
#include "src/core/seams/graph_cut.h"

namespace gpushare::core {
namespace {

// Whether the complete stage appends the event while it handles the completions of one poll.
bool IsFromCompletion(EventType type) {
  return type == EventType::kPartDone || type == EventType::kCompleted ||
         type == EventType::kQueryEnded;
}

absl::Status Blocked(LaneIndex lane) {
  return absl::DeadlineExceededError(
      absl::StrCat("Evictions on lane ", lane, " were blocked in the recorded run."));
}

}  // namespace

ReplayDevice::ReplayDevice(const DeviceCapabilities& capabilities, const Comparison& comparison,
                           uint64_t blocked_lanes)
    : capabilities_(capabilities), comparison_(comparison), blocked_lanes_(blocked_lanes) {
  capabilities_.virtual_time = true;
  for (const EventRecord& record : comparison.log()) {
    const EventType type = TypeOf(record);
    if (type == EventType::kLaunched || type == EventType::kFastPathLaunched) {
      launched_.insert(Decode<Launched>(record).launch.value);
    }
  }
  // A log that began after the setup does not say when that was: a run in virtual time makes its
  // apps at 0.
  now_ns_.store(comparison.skips_setup() ? 0 : comparison.log()[0].time_ns);
}

GraphCut ReplayDevice::CutOf(const KernelDesc& graph) const {
  GraphCut cut = CutOfRecord(graph);
  for (const EventRecord& record : comparison_.log()) {
    if (TypeOf(record) != EventType::kSubmitted) continue;
    const auto submitted = Decode<Submitted>(record);
    if (submitted.task.kernel != graph.id || submitted.kind != TaskKind::kGraph) continue;
    if (submitted.task.app_class != AppClass::kBestEffort) continue;
    if (submitted.amount != cut.segments) {
      cut = {.segments = static_cast<int32_t>(submitted.amount)};
    }
    break;
  }
  return cut;
}

absl::Status ReplayDevice::DestroyPlace(PlaceIndex place) {
  std::replace(place_of_lane_.begin(), place_of_lane_.end(), place, kNoPlace);
  return absl::OkStatus();
}

absl::StatusOr<LaneIndex> ReplayDevice::CreateLane(const LaneSpec& spec) {
  const auto free = std::find(place_of_lane_.begin(), place_of_lane_.end(), kNoPlace);
  const auto lane = static_cast<LaneIndex>(free - place_of_lane_.begin());
  if (lane == kMaxLanes) return absl::ResourceExhaustedError("The replay has no lane left.");
  if (spec.evictable && (blocked_lanes_ >> lane & 1) != 0) return Blocked(lane);
  *free = spec.place;
  return lane;
}

absl::Status ReplayDevice::ReplaceLane(LaneIndex lane, const LaneSpec& spec) {
  if (comparison_.Going() && TypeOf(comparison_.Next()) == EventType::kDeviceLost) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Lane ", lane, " was not replaced in the recorded run."));
  }
  const bool blocked = (blocked_lanes_ >> lane & 1) != 0;
  return spec.evictable && blocked ? Blocked(lane) : absl::OkStatus();
}

std::optional<int64_t> ReplayDevice::ReadClaims(int32_t counter) {
  int64_t& claims = claims_[static_cast<size_t>(counter)];
  for (size_t ahead = 0; comparison_.Going() && comparison_.HasNext(ahead); ++ahead) {
    const EventRecord& record = comparison_.Next(ahead);
    if (record.time_ns > NowNs() + kReplayedAnswerNs) break;
    if (TypeOf(record) != EventType::kLaneAbandoned) continue;
    const LaneIndex lane = Decode<LaneAbandoned>(record).lane;
    if (lane < 0 || lane >= kMaxLanes) continue;
    if ((lanes_of_counter_[static_cast<size_t>(counter)] >> lane & 1) == 0) continue;
    return record.time_ns > NowNs() ? std::nullopt : std::optional<int64_t>(claims);
  }
  return ++claims;
}

absl::Status ReplayDevice::Launch(const LaunchRequest& request) {
  for (const LaunchPart& part : request.parts) {
    if (part.counter < 0) continue;
    if (part.reset_counter) claims_[static_cast<size_t>(part.counter)] = 0;
    uint64_t& lanes = lanes_of_counter_[static_cast<size_t>(part.counter)];
    lanes = (part.reset_counter ? 0 : lanes) | uint64_t{1} << part.lane;
  }
  if (launched_.count(request.parts[0].launch.value) > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("Launch ", request.parts[0].launch.value,
                                          " was refused by the recorded device, or never made."));
}

size_t ReplayDevice::PollCompletions(absl::Span<DeviceCompletion> out) {
  size_t count = 0;
  if (!comparison_.Going()) return 0;
  delivered_ = std::max(delivered_, comparison_.at());
  for (; count < out.size() && delivered_ < comparison_.size(); ++delivered_) {
    const EventRecord& record = comparison_.Recorded(delivered_);
    if (!IsFromCompletion(TypeOf(record)) || record.time_ns > NowNs()) break;
    if (TypeOf(record) != EventType::kPartDone) continue;
    const auto part = Decode<PartDone>(record);
    DeviceCompletion& completion = out[count++];
    completion = DeviceCompletion();
    completion.launch = part.launch;
    completion.outcome = part.outcome;
    completion.start_ns = part.start_ns;
    completion.end_ns = part.end_ns;
    completion.block_tasks_done = part.block_tasks_done;
    if (completion.outcome == Outcome::kDeviceLost) {
      ++delivered_;
      break;  // what follows is of the lost device
    }
  }
  return count;
}

TimeNs ReplayDevice::NextEventNs() const {
  return comparison_.Going() ? std::max(comparison_.Next().time_ns, NowNs()) : kNever;
}

}  // namespace gpushare::core
