// The table of a run; see warehouse_text.h.

#include <algorithm>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/datacenter/warehouse_text.h"

namespace gpushare::tool {

namespace {

std::string HeadOf(const Warehouse& warehouse, const DatacenterResult& result) {
  const std::string how = result.tables ? Format("drawn from %lld runs of each pair",
                                                 static_cast<long long>(warehouse.table_runs))
                                        : "each simulated";
  return Format("%s on %s%s, tier %s, profile %s, seed %llu\n", warehouse.apps.name.c_str(),
                result.device.name.c_str(), result.device.simulated ? " (SIMULATED)" : "",
                result.tier.c_str(), result.device.profile.c_str(),
                static_cast<unsigned long long>(result.seed)) +
         Format(
             "%lld GPUs, %zu LC apps, %lld BE instances of %zu BE apps one after another for "
             "%s each; %s\n",
             static_cast<long long>(warehouse.gpus), warehouse.apps.lc.size(),
             static_cast<long long>(warehouse.gpus * warehouse.be_per_gpu),
             warehouse.apps.be.size(), DurationText(static_cast<double>(warehouse.slot_ns)).c_str(),
             how.c_str());
}

std::string ExcessText(const Violations& violations) {
  return violations.violated == 0 ? "-" : Format("+%.1f %%", 100 * violations.worst_excess);
}

std::string RowLine(const RowSummary& row) {
  const PaperFigures paper = PaperOf(row.policy, row.placing);
  const auto percent = [](const std::optional<double>& value) {
    return value ? Format("%.1f %%", *value) : std::string("-");
  };
  return Format("%-22s %9s %9s %12s %9s %8s %9s %8s\n", TitleOf(row).c_str(),
                PercentText(row.apps.Share()).c_str(),
                ((paper.violated_is_bound ? "< " : "") + percent(paper.violated)).c_str(),
                ExcessText(row.apps).c_str(), PercentText(row.colocations.Share()).c_str(),
                PercentText(row.late_share_max).c_str(), PercentText(row.be_time).c_str(),
                percent(paper.be_time).c_str());
}

std::string CheckLine(const CheckSummary& check) {
  return Format(
      "%-22s %lld GPUs: violated %lld, checked %lld; p99 differs by %s in the mean, %s at most; "
      "BE time %s, checked %s, one GPU by %.1f points at most\n",
      check.policy.c_str(), static_cast<long long>(check.gpus),
      static_cast<long long>(check.row.apps.violated),
      static_cast<long long>(check.checked.apps.violated),
      PercentText(check.p99_difference_mean).c_str(), PercentText(check.p99_difference_max).c_str(),
      PercentText(check.row.be_time).c_str(), PercentText(check.checked.be_time).c_str(),
      100 * check.be_time_difference_max);
}

}  // namespace

std::string TitleOf(const RowSummary& row) { return row.policy + ", " + NameOf(row.placing); }

std::string PercentText(double share) { return Format("%.1f %%", 100 * share); }

PaperFigures PaperOf(const std::string& policy, Placing placing) {
  const bool random = placing == Placing::kRandom;
  if (policy == "bare" && random) return {55.0, {}};
  if (policy == "priority" && random) return {37.5, {}};
  if (policy == "baymax" && random) return {5.0, 79.9, true};
  if (policy == "baymax") return {{}, 91.3};  // the paper calls these violations negligible
  return {};
}

std::string TableOf(const Warehouse& warehouse, const DatacenterResult& result) {
  std::string out = HeadOf(warehouse, result) + "\n";
  out += Format("%-22s %9s %9s %12s %9s %8s %9s %8s\n", "policy, placement", "LC apps", "Baymax",
                "worst p99", "pairs", "late", "BE time", "Baymax");
  out += Format("%-22s %9s %9s %12s %9s %8s %9s %8s\n", "", "violated", "7.6", "over limit",
                "violated", "queries", "", "7.6");
  for (const RowSummary& row : result.rows) out += RowLine(row);
  if (!result.checks.empty()) {
    out += "\nChecked against simulations of each SM by itself, random placement:\n";
    for (const CheckSummary& check : result.checks) out += CheckLine(check);
  }
  return out;
}

}  // namespace gpushare::tool
