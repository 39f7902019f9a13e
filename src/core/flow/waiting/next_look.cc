// What runs, as expected ends. See next_look.h.

#include "src/core/flow/waiting/next_look.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "src/core/base/tuning.h"
#include "src/core/flow/verbs/predict_task.h"

namespace gpushare::core {
namespace {

// The LC launches of one lane, which run in order.
struct LaneOrder {
  const Task* first = nullptr;
  int64_t query_ns = 0;  // of the launches that belong to the first one's explicit query
  int launches = 0;      // how many these are
};

bool IsBefore(const Task& task, const Task* other) {
  return other == nullptr || task.progress.sequence < other->progress.sequence;
}

// The tasks of an explicit query count as one launch: an intermediate end is of no hurry. It is
// still looked for every kQueryLookNs.
TimeNs NextLcLook(const Flow& flow, TimeNs now_ns, int64_t wake_latency_ns) {
  std::array<LaneOrder, kMaxLanes> lanes;
  for (const Task* task : flow.running_lc) {
    if (task->progress.parts.empty()) continue;
    LaneOrder& lane = lanes[static_cast<size_t>(task->progress.parts[0].lane)];
    if (IsBefore(*task, lane.first)) lane.first = task;
  }
  for (const Task* task : flow.running_lc) {
    if (task->progress.parts.empty()) continue;
    const Part& part = task->progress.parts[0];
    LaneOrder& lane = lanes[static_cast<size_t>(part.lane)];
    const QuerySlot* const query = lane.first->explicit_query;
    if (task != lane.first && (query == nullptr || task->explicit_query != query)) continue;
    lane.query_ns += static_cast<int64_t>(static_cast<double>(RemainingOf(*task).duration_ns) /
                                          SpeedOn(flow, *task, part.place));
    ++lane.launches;
  }
  TimeNs next_ns = kNever;
  for (const LaneOrder& lane : lanes) {
    if (lane.first == nullptr) continue;
    const Task& task = *lane.first;
    const Part& part = task.progress.parts[0];
    ExpectedEnd expected;
    expected.start_ns = std::max(part.launched_ns, flow.lanes.lane(part.lane).progress_ns);
    expected.end_ns = expected.start_ns + lane.query_ns;
    expected.error_ns = task.progress.predicted.error_ns * lane.launches;
    expected.known = task.progress.predicted.trained;
    expected.urgent = IsLc(task);
    TimeNs look_ns = LookAt(expected, now_ns, wake_latency_ns);
    if (lane.launches > 1) look_ns = std::min(look_ns, now_ns + kQueryLookNs);
    next_ns = std::min(next_ns, look_ns);
  }
  return next_ns;
}

// An evicted part ends when its eviction ends. The end of a launch in segments is seen
// by the device, which says when it wants to look.
TimeNs LookForLeaving(const Task& task, const Part& part, TimeNs now_ns, int64_t wake_latency_ns) {
  if (part.form == Form::kSegments) return kNever;
  if (part.eviction_seen_ns == 0) return now_ns;  // the next look sees it
  ExpectedEnd expected;
  expected.start_ns = part.eviction_seen_ns;
  expected.end_ns = part.eviction_seen_ns + task.progress.eviction_p99_ns;
  expected.known = true;
  return LookAt(expected, now_ns, wake_latency_ns);
}

// A slice ends long before its task. The policy decides what follows it, so its end is urgent.
TimeNs LookForSlice(const Flow& flow, const Task& task, const Part& part, TimeNs now_ns,
                    int64_t wake_latency_ns) {
  const int64_t blocks_left =
      std::max<int64_t>(1, task.work.block_tasks - task.progress.blocks_done);
  const double share =
      std::min(1.0, static_cast<double>(part.blocks_asked) / static_cast<double>(blocks_left));
  const double scale = share / SpeedOn(flow, task, part.place);
  const Prediction left = RemainingOf(task);
  ExpectedEnd expected;
  expected.start_ns = std::max(part.launched_ns, flow.lanes.lane(part.lane).progress_ns);
  expected.end_ns =
      expected.start_ns + static_cast<int64_t>(static_cast<double>(left.duration_ns) * scale);
  expected.error_ns = static_cast<int64_t>(static_cast<double>(left.error_ns) * scale);
  expected.known = left.trained;
  expected.urgent = true;
  return LookAt(expected, now_ns, wake_latency_ns);
}

// The parts share the task's block tasks: with speeds s and launches at l, work W ends at
// (W + sum s l) / sum s.
TimeNs NextBeLook(const Flow& flow, const Task& task, TimeNs now_ns, int64_t wake_latency_ns) {
  TimeNs next_ns = kNever;
  double speeds = 0;
  double weighted_ns = 0;  // of the starts, from the first one
  TimeNs first_ns = kNever;
  for (const Part& part : task.progress.parts) first_ns = std::min(first_ns, part.launched_ns);
  for (const Part& part : task.progress.parts) {
    if (task.progress.eviction_p99_ns != kNever && IsLeaving(flow.gate, part)) {
      next_ns = std::min(next_ns, LookForLeaving(task, part, now_ns, wake_latency_ns));
      continue;
    }
    if (part.form == Form::kSlice) {
      if (part.launched_ns != first_ns) continue;  // behind another one
      next_ns = std::min(next_ns, LookForSlice(flow, task, part, now_ns, wake_latency_ns));
      continue;
    }
    const TimeNs start_ns = std::max(part.launched_ns, flow.lanes.lane(part.lane).progress_ns);
    const double speed = SpeedOn(flow, task, part.place) * RoomSpeed(flow, task, part);
    speeds += speed;
    weighted_ns += speed * static_cast<double>(start_ns - first_ns);
  }
  if (!(speeds > 0)) return next_ns;
  const Prediction left = RemainingOf(task);
  ExpectedEnd expected;
  expected.start_ns = first_ns;
  expected.end_ns = first_ns + static_cast<int64_t>(
                                   (static_cast<double>(left.duration_ns) + weighted_ns) / speeds);
  expected.error_ns = static_cast<int64_t>(static_cast<double>(left.error_ns) / speeds);
  expected.known = left.trained;
  return std::min(next_ns, LookAt(expected, now_ns, wake_latency_ns));
}

}  // namespace

TimeNs LookAt(const ExpectedEnd& expected, TimeNs now_ns, int64_t wake_latency_ns) {
  const int64_t duration_ns = std::max<int64_t>(0, expected.end_ns - expected.start_ns);
  const int64_t most_ns = expected.urgent ? duration_ns / 2 : duration_ns / kBeSpinShare;
  const auto share_ns = static_cast<int64_t>(static_cast<double>(duration_ns) * kLcEarlyShare);
  const int64_t least_ns = expected.urgent ? std::min(share_ns, kWakeLatencyNsMax) : 0;
  const int64_t early_ns =
      std::min(std::max(wake_latency_ns, least_ns) + 2 * expected.error_ns, most_ns);
  const int64_t late_ns = expected.urgent ? std::max(kLcSpinNs, duration_ns / kLcSpinShare)
                                          : duration_ns / kBeSpinShare;
  const int64_t longest_ns = expected.urgent ? kLcLookNsMax : kBeLookNsMax;
  if (expected.known && now_ns < expected.end_ns - early_ns) {
    return std::min(expected.end_ns - early_ns, now_ns + longest_ns);
  }
  if (expected.known && now_ns < expected.end_ns + late_ns) return now_ns;
  const int64_t taken_ns = std::max<int64_t>(0, now_ns - expected.start_ns);
  const int64_t step_ns = taken_ns / (expected.urgent ? kLcLookShare : kBeLookShare);
  if (step_ns < kNapNsMin) return expected.urgent ? now_ns : now_ns + kNapNsMin;
  return now_ns + std::min(step_ns, kBeLookNsMax);
}

TimeNs NextLook(const Flow& flow, TimeNs now_ns, int64_t wake_latency_ns) {
  TimeNs next_ns = NextLcLook(flow, now_ns, wake_latency_ns);
  for (const Task* task : flow.running_be) {
    next_ns = std::min(next_ns, NextBeLook(flow, *task, now_ns, wake_latency_ns));
  }
  return next_ns;
}

}  // namespace gpushare::core
