#include "tools/gpushare/report/result.h"

#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

Json LcToJson(const LcResult& app, bool real_time) {
  Json json = {{"app", app.app},
               {"queries", app.queries},
               {"p50_ns", app.p50_ns},
               {"p99_ns", app.p99_ns},
               {"p99_over_alone", Rounded(app.p99_over_alone)},
               {"violations", app.violations}};
  json["violation_share"] = Rounded(app.violation_share);
  json["p90_ns"] = app.p90_ns;
  json["p95_ns"] = app.p95_ns;
  json["p999_ns"] = app.p999_ns;
  json["max_ns"] = app.max_ns;
  json["mean_ns"] = Rounded(app.mean_ns);
  json["p50_over_alone"] = Rounded(app.p50_over_alone);
  json["mean_over_alone"] = Rounded(app.mean_over_alone);
  json["solo_ns"] = app.solo_ns;
  json["p99_bound"] = Rounded(app.p99_bound);
  json["target_ns"] = app.target_ns;
  json["qos_ns"] = app.qos_ns;
  json["qos_met"] = app.qos_met;
  if (real_time) json["unanswered"] = app.unanswered;
  json["p50_bound"] = Rounded(app.p50_bound);
  json["tail_credit"] = Rounded(app.tail_credit);
  json["queries_late_for_be"] = app.queries_late_for_be;
  const PartitionResult& partition = app.partition;
  if (partition.sms > 0) {
    json["partition"] = {{"sms", partition.sms},
                         {"response_bound_ns", partition.response_bound_ns},
                         {"response_ns_max", partition.response_ns_max},
                         {"jobs", partition.jobs},
                         {"deadlines_missed", partition.deadlines_missed},
                         {"overruns", partition.overruns}};
  }
  return json;
}

Json BeToJson(const BeResult& app) {
  Json json = {{"app", app.app},
               {"rate_of_solo", Rounded(app.rate_of_solo)},
               {"work_per_second", Rounded(app.work_per_second)},
               {"tasks", app.tasks},
               {"evictions", app.evictions}};
  json["held_ns"] = Json::object();
  for (const HeldTime& held : app.held) {
    json["held_ns"][gpushare_reason_name(held.reason)] = held.time_ns;
  }
  return json;
}

Json RunToJson(const RunResult& run, bool real_time) {
  Json lc = Json::array();
  for (const LcResult& app : run.lc) lc.push_back(LcToJson(app, real_time));
  Json be = Json::array();
  for (const BeResult& app : run.be) be.push_back(BeToJson(app));
  Json json = {{"case", run.case_name}, {"policy", run.policy}, {"load", Rounded(run.load)}};
  json["lc"] = std::move(lc);
  json["be"] = std::move(be);
  json["stp"] = Rounded(run.stp);
  json["antt"] = Rounded(run.antt);
  json["utilisation"] = Rounded(run.utilisation);
  json["prediction_error"] = Rounded(run.prediction_error);
  json["evictions"] = {{"count", run.evictions.count},
                       {"p50_ns", run.evictions.p50_ns},
                       {"p99_ns", run.evictions.p99_ns}};
  json["realised_load"] = Rounded(run.realised_load);
  json["time_sharing_limit"] = Rounded(TimeSharingLimit(run));
  json["be_rate_of_solo"] = Rounded(run.be_rate_of_solo);
  json["work_rate"] = Rounded(run.work_rate);
  json["prediction_samples"] = run.prediction_samples;
  json["evictions_blocked"] = run.evictions_blocked;
  json["launches"] = run.launches;
  json["fast_path_launches"] = run.fast_path_launches;
  json["span_ns"] = run.span_ns;
  json["events"] = run.events;
  json["decision_digest"] = run.decision_digest;
  json["events_dropped"] = run.events_dropped;
  if (real_time) {
    json["verified"] = run.verified;
    json["unstable"] = run.unstable;
  }
  return json;
}

}  // namespace

std::string FormatResult(const Scenario& scenario, const ColocateResult& result) {
  Json runs = Json::array();
  const bool real_time = !result.device.virtual_time;
  for (const RunResult& run : result.runs) runs.push_back(RunToJson(run, real_time));
  Json json = {{"schema_version", kResultSchemaVersion},
               {"device", result.device.name},
               {"simulated", result.device.simulated},
               {"scenario", scenario.name},
               {"seed", result.seed}};
  if (result.stopped != nullptr) {
    json["partial"] = {{"cases_finished", result.cases_finished},
                       {"missing_cases", result.missing_cases}};
  }
  json["runs"] = std::move(runs);
  json["manifest"] = {{"gpushare_version", gpushare_version_string()},
                      {"profile", result.device.profile},
                      {"sm_count", result.device.sm_count},
                      {"tier", result.device.simulated ? result.tier : ""},
                      {"scenario_digest", HexText(scenario.digest)},
                      {"policies", result.policies},
                      {"queries", scenario.queries},
                      {"duration_ns", scenario.duration_ns},
                      {"be_alone_ns", scenario.be_alone_ns}};
  if (real_time) {
    json["manifest"]["rounds"] = result.rounds;
    json["manifest"]["gpu"] = result.hardware.gpu;
    json["manifest"]["driver"] = result.hardware.driver;
  }
  return json.dump(1) + "\n";
}

}  // namespace gpushare::tool
