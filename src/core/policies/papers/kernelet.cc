// kernelet: algorithm 1, one plan (kernelet.h).

#include "src/core/policies/papers/kernelet.h"

#include <algorithm>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/policies/papers/co_schedule.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {
namespace {

using Pending = BoundedList<PendingKernel, kMaxOverlapKernels>;

bool LcIsActive(const Snapshot& snapshot) {
  return std::any_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), [](const LcAppView& app) {
    return app.active_queries > 0 || app.tasks_in_flight > 0;
  });
}

// A slice must be able to leave out the rest. A chain of simulated nodes has no block tasks.
bool RunsInSlices(const HeadView& task) {
  return task.kind == TaskKind::kKernel && task.kernel != nullptr && task.overlap_index >= 0;
}

void AddPending(const HeadView& task, Pending& pending) {
  if (!RunsInSlices(task)) return;
  for (PendingKernel& known : pending) {
    if (known.task->overlap_index != task.overlap_index) continue;
    if (known.second == nullptr) known.second = &task;
    return;
  }
  pending.TryAdd({&task, nullptr});
}

// One plan's BE side.
class Slices {
 public:
  // Beside an LC app a query waits for one slice of each kernel, not for two.
  Slices(const Snapshot& snapshot, Plan& plan)
      : snapshot_(snapshot),
        shares_(snapshot),
        plan_(plan),
        ahead_(snapshot.lc_apps.empty() ? kSlicesAhead : 1) {
    shares_.Order(order_);
    for (const RunningView& running : snapshot.running) {
      if (!IsBeCompute(running.task)) continue;
      ++running_;
      AddPending(running.task, pending_);
      if (!RunsInSlices(running.task)) alone_ = true;
    }
    for (const HeadView* head : order_) AddPending(*head, pending_);
  }

  void PlanCopies() {
    CopySlots slots(snapshot_, shares_);
    for (const HeadView* head : order_) {
      if (head->kind != TaskKind::kMemcpy) continue;
      if (!slots.Free(*head)) {
        plan_.holds.TryAdd(slots.Hold(*head));
      } else if (plan_.launches.TryAdd(MakeLaunch(head->task, Form::kMemcpy, kWholeDevice,
                                                  LaneClass::kCopy, Reason::kFillsGap))) {
        slots.Take(*head);
        shares_.Charge(*head);
      }
    }
  }

  void Hold(Reason reason, int64_t value, int64_t limit) {
    for (const HeadView* head : order_) {
      if (head->kind != TaskKind::kMemcpy && !WasLaunched(*head)) {
        plan_.holds.TryAdd({head->task, reason, value, limit});
      }
    }
  }

  // Algorithm 1 without its loop: whatever ends or arrives asks for the next plan.
  void PlanPair() {
    const HeadView* const next = NextByTurn();
    const HeadView* const overdue = next != nullptr && IsOverdue(*next) ? next : nullptr;
    if (!alone_) {
      if (overdue == nullptr || RunsInSlices(*overdue)) {
        const CoSchedule chosen = FindCoSchedule(snapshot_, pending_.span(), ahead_, overdue);
        if (chosen.tasks[0] != nullptr) {
          LaunchCoSchedule(chosen);
        } else {
          LaunchAlone(overdue);
        }
      } else if (running_ == 0) {
        LaunchWhole(*overdue);
      }
    }
    Hold(Reason::kHoldWindow, running_, kPair);
  }

  // BASE: whole kernels.
  void PlanWhole() {
    for (const HeadView* head : order_) {
      if (head->kind == TaskKind::kMemcpy || running_ >= kPair) continue;
      LaunchWhole(*head);
    }
    Hold(Reason::kHoldWindow, running_, kPair);
  }

 private:
  static constexpr int32_t kPair = 2;

  const HeadView* NextByTurn() const {
    for (const HeadView* head : order_) {
      if (head->kind != TaskKind::kMemcpy) return head;
    }
    return nullptr;
  }

  // The largest profit knows no turns: a kernel that never pairs well would wait for ever.
  bool IsOverdue(const HeadView& head) const {
    const BeAppView& app = snapshot_.be_apps[static_cast<size_t>(head.app)];
    return snapshot_.now_ns - std::max(head.ready_ns, app.served_ns[kSmTime]) > kBeWaitNsMax;
  }

  // Slices of the task on the device, and its launches in other forms.
  int32_t SlicesOf(const HeadView* task) const {
    return PartsOf(task, [](const PartView& part) { return part.form == Form::kSlice; });
  }
  int32_t OthersOf(const HeadView* task) const {
    return PartsOf(task, [](const PartView& part) { return part.form != Form::kSlice; });
  }
  template <class Test>
  int32_t PartsOf(const HeadView* task, Test&& test) const {
    for (const RunningView& running : snapshot_.running) {
      if (&running.task != task) continue;
      return static_cast<int32_t>(std::count_if(running.parts.begin(), running.parts.end(), test));
    }
    return 0;
  }
  bool WasLaunched(const HeadView& head) const {
    return std::any_of(plan_.launches.begin(), plan_.launches.end(),
                       [&](const PlannedLaunch& launch) { return launch.task == head.task; });
  }

  void NoteChoice(const CoSchedule& chosen) {
    const auto pair_of = [](const std::array<const HeadView*, 2>& tasks) {
      return PlannedChoice::PairOf(tasks[0]->kernel->id, tasks[1]->kernel->id);
    };
    PlannedChoice& choice = plan_.choice;
    choice.kind = ChoiceKind::kCoSchedule;
    choice.tasks = {chosen.tasks[0]->task, chosen.tasks[1]->task};
    choice.chosen = pair_of(chosen.tasks);
    choice.value = Millionths(chosen.profit);
    if (chosen.runner_up[0] == nullptr) return;
    choice.runner_up = pair_of(chosen.runner_up);
    choice.runner_up_value = Millionths(chosen.runner_up_profit);
  }

  // Slices that run and are not of this co-schedule get no successor, and others start once each
  // has only its last one: so their ends overlap. Those that are of it go on meanwhile.
  void LaunchCoSchedule(const CoSchedule& chosen) {
    NoteChoice(chosen);
    const bool others_run = OthersRun(chosen);
    for (size_t i = 0; i < chosen.tasks.size(); ++i) {
      if (others_run && SlicesOf(chosen.tasks[i]) == 0) continue;
      Fill(*chosen.tasks[i], int64_t{chosen.blocks_per_sm[i]} * snapshot_.sm_count);
    }
  }

  bool OthersRun(const CoSchedule& chosen) const {
    return std::any_of(
        snapshot_.running.begin(), snapshot_.running.end(), [&](const RunningView& running) {
          const bool of_it =
              std::count(chosen.tasks.begin(), chosen.tasks.end(), &running.task) > 0;
          return IsBeCompute(running.task) && !of_it && (running.parts.size() > 1 || ahead_ == 1);
        });
  }

  // No pair gains: two kernels take turns, slice by slice, so that the end of one overlaps with the
  // beginning of the other's as under BASE. They go on until they end or another one is overdue.
  void LaunchAlone(const HeadView* overdue) {
    const int32_t most = ahead_ == 1 ? 1 : kPair;
    if (overdue == nullptr && running_ <= most) {
      for (const RunningView& running : snapshot_.running) {
        if (!IsBeCompute(running.task)) continue;
        Fill(running.task, SliceAlone(snapshot_, running.task, ahead_));
      }
    }
    for (const HeadView* head : order_) {
      if (head->kind == TaskKind::kMemcpy) continue;
      if (running_ >= most) return;
      if (RunsInSlices(*head)) {
        Fill(*head, SliceAlone(snapshot_, *head, ahead_));
      } else {
        if (running_ == 0) LaunchWhole(*head);
        return;
      }
    }
  }

  // Slices up to as many as may be on the device. The flow leaves out those for which no block task
  // is left. It adds none to workers: those of another policy, or of a task that has a counter.
  void Fill(const HeadView& task, int64_t blocks) {
    if (OthersOf(&task) > 0) return;
    const int32_t there = SlicesOf(&task);
    if (there == 0) ++running_;
    for (int32_t i = there; i < ahead_; ++i) LaunchSlice(task, blocks);
  }

  void LaunchSlice(const HeadView& head, int64_t blocks) {
    PlannedLaunch launch =
        MakeLaunch(head.task, Form::kSlice, kWholeDevice, LaneClass::kPlain, Reason::kFillsGap);
    launch.blocks_max = blocks;
    plan_.launches.TryAdd(launch);
  }

  void LaunchWhole(const HeadView& head) {
    if (plan_.launches.TryAdd(MakeLaunch(head.task, OrdinaryForm(head.kind), kWholeDevice,
                                         LaneClass::kPlain, Reason::kIdleDevice))) {
      ++running_;
    }
  }

  const Snapshot& snapshot_;
  FairShare shares_;
  Plan& plan_;
  BeOrder order_;
  Pending pending_;
  int32_t running_ = 0;
  bool alone_ = false;  // something that runs cannot be sliced
  const int32_t ahead_;
};

// Slices have the plain streams. There LC work of a lower priority would wait behind them, in the
// order of the stream, so every LC app has the streams of the highest priority.
void PublishLcRoutes(const Snapshot& snapshot, Plan& plan) {
  PublishRoutes(snapshot, LcRoute(), plan);
  for (size_t app = 0; app < snapshot.lc_apps.size(); ++app) {
    plan.routes[app].lane_class = LaneClass::kLc;
  }
}

}  // namespace

void KerneletPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  PublishLcRoutes(snapshot, plan);
  const bool lc_first = LaunchLcHeads(snapshot, plan) > 0 || LcIsActive(snapshot);
  Slices slices(snapshot, plan);
  slices.PlanCopies();
  if (lc_first) {
    slices.Hold(Reason::kHoldLcActive, 0, 0);
  } else if (base_) {
    slices.PlanWhole();
  } else {
    slices.PlanPair();
  }
}

}  // namespace gpushare::core
