// Repair. See repair.h.

#include "src/models/partition/repair.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/models/partition/improve.h"

namespace gpushare::models::partition {
namespace {

constexpr int kNew = -1;  // of a task that no partition had before

// The partition of each task before, by its number in the workload.
std::vector<int> HomesOf(const TaskSet& set, const Workload& workload,
                         const std::vector<std::vector<std::string>>& before) {
  std::map<std::string, int> home;
  for (size_t i = 0; i < before.size(); ++i) {
    for (const std::string& name : before[i]) home[name] = static_cast<int>(i);
  }
  std::vector<int> out;
  for (int task = 0; task < workload.tasks(); ++task) {
    const auto at = home.find(set.tasks[static_cast<size_t>(workload.task(task).source)].name);
    out.push_back(at == home.end() ? kNew : at->second);
  }
  return out;
}

// Each partition stands for the one of before that most of its tasks had.
int MovedOf(const std::vector<Partition>& partitions, const std::vector<int>& homes,
            size_t before) {
  int moved = 0;
  for (const Partition& partition : partitions) {
    std::vector<int> count(before, 0);
    int old = 0;
    for (const int32_t task : partition.tasks) {
      if (homes[static_cast<size_t>(task)] == kNew) continue;
      ++count[static_cast<size_t>(homes[static_cast<size_t>(task)])];
      ++old;
    }
    if (old > 0) moved += old - *std::max_element(count.begin(), count.end());
  }
  return moved;
}

// A partition as small as its tasks allow; false: no size does.
bool Resize(Tester& tester, Partition& partition) {
  partition.size = tester.LeastSize(partition.tasks, 1, tester.workload().sizes());
  partition.mode = tester.mode();
  return partition.size > 0;
}

// Puts a task where the sizes grow least; false: it has no size even alone.
bool Join(Tester& tester, int32_t task, std::vector<Partition>& partitions) {
  Partition best = {.tasks = {task}};
  if (!Resize(tester, best)) return false;
  size_t into = partitions.size();
  int growth = best.size;
  for (size_t i = 0; i < partitions.size() && growth > 0; ++i) {
    const Partition& old = partitions[i];
    Partition joined = old;
    joined.tasks.insert(std::lower_bound(joined.tasks.begin(), joined.tasks.end(), task), task);
    const int most = std::min(tester.workload().sizes(), old.size + growth - 1);
    joined.size = tester.LeastSize(joined.tasks, old.size, most);
    if (joined.size == 0) continue;
    joined.mode = tester.mode();
    growth = joined.size - old.size;
    best = std::move(joined);
    into = i;
  }
  if (into == partitions.size()) {
    partitions.push_back(std::move(best));
  } else {
    partitions[into] = std::move(best);
  }
  return true;
}

}  // namespace

Repaired Repair(const TaskSet& set, Tester& tester,
                const std::vector<std::vector<std::string>>& before, const SearchOptions& options) {
  const std::vector<int> homes = HomesOf(set, tester.workload(), before);
  std::vector<Partition> kept(before.size());
  TaskList arrived;
  for (int task = 0; task < tester.workload().tasks(); ++task) {
    const int home = homes[static_cast<size_t>(task)];
    (home == kNew ? arrived : kept[static_cast<size_t>(home)].tasks).push_back(task);
  }
  kept.erase(std::remove_if(kept.begin(), kept.end(),
                            [](const Partition& one) { return one.tasks.empty(); }),
             kept.end());
  bool valid = true;
  for (Partition& partition : kept) valid = valid && Resize(tester, partition);
  for (const int32_t task : arrived) valid = valid && Join(tester, task, kept);

  Repaired out;
  if (valid) {
    out.found.by = "repair";
    if (SizeOf(kept) > options.size_goal) {
      Improve(tester, kept,
              {.size_goal = options.size_goal,
               .tests_max = tester.tests() + (options.tests_max / 2),
               .seed = options.seed});
      out.found.by = "repair, moves";
    }
    out.found.fits = SizeOf(kept) <= options.size_goal;
    out.found.partitions = kept;
    out.found.least_sms = LeastSms(tester);
  }
  if (!out.found.fits) {
    SearchOptions anew = options;
    anew.tests_max += tester.tests();
    out.found = Search(tester, anew);
  }
  out.moved = MovedOf(out.found.partitions, homes, before.size());
  return out;
}

}  // namespace gpushare::models::partition
