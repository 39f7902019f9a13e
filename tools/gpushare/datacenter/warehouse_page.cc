// report.html of a run; see warehouse_text.h.

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/datacenter/warehouse_text.h"
#include "tools/gpushare/report/html_table.h"
#include "tools/gpushare/report/report_style.h"

namespace gpushare::tool {

namespace {

std::string RowTable(const DatacenterResult& result) {
  HtmlTable table("Violations and utilisation by policy and placement",
                  {{"policy, placement", true},
                   {"violated", false, "LC apps"},
                   {"severe", false, "LC apps"},
                   {"worst p99 over its limit", false, "LC apps"},
                   {"co-locations violated"},
                   {"late queries, worst app"},
                   {"BE time"}});
  for (const RowSummary& row : result.rows) {
    table.Row();
    table.Cell(TitleOf(row));
    table.Cell(PercentText(row.apps.Share()), row.apps.violated > 0 ? "bad" : "good");
    table.Cell(Format("%lld", static_cast<long long>(row.apps.severe)));
    table.Cell(Format("%+.1f %%", 100 * row.apps.worst_excess));
    table.Cell(PercentText(row.colocations.Share()));
    table.Cell(Format("%.2f %%", 100 * row.late_share_max));
    table.Cell(PercentText(row.be_time));
  }
  return table.Finish();
}

std::string AppTable(const RowSummary& row) {
  HtmlTable table("LC apps under " + TitleOf(row), {{"LC app", true},
                                                    {"GPUs"},
                                                    {"violated"},
                                                    {"worst p99 over its limit"},
                                                    {"co-locations violated"},
                                                    {"late queries"},
                                                    {"BE time"}});
  for (const AppSummary& app : row.by_app) {
    table.Row();
    table.Cell(app.app);
    table.Cell(Format("%lld", static_cast<long long>(app.apps.count)));
    table.Cell(PercentText(app.apps.Share()), app.apps.violated > 0 ? "bad" : "good");
    table.Cell(Format("%+.1f %%", 100 * app.apps.worst_excess));
    table.Cell(PercentText(app.colocations.Share()));
    table.Cell(Format("%.2f %%", 100 * app.late_share));
    table.Cell(PercentText(app.be_time));
  }
  return table.Finish();
}

std::string CheckTable(const DatacenterResult& result) {
  HtmlTable table("Against simulations of each SM by itself", {{"policy", true},
                                                               {"GPUs"},
                                                               {"LC apps violated, as above"},
                                                               {"LC apps violated, checked"},
                                                               {"p99 differs by, mean"},
                                                               {"p99 differs by, most"},
                                                               {"BE time, as above and checked"}});
  for (const CheckSummary& check : result.checks) {
    table.Row();
    table.Cell(check.policy);
    table.Cell(Format("%lld", static_cast<long long>(check.gpus)));
    table.Cell(Format("%lld", static_cast<long long>(check.row.apps.violated)));
    table.Cell(Format("%lld", static_cast<long long>(check.checked.apps.violated)));
    table.Cell(PercentText(check.p99_difference_mean));
    table.Cell(PercentText(check.p99_difference_max));
    table.Cell(PercentText(check.row.be_time) + ", " + PercentText(check.checked.be_time));
  }
  return table.Finish();
}

std::string Section(const std::string& title, const std::string& body) {
  return "<section class=\"card\"><h2>" + EscapeHtml(title) + "</h2>\n" + body + "</section>\n";
}

std::string HowMade(const Warehouse& warehouse, const DatacenterResult& result) {
  return "<p class=\"soft\">" +
         EscapeHtml(Format("%lld GPUs, each with one LC app and %lld BE instances one after "
                           "another for %s. Device %s, tier %s, profile %s, seed %llu. GPUs are ",
                           static_cast<long long>(warehouse.gpus),
                           static_cast<long long>(warehouse.be_per_gpu),
                           DurationText(static_cast<double>(warehouse.slot_ns)).c_str(),
                           result.device.name.c_str(), result.tier.c_str(),
                           result.device.profile.c_str(),
                           static_cast<unsigned long long>(result.seed)) +
                    (result.tables ? Format("drawn from %lld runs of each pair.",
                                            static_cast<long long>(warehouse.table_runs))
                                   : std::string("simulated one by one."))) +
         "</p>\n";
}

}  // namespace

std::string PageOf(const Warehouse& warehouse, const DatacenterResult& result) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\"><title>" +
      EscapeHtml(warehouse.apps.name) + "</title><style>" + std::string(kChartStyle) + kPageStyle +
      "</style></head><body><main>\n<h1>" + EscapeHtml(warehouse.apps.name);
  if (result.device.simulated) page += " <span class=\"stamp\">SIMULATED</span>";
  page +=
      "</h1>\n<p>" + EscapeHtml(warehouse.apps.description) + "</p>\n" + HowMade(warehouse, result);
  page += Section("Policies and placements", RowTable(result));
  page += Section("QoS violations (Baymax, figure 14)",
                  "<div class=\"plots\"><div>" + ViolationPlot(result) + "</div></div>");
  page += Section("Utilisation (Baymax, figure 15)", "<div class=\"plots\"><div>" +
                                                         UtilisationPlot(result) + "</div>\n<div>" +
                                                         LevelPlot(result) + "</div></div>");
  for (const RowSummary& row : result.rows) {
    page += Section("LC apps under " + TitleOf(row), AppTable(row));
  }
  if (!result.checks.empty()) {
    page += Section("Check against simulations of each SM by itself", CheckTable(result));
  }
  return page + "</main></body></html>\n";
}

}  // namespace gpushare::tool
