// When the end of an LC task is near. See spin_window.h.

#include "src/core/flow/verbs/spin_window.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/flow/verbs/predict_task.h"

namespace gpushare::core {

int64_t CallerSpinNs(const SchedulerOptions& options) {
  if (options.caller_spin_ns != 0) return std::max<int64_t>(0, options.caller_spin_ns);
  return options.wait_mode == WaitMode::kSpin ? kCallerSpinModeNs : kCallerSpinNs;
}

SpinWindow SpinWindowOf(TimeNs start_ns, TimeNs end_ns, int64_t error_ns, WaitMode mode,
                        int64_t spin_ns) {
  const int64_t duration_ns = std::max<int64_t>(0, end_ns - start_ns);
  const auto share_ns = static_cast<int64_t>(static_cast<double>(duration_ns) * kLcEarlyShare);
  const int64_t early_ns =
      mode == WaitMode::kSpin ? duration_ns : std::max(share_ns, kCallerEarlyNs) + 2 * error_ns;
  const int64_t late_ns = std::max(kLcSpinNs, duration_ns / kLcSpinShare);
  return {.from_ns = end_ns - std::min(early_ns, spin_ns / 2),
          .until_ns = end_ns + std::min(late_ns, spin_ns / 2)};
}

// The LC tasks of an app run in order: the end of this one is that of all that the app has on the
// device.
void PublishSpinWindow(const Flow& flow, Task& task, const Part& part) {
  const int64_t spin_ns = CallerSpinNs(flow.options);
  if (spin_ns == 0 || !IsLc(task) || task.query == nullptr || !task.progress.predicted.trained) {
    return;
  }
  const LcOnDevice& there = task.app->on_device;
  const bool first = there.issued_ns == task.progress.issued_ns;
  const TimeNs start_ns = first ? part.launched_ns : there.first_since_ns;
  const double left_ns = static_cast<double>(there.issued_ns) / SpeedOn(flow, task, part.place);
  const SpinWindow window =
      SpinWindowOf(start_ns, start_ns + static_cast<TimeNs>(left_ns),
                   task.progress.predicted.error_ns, flow.options.wait_mode, spin_ns);
  task.spin_from_ns.store(window.from_ns, std::memory_order_relaxed);
  task.spin_until_ns.store(window.until_ns, std::memory_order_release);
}

SpinWindow LoadSpinWindow(const Task& task) {
  SpinWindow window;
  window.until_ns = task.spin_until_ns.load(std::memory_order_acquire);
  window.from_ns = task.spin_from_ns.load(std::memory_order_relaxed);
  return window;
}

}  // namespace gpushare::core
