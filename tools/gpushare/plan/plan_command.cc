// Plans and their texts; see plan_command.h.

#include "tools/gpushare/plan/plan_command.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/plan/evaluate_planner.h"
#include "tools/gpushare/plan/task_set_file.h"
#include "tools/gpushare/report/report_style.h"

namespace gpushare::tool {

namespace {

using models::partition::Mode;
using models::partition::PlannedPartition;
using models::partition::PlannedTask;
using models::partition::Task;
using Json = nlohmann::ordered_json;

const char* NameOfMode(Mode mode) {
  switch (mode) {
    case Mode::kPreempt:
      return "preempt";
    case Mode::kRunToEnd:
      return "run-to-end";
    case Mode::kEvict:
      break;
  }
  return "evict";
}

const Task& TaskOf(const Planned& planned, const PlannedTask& task) {
  return planned.set.tasks[static_cast<size_t>(task.source)];
}

Json JsonOf(const Planned& planned, const PlannedPartition& partition) {
  Json tasks = Json::array();
  for (const PlannedTask& task : partition.tasks) {
    tasks.push_back({{"name", task.name},
                     {"period_ns", TaskOf(planned, task).period_ns},
                     {"deadline_ns", TaskOf(planned, task).deadline_ns},
                     {"worst_case_ns", task.worst_ns},
                     {"response_bound_ns", task.response_ns}});
  }
  return {{"sms", partition.sms},
          {"mode", NameOfMode(partition.mode)},
          {"utilisation", partition.utilisation},
          {"tasks", tasks}};
}

std::string TaskRow(const Planned& planned, size_t number, const PlannedPartition& partition,
                    const PlannedTask& task, size_t width) {
  const Task& stated = TaskOf(planned, task);
  std::string row = Format("%-9zu %4d  %-10s  %4.2f  ", number, static_cast<int>(partition.sms),
                           NameOfMode(partition.mode), partition.utilisation);
  row += task.name + std::string(width - task.name.size(), ' ');
  row +=
      Format("  %9s  %9s  %9s  %9s\n", DurationText(static_cast<double>(stated.period_ns)).c_str(),
             DurationText(static_cast<double>(stated.deadline_ns)).c_str(),
             DurationText(static_cast<double>(task.worst_ns)).c_str(),
             DurationText(static_cast<double>(task.response_ns)).c_str());
  return row;
}

constexpr double kMapWidth = 960;
constexpr double kMapLeft = 12;
constexpr double kMapTop = 44;
constexpr double kRowHeight = 16;
// Names below a rectangle; a partition with more has a last line that counts the rest.
constexpr size_t kNamesMax = 12;

std::string MapText(const char* css, double x, double y, const std::string& text) {
  return Format("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", css, x, y) + EscapeHtml(text) +
         "</text>\n";
}

std::string MapOf(const PlannedPartition& partition, size_t number, double x, double width) {
  std::string out =
      Format("<rect class=\"mark s%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"40\"/>\n",
             (number - 1) % 8, x, kMapTop, std::max(1.0, width - 1));
  out += MapText("tick", x + 3, kMapTop - 6, std::to_string(partition.sms));
  // Text is cut by the rectangle's own width, so that neighbours do not overlap.
  out += Format("<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">\n", x, kMapTop + 42,
                std::max(1.0, width - 3), kRowHeight * (kNamesMax + 2));
  for (size_t i = 0; i < std::min(partition.tasks.size(), kNamesMax); ++i) {
    out += MapText("row", 1, kRowHeight * static_cast<double>(i + 1), partition.tasks[i].name);
  }
  if (partition.tasks.size() > kNamesMax) {
    out += MapText("row", 1, kRowHeight * (kNamesMax + 1),
                   Format("and %zu more", partition.tasks.size() - kNamesMax));
  }
  return out + "</svg>\n";
}

}  // namespace

Planned PlanTaskSet(const PlanRequest& request) {
  Planned out = {LoadTaskSet(request.file), request.options, {}};
  auto plan = models::partition::MakePlan(out.set, request.options);
  if (!plan.ok()) throw InputError(request.file + ": " + std::string(plan.status().message()));
  out.plan = *std::move(plan);
  return out;
}

std::string TextOf(const Planned& planned) {
  const auto& plan = planned.plan;
  size_t width = sizeof("task") - 1;
  for (const PlannedPartition& partition : plan.partitions) {
    for (const PlannedTask& task : partition.tasks) width = std::max(width, task.name.size());
  }
  std::string out = "partition  SMs  mode        load  task" + std::string(width - 4, ' ') +
                    "     period   deadline  worst case      bound\n";
  if (!plan.admitted) out.clear();
  for (size_t i = 0; plan.admitted && i < plan.partitions.size(); ++i) {
    for (const PlannedTask& task : plan.partitions[i].tasks) {
      out += TaskRow(planned, i + 1, plan.partitions[i], task, width);
    }
  }
  if (!plan.admitted)
    return "Refused by the " + std::string(NameOf(planned.options.analysis)) + " analysis. " +
           plan.reason + "\n";
  return out +
         Format("Admitted by the %s analysis: %zu partitions with %d of %d SMs, found by %s.\n",
                NameOf(planned.options.analysis), plan.partitions.size(),
                static_cast<int>(plan.sms), static_cast<int>(planned.set.sms), plan.by.c_str());
}

std::string JsonOf(const Planned& planned) {
  const auto& plan = planned.plan;
  Json partitions = Json::array();
  for (const PlannedPartition& one : plan.partitions) partitions.push_back(JsonOf(planned, one));
  const Json out = {{"schema_version", 1},
                    {"admitted", plan.admitted},
                    {"analysis", NameOf(planned.options.analysis)},
                    {"sms", planned.set.sms},
                    {"planned_sms", plan.sms},
                    {"least_sms", plan.least_sms},
                    {"found_by", plan.by},
                    {"reason", plan.reason},
                    {"partitions", partitions}};
  return out.dump(2) + "\n";
}

std::string SvgOf(const Planned& planned) {
  const auto& plan = planned.plan;
  const double height = kMapTop + 42 + (kRowHeight * (kNamesMax + 2));
  std::string out =
      Format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n",
             kMapWidth + (2 * kMapLeft), height);
  out += std::string("<style>") + kChartStyle + "</style>\n";
  out += MapText("head", kMapLeft, 16,
                 Format("%zu partitions with %d of %d SMs", plan.partitions.size(),
                        static_cast<int>(plan.sms), static_cast<int>(planned.set.sms)));
  // A refused partitioning is wider than the device.
  const double per_sm = kMapWidth / std::max<double>(planned.set.sms, plan.sms);
  double x = kMapLeft;
  for (size_t i = 0; i < plan.partitions.size(); ++i) {
    const double width = plan.partitions[i].sms * per_sm;
    out += MapOf(plan.partitions[i], i + 1, x, width);
    x += width;
  }
  out += Format("<rect class=\"axis\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"40\"/>\n",
                kMapLeft, kMapTop, planned.set.sms * per_sm);
  return out + "</svg>\n";
}

}  // namespace gpushare::tool
