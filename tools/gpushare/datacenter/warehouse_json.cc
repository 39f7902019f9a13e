// datacenter.json; see warehouse_text.h.

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/gpushare/datacenter/warehouse_text.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

namespace {

using Json = nlohmann::ordered_json;

Json JsonOfViolations(const Violations& violations) {
  return {{"count", violations.count},
          {"violated", violations.violated},
          {"violated_share", Rounded(violations.Share())},
          {"severe", violations.severe},
          {"worst_excess", Rounded(violations.worst_excess)}};
}

Json JsonOfApp(const AppSummary& app) {
  return {{"app", app.app},
          {"lc_apps", JsonOfViolations(app.apps)},
          {"colocations", JsonOfViolations(app.colocations)},
          {"late_share", Rounded(app.late_share)},
          {"be_time", Rounded(app.be_time)}};
}

Json JsonOfRow(const RowSummary& row) {
  Json apps = Json::array();
  for (const AppSummary& app : row.by_app) apps.push_back(JsonOfApp(app));
  return {{"policy", row.policy},
          {"placement", NameOf(row.placing)},
          {"lc_apps", JsonOfViolations(row.apps)},
          {"colocations", JsonOfViolations(row.colocations)},
          {"late_share_max", Rounded(row.late_share_max)},
          {"be_time", Rounded(row.be_time)},
          {"gpus_by_be_time", row.levels},
          {"by_lc_app", std::move(apps)}};
}

Json JsonOfCheck(const CheckSummary& check) {
  return {{"policy", check.policy},
          {"gpus", check.gpus},
          {"violated", check.row.apps.violated},
          {"violated_checked", check.checked.apps.violated},
          {"p99_difference_mean", Rounded(check.p99_difference_mean)},
          {"p99_difference_max", Rounded(check.p99_difference_max)},
          {"be_time", Rounded(check.row.be_time)},
          {"be_time_checked", Rounded(check.checked.be_time)},
          {"be_time_difference_max", Rounded(check.be_time_difference_max)}};
}

Json JsonOfService(const ServiceFacts& service) {
  return {{"service", service.name},    {"lc_app", service.app},
          {"load", service.load},       {"gpus", service.gpus},
          {"solo_ns", service.solo_ns}, {"p99_alone_ns", service.p99_alone_ns}};
}

template <class List, class Function>
Json ArrayOf(const List& list, Function function) {
  Json out = Json::array();
  for (const auto& entry : list) out.push_back(function(entry));
  return out;
}

}  // namespace

std::string JsonOf(const Warehouse& warehouse, const DatacenterResult& result) {
  Json be = Json::array();
  for (const BeApp& app : warehouse.apps.be) be.push_back(app.name);
  const Json out = {{"schema_version", 1},
                    {"scenario", warehouse.apps.name},
                    {"device", result.device.name},
                    {"simulated", result.device.simulated},
                    {"stamp", result.device.simulated ? "SIMULATED" : ""},
                    {"profile", result.device.profile},
                    {"tier", result.tier},
                    {"seed", result.seed},
                    {"gpus", warehouse.gpus},
                    {"be_per_gpu", warehouse.be_per_gpu},
                    {"slot_ns", warehouse.slot_ns},
                    {"table_runs", warehouse.table_runs},
                    {"gpus_are", result.tables ? "drawn" : "simulated"},
                    {"services", ArrayOf(result.services, JsonOfService)},
                    {"be_apps", std::move(be)},
                    {"rows", ArrayOf(result.rows, JsonOfRow)},
                    {"checks", ArrayOf(result.checks, JsonOfCheck)}};
  return out.dump(1) + "\n";
}

}  // namespace gpushare::tool
