#include "tools/gpushare/events/held_times.h"

#include <algorithm>

namespace gpushare::tool {

namespace {

// The state of one task's holds, as of the events read so far.
struct TaskHold {
  uint32_t app_id = 0;
  bool from_submit = false;  // the log has its submission, and so each of its reasons
  gpushare_reason reason = GPUSHARE_REASON_NONE;  // the last one
  bool held = false;
  int64_t since_ns = 0;
  int launches = 0;  // on the device
};

class HoldClock {
 public:
  void Take(const gpushare_event& event) {
    switch (event.type) {
      case GPUSHARE_EVENT_SUBMITTED:
        TaskOf(event).from_submit = true;
        break;
      case GPUSHARE_EVENT_HELD:
        Count(TaskOf(event), event.time_ns);
        TaskOf(event).reason = event.reason;
        Begin(TaskOf(event), event.time_ns);
        break;
      case GPUSHARE_EVENT_LAUNCHED:
        Count(TaskOf(event), event.time_ns);
        ++TaskOf(event).launches;
        break;
      case GPUSHARE_EVENT_PART_DONE:
        EndLaunch(TaskOf(event), event);
        break;
      case GPUSHARE_EVENT_COMPLETED:
        Count(TaskOf(event), event.time_ns);
        tasks_.erase(event.id);
        break;
      default:
        break;
    }
  }

  std::map<uint32_t, std::vector<HeldTime>> Finish(int64_t end_ns) {
    for (auto& entry : tasks_) Count(entry.second, end_ns);
    std::map<uint32_t, std::vector<HeldTime>> by_app;
    for (const auto& [app_id, by_reason] : held_ns_) {
      std::vector<HeldTime>& held = by_app[app_id];
      for (const auto& [reason, time_ns] : by_reason) held.push_back({reason, time_ns});
      SortLongestFirst(held);
    }
    return by_app;
  }

 private:
  TaskHold& TaskOf(const gpushare_event& event) {
    TaskHold& task = tasks_[event.id];
    task.app_id = event.app_id;
    return task;
  }

  static void Begin(TaskHold& task, int64_t now_ns) {
    task.held = true;
    task.since_ns = now_ns;
  }

  void Count(TaskHold& task, int64_t now_ns) {
    if (task.held && now_ns > task.since_ns) {
      held_ns_[task.app_id][task.reason] += now_ns - task.since_ns;
    }
    task.held = false;
  }

  static void EndLaunch(TaskHold& task, const gpushare_event& event) {
    constexpr int kEvicted = 1;
    task.launches = std::max(0, task.launches - 1);
    if (task.launches > 0 || task.held || event.detail != kEvicted) return;
    if (task.reason == GPUSHARE_REASON_NONE && task.from_submit) return;  // it was never held
    Begin(task, event.time_ns);
  }

  std::map<uint64_t, TaskHold> tasks_;
  std::map<uint32_t, std::map<gpushare_reason, int64_t>> held_ns_;
};

}  // namespace

std::map<uint32_t, std::vector<HeldTime>> HeldTimesOf(const std::vector<gpushare_event>& events) {
  HoldClock clock;
  for (const gpushare_event& event : events) {
    if (event.app_class == GPUSHARE_CLASS_BEST_EFFORT) clock.Take(event);
  }
  return clock.Finish(events.empty() ? 0 : events.back().time_ns);
}

}  // namespace gpushare::tool
