// Ranges of task sets. See task_set.h.

#include "src/models/partition/task_set.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/status.h"

namespace gpushare::models::partition {
namespace {

absl::Status CheckTime(const Task& task, absl::string_view field, int64_t value, int64_t least,
                       int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Task '", task.name, "' has ", field, " ", value,
                                                 ", and it must be ", least, " to ", most, "."));
}

absl::Status CheckCurve(const Task& task, absl::string_view field,
                        const std::vector<WorstCase>& curve, int32_t sms) {
  int32_t before = 0;
  for (const WorstCase& point : curve) {
    if (point.sms <= before || point.sms > sms) {
      return absl::InvalidArgumentError(
          absl::StrCat("Task '", task.name, "' has ", field, " at ", point.sms, " SMs after ",
                       before, ", and the SMs must rise and be at most the device's ", sms, "."));
    }
    before = point.sms;
    GPUSHARE_RETURN_IF_ERROR(CheckTime(task, absl::StrCat(field, " at ", point.sms, " SMs of"),
                                       point.ns, 1, kTaskNsMax));
  }
  return absl::OkStatus();
}

absl::Status CheckTask(const Task& task, int32_t sms) {
  GPUSHARE_RETURN_IF_ERROR(CheckTime(task, "period_ns", task.period_ns, 1, kTaskNsMax));
  GPUSHARE_RETURN_IF_ERROR(CheckTime(task, "deadline_ns", task.deadline_ns, 1, task.period_ns));
  GPUSHARE_RETURN_IF_ERROR(CheckTime(task, "eviction_ns", task.eviction_ns, 0, kTaskNsMax));
  GPUSHARE_RETURN_IF_ERROR(CheckTime(task, "resume_ns", task.resume_ns, 0, kTaskNsMax));
  if (task.alone.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Task '", task.name,
                     "' has no worst case, and it needs one for at least one number of SMs."));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckCurve(task, "a worst case", task.alone, sms));
  GPUSHARE_RETURN_IF_ERROR(CheckCurve(task, "a worst case in conflict", task.in_conflict, sms));
  if (!(task.neighbour_factor >= 1) || task.neighbour_factor > kNeighbourFactorMax) {
    return absl::InvalidArgumentError(absl::StrCat("Task '", task.name, "' has neighbour_factor ",
                                                   task.neighbour_factor, ", and it must be 1 to ",
                                                   kNeighbourFactorMax, "."));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<WorstCase> WorstCasesOfLine(double a_ns, double b_ns, int32_t sms) {
  std::vector<WorstCase> curve;
  curve.reserve(static_cast<size_t>(sms));
  for (int32_t m = 1; m <= sms; ++m) {
    curve.push_back({.sms = m, .ns = static_cast<int64_t>(std::ceil(a_ns / m + b_ns))});
  }
  return curve;
}

absl::Status Check(const TaskSet& set) {
  if (set.sms < 1 || set.sms > kSmsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("The device has ", set.sms, " SMs, and it must have 1 to ", kSmsMax, "."));
  }
  if (set.grain < 1 || set.grain > set.sms) {
    return absl::InvalidArgumentError(absl::StrCat("A partition has a multiple of ", set.grain,
                                                   " SMs, and that must be 1 to the device's ",
                                                   set.sms, "."));
  }
  if (set.tasks.empty() || set.tasks.size() > kTasksMax) {
    return absl::InvalidArgumentError(absl::StrCat("The set has ", set.tasks.size(),
                                                   " tasks, and it must have 1 to ", kTasksMax,
                                                   "; plan parts of it by themselves."));
  }
  std::set<absl::string_view> names;
  for (const Task& task : set.tasks) {
    GPUSHARE_RETURN_IF_ERROR(CheckTask(task, set.sms));
    if (!names.insert(task.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Two tasks have the name '", task.name, "', and names must differ."));
    }
  }
  return absl::OkStatus();
}

}  // namespace gpushare::models::partition
