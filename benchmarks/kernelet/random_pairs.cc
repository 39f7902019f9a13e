#include "benchmarks/kernelet/random_pairs.h"

#include <gpushare/gpushare_policy.h>

#include <algorithm>
#include <array>
#include <vector>

#include "benchmarks/harness/failure.h"

namespace gpushare::kernelet {

namespace {

struct PendingTask {
  const gpushare_head_view* view = nullptr;
  bool running = false;
};
struct Choice {
  std::array<const PendingTask*, 2> tasks = {};  // the second null: the first alone
  std::array<int32_t, 2> workers_per_sm = {};
};

// In order of submission, which no launch changes.
std::vector<PendingTask> PendingTasks(const gpushare_snapshot& snapshot) {
  std::vector<PendingTask> tasks;
  for (uint32_t i = 0; i < snapshot.running_count; ++i) {
    const auto* running =
        GPUSHARE_AT(gpushare_running_view, snapshot.running, snapshot.running_stride, i);
    tasks.push_back({&running->task, true});
  }
  for (uint32_t i = 0; i < snapshot.head_count; ++i) {
    const auto* head = GPUSHARE_AT(gpushare_head_view, snapshot.heads, snapshot.head_stride, i);
    tasks.push_back({head, false});
  }
  std::sort(tasks.begin(), tasks.end(), [](const PendingTask& a, const PendingTask& b) {
    return a.view->sequence < b.view->sequence;
  });
  return tasks;
}

// SplitMix64.
uint64_t Mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

std::vector<Choice> Choices(const gpushare_snapshot& snapshot,
                            const std::vector<PendingTask>& oldest) {
  std::vector<Choice> choices;
  for (size_t i = 0; i < oldest.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool in_row_order = oldest[i].view->overlap_index > oldest[j].view->overlap_index;
      const PendingTask* first = in_row_order ? &oldest[i] : &oldest[j];
      const PendingTask* second = in_row_order ? &oldest[j] : &oldest[i];
      for (int32_t ratio = 0; ratio < GPUSHARE_CO_SCHEDULE_RATIOS; ++ratio) {
        const auto* option = gpushare_co_schedule_at(&snapshot, first->view->overlap_index,
                                                     second->view->overlap_index, ratio);
        if (option == nullptr || option->workers_per_sm[0] == 0) continue;
        choices.push_back(
            {{first, second}, {option->workers_per_sm[0], option->workers_per_sm[1]}});
      }
    }
  }
  return choices;
}

Choice Choose(uint64_t seed, const gpushare_snapshot& snapshot,
              const std::vector<PendingTask>& tasks, std::vector<PendingTask>& oldest) {
  uint64_t hash = Mixed(seed);
  for (const PendingTask& task : tasks) {
    hash = Mixed(hash ^ task.view->sequence);
    const bool known = std::any_of(oldest.begin(), oldest.end(), [&](const PendingTask& other) {
      return other.view->kernel_id == task.view->kernel_id;
    });
    if (!known) oldest.push_back(task);
  }
  const std::vector<Choice> choices = Choices(snapshot, oldest);
  if (choices.empty()) return {{oldest.empty() ? nullptr : oldest.data(), nullptr}, {}};
  return choices[hash % choices.size()];
}

void Launch(const gpushare_head_view& head, int64_t blocks_max, gpushare_plan& plan) {
  gpushare_planned_launch launch = {};
  launch.task = head.task;
  launch.form = blocks_max > 0 ? GPUSHARE_FORM_SLICE : GPUSHARE_FORM_ORIGINAL;
  launch.blocks_max = blocks_max;
  launch.lane_class = GPUSHARE_LANE_PLAIN;
  plan.launches[plan.launch_count++] = launch;
}

void MakePlan(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  const std::vector<PendingTask> tasks = PendingTasks(*snapshot);
  std::vector<PendingTask> oldest;  // of each kernel
  const Choice choice = Choose(*static_cast<const uint64_t*>(user), *snapshot, tasks, oldest);
  for (const PendingTask& task : tasks) {
    const bool chosen = std::any_of(
        choice.tasks.begin(), choice.tasks.end(),
        [&](const PendingTask* of_it) { return of_it != nullptr && of_it->view == task.view; });
    if (task.running && !chosen) return;  // other slices end first
  }
  for (size_t i = 0; i < choice.tasks.size(); ++i) {
    const PendingTask* const task = choice.tasks[i];
    if (task == nullptr || task->running) continue;
    Launch(*task->view, int64_t{choice.workers_per_sm[i]} * snapshot->sm_count, *plan);
  }
}

}  // namespace

Scheduler RandomPairs::Policy() {
  return [this](const Runtime& runtime) {
    PolicyTable table;
    table.version = GPUSHARE_POLICY_VERSION;
    table.name = "random_pairs";
    table.make_plan = MakePlan;
    table.user = const_cast<uint64_t*>(&seed_);
    benchmarks::Require(runtime.SetPolicy(table));
  };
}

}  // namespace gpushare::kernelet
