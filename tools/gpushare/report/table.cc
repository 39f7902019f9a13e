#include "tools/gpushare/report/table.h"

#include <algorithm>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/report/verdict.h"

namespace gpushare::tool {

namespace {

std::string Ratio(double value) {
  if (value == 0) return "-";
  return value < 100 ? Format("%.3f", value) : Format("%.0f", value);
}

std::string LcCells(const LcResult& app) {
  const std::string violations =
      app.qos_ns == 0 ? "-"
                      : Format("%lld (%.2f %%)", static_cast<long long>(app.violations),
                               100 * app.violation_share);
  return Format("%10s %8s %10s %8s%c %15s", DurationText(static_cast<double>(app.p50_ns)).c_str(),
                Ratio(app.p50_over_alone).c_str(),
                DurationText(static_cast<double>(app.p99_ns)).c_str(),
                Ratio(app.p99_over_alone).c_str(), app.qos_met ? ' ' : '!', violations.c_str());
}

// A line below the row of a periodic app that had a partition.
std::string PartitionText(const LcResult& app) {
  const PartitionResult& partition = app.partition;
  if (partition.sms == 0) return "";
  return Format("    %s: %d SMs, longest response %s of the bound %s, %lld of %lld jobs late",
                app.app.c_str(), partition.sms,
                DurationText(static_cast<double>(partition.response_ns_max)).c_str(),
                DurationText(static_cast<double>(partition.response_bound_ns)).c_str(),
                static_cast<long long>(partition.deadlines_missed),
                static_cast<long long>(partition.jobs)) +
         (partition.overruns == 0
              ? "\n"
              : Format(", %lld overran\n", static_cast<long long>(partition.overruns)));
}

// Rows without the library may be given up; the numbers are those so far.
std::string UnstableText(const RunResult& run) {
  if (!run.unstable) return "";
  int64_t unanswered = 0;
  for (const LcResult& app : run.lc) unanswered += app.unanswered;
  return Format("  unstable, %lld queries unanswered", static_cast<long long>(unanswered));
}

std::string RunRow(const RunResult& run) {
  const std::string blank = Format("%10s %8s %10s %8s  %15s", "-", "-", "-", "-", "-");
  std::string row = Format("  %-24s ", run.policy.c_str());
  row += run.lc.empty() ? blank : LcCells(run.lc[0]);
  row += Format(" %7s", run.be.empty() ? "-" : Format("%.3f", MeanBeRate(run)).c_str());
  row += run.lc.empty() ? Format(" %6s %6s", "-", "-")
                        : Format(" %6.3f %6.3f", run.realised_load, TimeSharingLimit(run));
  row += Format(
      " %8s %6.3f %8s %8s", Ratio(run.antt).c_str(), run.stp,
      run.utilisation > 0 ? Format("%.1f %%", 100 * run.utilisation).c_str() : "-",
      run.prediction_samples > 0 ? Format("%.1f %%", 100 * run.prediction_error).c_str() : "-");
  if (run.evictions.count > 0) {
    row += Format(" %8lld %8s %8s", static_cast<long long>(run.evictions.count),
                  DurationText(static_cast<double>(run.evictions.p50_ns)).c_str(),
                  DurationText(static_cast<double>(run.evictions.p99_ns)).c_str());
  } else {
    row += Format(" %8s %8s %8s", "-", "-", "-");
  }
  row += UnstableText(run) + "\n";
  if (run.lc.size() <= 1 && run.be.size() <= 1) {
    return run.lc.empty() ? row : row + PartitionText(run.lc[0]);
  }
  for (const LcResult& app : run.lc) {
    row += Format("    %-22.22s ", app.app.c_str()) + LcCells(app) + "\n" + PartitionText(app);
  }
  for (const BeResult& app : run.be) {
    row += Format("    %-22.22s %57s %7.3f\n", app.app.c_str(), "", app.rate_of_solo);
  }
  return row;
}

std::string CaseHeader(const RunResult& first) {
  std::string line = "\n" + first.case_name;
  if (first.load > 0) line += Format(": load %.2f", first.load);
  line += Format(", realised %.3f; time sharing would leave BE %.3f\n", first.realised_load,
                 TimeSharingLimit(first));
  line +=
      Format("  %-24s %10s %8s %10s %8s  %15s %7s %6s %6s %8s %6s %8s %8s %8s %8s %8s\n", "policy",
             "LC p50", "x alone", "LC p99", "x alone", "violations", "BE rate", "load", "limit",
             "ANTT", "STP", "SM busy", "pred.err", "evicted", "ev. p50", "ev. p99");
  return line;
}

// Real devices: which GPU, and whether its answers were right.
std::string HardwareText(const ColocateResult& result) {
  if (result.device.virtual_time) return "";
  int64_t verified = 0;
  for (const RunResult& run : result.runs) verified += run.verified;
  std::string text;
  if (!result.hardware.gpu.empty()) {
    text += result.hardware.gpu + Format(", %d SMs", result.device.sm_count);
    if (!result.hardware.driver.empty()) text += ", driver " + result.hardware.driver;
    text += "; ";
  }
  return text + Format("%d rounds a row; answers verified in %lld of %zu rows\n", result.rounds,
                       static_cast<long long>(verified), result.runs.size());
}

// --- all cases, a line each ---

constexpr int kCaseWidth = 34;
constexpr int kCellWidth = 20;

std::string OverviewCell(double p50_over_alone, double p99_over_alone, bool marked, double be) {
  return Format("%6s %*s%c %4.2f", Ratio(p50_over_alone).c_str(), kCellWidth - 13,
                Ratio(p99_over_alone).c_str(), marked ? '!' : ' ', be);
}

// `row` gives the cell of one policy, empty for none.
template <typename CellOf>
std::string OverviewCells(const ColocateResult& result, CellOf&& cell_of) {
  std::string cells;
  for (const std::string& policy : result.policies) {
    const std::string cell = cell_of(policy);
    cells += Format(" %*s", kCellWidth, cell.empty() ? "-" : cell.c_str());
  }
  return cells + "\n";
}

const RunResult* FindRun(const ColocateResult& result, const std::string& case_name,
                         const std::string& policy) {
  const auto found = std::find_if(result.runs.begin(), result.runs.end(), [&](const auto& run) {
    return run.case_name == case_name && run.policy == policy;
  });
  return found == result.runs.end() ? nullptr : &*found;
}

std::string OverviewLine(const ColocateResult& result, const RunResult& first) {
  const double bound = WidestBound(first);
  return Format("%-*.*s %5s %6.3f", kCaseWidth, kCaseWidth, first.case_name.c_str(),
                bound > 0 ? Format("%.2f", bound).c_str() : "-", TimeSharingLimit(first)) +
         OverviewCells(result, [&](const std::string& policy) {
           const RunResult* run = FindRun(result, first.case_name, policy);
           if (run == nullptr) return std::string();
           return OverviewCell(WorstP50OverAlone(*run), WorstP99OverAlone(*run), !KeepsQos(*run),
                               MeanBeRate(*run));
         });
}

std::string MeasuredLine(const ColocateResult& result, const MeasuredResults& measured,
                         const RunResult& first) {
  const double bound = WidestBound(first);
  bool any = false;
  const std::string cells = OverviewCells(result, [&](const std::string& policy) {
    const MeasuredRow* row = measured.Find(first.case_name, policy);
    if (row == nullptr) return std::string();
    any = true;
    return OverviewCell(row->p50_over_alone, row->p99_over_alone,
                        bound > 0 && row->p99_over_alone > bound, row->be_rate_of_solo);
  });
  if (!any) return "";
  return Format("  %-*s %5s %6s", kCaseWidth - 2, measured.gpu.c_str(), "", "") + cells;
}

// The table that compares policies at a glance, with what a GPU measured below each case.
std::string Overview(const ColocateResult& result, const MeasuredResults& measured) {
  std::string header = Format("%-*s %5s %6s", kCaseWidth, "case", "bound", "limit");
  for (const std::string& policy : result.policies) {
    header += Format(" %*.*s", kCellWidth, kCellWidth, policy.c_str());
  }
  std::string text =
      "\nAll cases: LC p50 over alone, p99 over alone ('!': above the bound), then BE as a share "
      "of "
      "its rate alone (the mean of several apps).\n";
  if (!measured.empty()) text += MeasuredOrigin(measured, result.policies) + "\n";
  text += header + "\n";
  std::string current;
  for (const RunResult& run : result.runs) {
    if (IsReference(run.policy) || run.case_name == current) continue;
    current = run.case_name;
    text += OverviewLine(result, run) + MeasuredLine(result, measured, run);
  }
  return text + "\n";
}

// The GPU's own misses, beside those of the run.
std::string MeasuredText(const ColocateResult& result, const MeasuredResults& measured,
                         const std::string& policy) {
  const MeasuredVerdict verdict = JudgeMeasured(result, measured, policy);
  if (verdict.cases == 0) return "";
  return Format("; %s kept its bound in %d of %d, worst p99 %s", measured.gpu.c_str(),
                verdict.cases_met, verdict.cases, Ratio(verdict.worst_p99_over_alone).c_str());
}

}  // namespace

std::string FormatTable(const Scenario& scenario, const ColocateResult& result,
                        const MeasuredResults& measured) {
  std::string text =
      Format("%s on %s%s, profile %s, seed %llu\n", scenario.name.c_str(),
             result.device.name.c_str(), result.device.simulated ? " (SIMULATED)" : "",
             result.device.profile.c_str(), static_cast<unsigned long long>(result.seed));
  text += HardwareText(result);
  std::string current;
  for (const RunResult& run : result.runs) {
    if (run.case_name != current) text += CaseHeader(run);
    current = run.case_name;
    text += RunRow(run);
  }
  text +=
      "\n'x alone': LC p50 and p99 over those of lc_alone, '!' p99 above the QoS line. 'BE rate': "
      "of "
      "its rate alone; of several apps the mean, and each below.\n'load': what the arrivals came "
      "to; 'limit': 1 - load, what time sharing "
      "leaves BE. 'evicted': evictions,\nand how long they took. docs/result-schema.md has the "
      "rest.\n";
  text += Overview(result, measured) + "Over all cases:\n";
  const std::string few = FewQueriesText(result);
  if (!few.empty()) text += "  " + few + "\n";
  for (const PolicyVerdict& verdict : JudgePolicies(result)) {
    text += Format(
        "  %-24s QoS kept in %d of %d cases, worst p50 %s and p99 %s x alone, mean BE rate %.3f, "
        "of one app %.3f to %.3f%s\n",
        verdict.policy.c_str(), verdict.cases_met, verdict.cases_with_line,
        Ratio(verdict.worst_p50_over_alone).c_str(), Ratio(verdict.worst_p99_over_alone).c_str(),
        verdict.be_rate_mean, verdict.be_rate_least, verdict.be_rate_most,
        MeasuredText(result, measured, verdict.policy).c_str());
  }
  return text;
}

}  // namespace gpushare::tool
