#include "tools/gpushare/report/report_guarantees.h"

#include <string>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/colocate/plain_rows.h"
#include "tools/gpushare/events/promise.h"
#include "tools/gpushare/report/html_table.h"

namespace gpushare::tool {

namespace {

std::string OverAlone(double ratio) { return ratio > 0 ? Format("%.3f", ratio) : "-"; }

const char* Colour(double got, double bound) {
  if (bound <= 0 || got <= 0) return "";
  return got <= bound ? "good" : "bad";
}

void LcRow(const RunResult& run, const LcResult& app, HtmlTable& table) {
  const bool in_library = !IsPlainRow(run.policy);
  table.Row();
  table.Cell(run.policy);
  table.Cell(app.app);
  table.Cell(PromiseText(app.p99_bound, app.p50_bound, app.target_ns));
  table.Cell(OverAlone(app.p50_over_alone), Colour(app.p50_over_alone, app.p50_bound));
  table.Cell(OverAlone(app.p99_over_alone), app.qos_ns == 0 ? "" : app.qos_met ? "good" : "bad");
  table.Cell(app.qos_ns == 0 ? "-" : Format("%.2f %%", 100 * app.violation_share));
  table.Cell(in_library ? Format("%.2f", app.tail_credit) : "-");
  table.Cell(in_library ? std::to_string(app.queries_late_for_be) : "-");
}

std::string HeldText(const BeResult& app) {
  std::string text;
  for (const HeldTime& held : app.held) {
    text += (text.empty() ? "" : ", ") + DurationText(static_cast<double>(held.time_ns)) + " " +
            gpushare_reason_name(held.reason);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::string GuaranteeTables(const std::vector<const RunResult*>& runs) {
  HtmlTable lc("Guarantees of LC apps", {{"policy"},
                                         {"LC app", true},
                                         {"promised", true},
                                         {"p50 over alone"},
                                         {"p99 over alone"},
                                         {"beyond the bound"},
                                         {"tail account"},
                                         {"late for BE"}});
  HtmlTable be("Guarantees of BE apps",
               {{"policy"}, {"BE app", true}, {"rate of solo"}, {"held, by reason", true}});
  bool any_be = false;
  for (const RunResult* run : runs) {
    if (IsReference(run->policy)) continue;
    for (const LcResult& app : run->lc) LcRow(*run, app, lc);
    for (const BeResult& app : run->be) {
      any_be = true;
      be.Row();
      be.Cell(run->policy);
      be.Cell(app.app);
      be.Cell(Format("%.3f", app.rate_of_solo));
      be.Cell(HeldText(app));
    }
  }
  return "<h3>Guarantees</h3><p class=\"soft\">What each app was promised, and what it got. Tail "
         "account: queries that BE work may still make late, at the end of the run. Held: time of "
         "the heads of a BE app's queues.</p>" +
         lc.Finish() + (any_be ? be.Finish() : "");
}

}  // namespace gpushare::tool
