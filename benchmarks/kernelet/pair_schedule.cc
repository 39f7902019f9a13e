#include "benchmarks/kernelet/pair_schedule.h"

#include <gpushare/gpushare_policy.h>

#include <algorithm>
#include <array>

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernelet/slice_queue.h"

namespace gpushare::kernelet {

namespace {

// A kernel alone: waves of all workers in a slice, so that its gap and tail cost little.
constexpr int64_t kWavesAlone = 16;

struct Chosen {
  std::array<const PendingTask*, 2> tasks = {};  // the second null: the first alone
  std::array<int32_t, 2> workers_per_sm = {};
  double speeds = 0;
};

// In order of submission, which no launch changes.
std::vector<PendingTask> PendingTasks(const gpushare_snapshot& snapshot) {
  std::vector<PendingTask> tasks;
  for (uint32_t i = 0; i < snapshot.running_count; ++i) {
    const auto* running =
        GPUSHARE_AT(gpushare_running_view, snapshot.running, snapshot.running_stride, i);
    tasks.push_back({&running->task, running->part_count});
  }
  for (uint32_t i = 0; i < snapshot.head_count; ++i) {
    const auto* head = GPUSHARE_AT(gpushare_head_view, snapshot.heads, snapshot.head_stride, i);
    tasks.push_back({head, 0});
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

// Two tasks of each kernel at most: the oldest of each. Each app has one kernel.
std::vector<const PendingTask*> OldestTwo(const std::vector<PendingTask>& tasks) {
  std::vector<const PendingTask*> oldest;
  for (const PendingTask& task : tasks) {
    const auto same = std::count_if(oldest.begin(), oldest.end(), [&](const PendingTask* other) {
      return other->view->app == task.view->app;
    });
    if (same < 2) oldest.push_back(&task);
  }
  return oldest;
}

template <class Take>
void ForEachChoice(const PairSchedule::Table& table, const std::vector<const PendingTask*>& tasks,
                   Take&& take) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (size_t j = 0; j < tasks.size(); ++j) {
      // Of two tasks of one kernel in both orders: the ratios of such a pair stand once.
      if (i == j) continue;
      const auto found = table.find({tasks[i]->view->app, tasks[j]->view->app});
      if (found == table.end()) continue;
      for (const PairSchedule::Rated& rated : found->second) {
        take(Chosen{{tasks[i], tasks[j]}, rated.workers, rated.speeds});
      }
    }
  }
}

Chosen Best(const PairSchedule::Table& table, const std::vector<const PendingTask*>& tasks) {
  Chosen best;
  best.speeds = 1;
  ForEachChoice(table, tasks, [&](const Chosen& chosen) {
    if (chosen.speeds > best.speeds) best = chosen;
  });
  return best;
}

Chosen Random(const PairSchedule::Rigged& schedule, const std::vector<PendingTask>& tasks,
              const std::vector<const PendingTask*>& oldest) {
  uint64_t hash = Mixed(schedule.seed);
  for (const PendingTask& task : tasks) hash = Mixed(hash ^ task.view->sequence);
  std::vector<Chosen> choices;
  ForEachChoice(schedule.table, oldest, [&](const Chosen& chosen) { choices.push_back(chosen); });
  return choices.empty() ? Chosen() : choices[hash % choices.size()];
}

// Slices that are not of the pair get no successor, and others start once each has only its last
// one. Those of the pair go on.
void LaunchPair(const Chosen& chosen, const std::vector<PendingTask>& tasks, int32_t sm_count,
                gpushare_plan& plan) {
  const bool others_run = std::any_of(tasks.begin(), tasks.end(), [&](const PendingTask& task) {
    return task.slices > 1 && &task != chosen.tasks[0] && &task != chosen.tasks[1];
  });
  for (size_t i = 0; i < chosen.tasks.size(); ++i) {
    if (others_run && chosen.tasks[i]->slices == 0) continue;
    FillSlices(*chosen.tasks[i], int64_t{chosen.workers_per_sm[i]} * sm_count, plan);
  }
}

// Where no pair gains two kernels take turns, those that run first. `whole`: one that is left runs
// whole.
void LaunchAlone(bool whole, const std::vector<PendingTask>& tasks, int32_t sm_count,
                 gpushare_plan& plan) {
  int32_t left = whole ? 1 : 2;
  for (const bool running : {true, false}) {
    for (const PendingTask& task : tasks) {
      if (left == 0) return;
      if ((task.slices > 0) != running) continue;
      const int64_t wave = int64_t{task.view->workers_per_sm_max} * sm_count;
      FillSlices(task, whole ? 0 : kWavesAlone * wave, plan);
      --left;
    }
  }
}

void MakePlan(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  const auto& schedule = *static_cast<const PairSchedule::Rigged*>(user);
  const std::vector<PendingTask> tasks = PendingTasks(*snapshot);
  if (tasks.empty()) return;
  const std::vector<const PendingTask*> oldest = OldestTwo(tasks);
  const bool random = schedule.choice == PairSchedule::Choice::kRandom;
  const Chosen chosen = random ? Random(schedule, tasks, oldest) : Best(schedule.table, oldest);
  if (chosen.tasks[0] != nullptr) {
    LaunchPair(chosen, tasks, snapshot->sm_count, *plan);
  } else {
    LaunchAlone(random, tasks, snapshot->sm_count, *plan);
  }
}

}  // namespace

PairSchedule::PairSchedule(Choice choice, const std::vector<RatedRatio>& ratios, uint64_t seed)
    : choice_(choice), seed_(seed), ratios_(ratios) {}

Scheduler PairSchedule::For(const std::vector<std::string>& kernels) {
  rigged_.push_back(std::make_unique<Rigged>(Rigged{choice_, seed_, {}}));
  Rigged* const rigged = rigged_.back().get();
  for (const RatedRatio& rated : ratios_) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      for (size_t j = 0; j < kernels.size(); ++j) {
        if (rated.ratio.kernel[0] != kernels[i] || rated.ratio.kernel[1] != kernels[j]) continue;
        rigged->table[{static_cast<int32_t>(i), static_cast<int32_t>(j)}].push_back(
            {rated.ratio.workers, rated.speeds});
      }
    }
  }
  return [rigged](const Runtime& runtime) {
    PolicyTable table;
    table.version = GPUSHARE_POLICY_VERSION;
    table.name = "pair_schedule";
    table.make_plan = MakePlan;
    table.user = rigged;
    benchmarks::Require(runtime.SetPolicy(table));
  };
}

}  // namespace gpushare::kernelet
