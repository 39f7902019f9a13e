// Lemmas 1 to 3. See lemmas.h.

#include "src/models/partition/lemmas.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace gpushare::models::partition {
namespace {

double LeastSmsOf(const Workload& workload, int task, bool conflict) {
  double least = static_cast<double>(kNotRunnableNs);
  for (int size = 1; size <= workload.sizes(); ++size) {
    least = std::min(least, workload.SmsOf(size) * workload.Share(task, size, conflict));
  }
  return least;
}

}  // namespace

double LeastSms(const Tester& tester) {
  const Workload& workload = tester.workload();
  double sum = 0;
  std::array<std::vector<double>, kKinds> extra;  // what a conflict adds to each task
  for (int task = 0; task < workload.tasks(); ++task) {
    const double alone = LeastSmsOf(workload, task, false);
    sum += alone;
    extra[static_cast<size_t>(workload.task(task).kind)].push_back(
        LeastSmsOf(workload, task, true) - alone);
  }
  if (tester.analysis() != Analysis::kConcurrent) return sum;
  for (std::vector<double>& of_kind : extra) {
    std::sort(of_kind.begin(), of_kind.end(), std::greater<>());
    for (size_t i = workload.sizes(); i < of_kind.size(); ++i) sum += of_kind[i];
  }
  return sum;
}

std::vector<Partition> OneEach(Tester& tester, int& unrunnable) {
  std::vector<Partition> out;
  for (int task = 0; task < tester.workload().tasks(); ++task) {
    Partition one = {.tasks = {task}};
    one.size = tester.LeastSize(one.tasks, 1, tester.workload().sizes());
    if (one.size == 0) {
      unrunnable = task;
      return {};
    }
    one.mode = tester.mode();
    out.push_back(std::move(one));
  }
  return out;
}

int SizeOf(const std::vector<Partition>& partitions) {
  int sum = 0;
  for (const Partition& one : partitions) sum += one.size;
  return sum;
}

}  // namespace gpushare::models::partition
