#include "tools/gpushare/colocate/finished_rows.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

// Rises with each field below: a partial set of another version is not resumed. 2: partitions.
constexpr int kSchemaVersion = 2;

// Every field of a struct, for reading and for writing. `In` is const when it is written.
template <class In, class Visit>
void VisitCurvePoint(In& point, Visit&& visit) {
  visit("fraction", point.fraction);
  visit("latency_ns", point.latency_ns);
}

template <class In, class Visit>
void VisitLc(In& app, Visit&& visit) {
  visit("app", app.app);
  visit("queries", app.queries);
  visit("unanswered", app.unanswered);
  visit("p50_ns", app.p50_ns);
  visit("p90_ns", app.p90_ns);
  visit("p95_ns", app.p95_ns);
  visit("p99_ns", app.p99_ns);
  visit("p999_ns", app.p999_ns);
  visit("max_ns", app.max_ns);
  visit("mean_ns", app.mean_ns);
  visit("p50_over_alone", app.p50_over_alone);
  visit("p99_over_alone", app.p99_over_alone);
  visit("mean_over_alone", app.mean_over_alone);
  visit("solo_ns", app.solo_ns);
  visit("p99_bound", app.p99_bound);
  visit("qos_ns", app.qos_ns);
  visit("violations", app.violations);
  visit("violation_share", app.violation_share);
  visit("qos_met", app.qos_met);
  visit("target_ns", app.target_ns);
  visit("p50_bound", app.p50_bound);
  visit("tail_credit", app.tail_credit);
  visit("queries_late_for_be", app.queries_late_for_be);
  visit("partition_sms", app.partition.sms);
  visit("response_bound_ns", app.partition.response_bound_ns);
  visit("response_ns_max", app.partition.response_ns_max);
  visit("jobs", app.partition.jobs);
  visit("deadlines_missed", app.partition.deadlines_missed);
  visit("overruns", app.partition.overruns);
}

template <class In, class Visit>
void VisitBe(In& app, Visit&& visit) {
  visit("app", app.app);
  visit("rate_of_solo", app.rate_of_solo);
  visit("work_per_second", app.work_per_second);
  visit("tasks", app.tasks);
  visit("evictions", app.evictions);
}

template <class In, class Visit>
void VisitHeld(In& held, Visit&& visit) {
  visit("reason", held.reason);
  visit("time_ns", held.time_ns);
}

template <class In, class Visit>
void VisitRun(In& run, Visit&& visit) {
  visit("case", run.case_name);
  visit("policy", run.policy);
  visit("load", run.load);
  visit("realised_load", run.realised_load);
  visit("be_rate_of_solo", run.be_rate_of_solo);
  visit("stp", run.stp);
  visit("antt", run.antt);
  visit("work_rate", run.work_rate);
  visit("utilisation", run.utilisation);
  visit("prediction_error", run.prediction_error);
  visit("prediction_samples", run.prediction_samples);
  visit("evictions", run.evictions.count);
  visit("eviction_p50_ns", run.evictions.p50_ns);
  visit("eviction_p99_ns", run.evictions.p99_ns);
  visit("evictions_blocked", run.evictions_blocked);
  visit("launches", run.launches);
  visit("fast_path_launches", run.fast_path_launches);
  visit("span_ns", run.span_ns);
  visit("verified", run.verified);
  visit("unstable", run.unstable);
  visit("events", run.events);
  visit("decision_digest", run.decision_digest);
  visit("events_dropped", run.events_dropped);
}

// A member of a JSON object from a field, and back.
struct Writer {
  Json& json;
  template <class Field>
  void operator()(const char* key, const Field& field) const {
    json[key] = field;
  }
};
struct Reader {
  const Json& json;
  template <class Field>
  void operator()(const char* key, Field& field) const {
    json.at(key).get_to(field);
  }
};

Json ToJson(const RunResult& run) {
  Json json;
  VisitRun(run, Writer{json});
  json["lc"] = Json::array();
  for (const LcResult& app : run.lc) {
    Json& lc = json["lc"].emplace_back();
    VisitLc(app, Writer{lc});
    lc["curve"] = Json::array();
    for (const CurvePoint& point : app.curve) {
      VisitCurvePoint(point, Writer{lc["curve"].emplace_back()});
    }
  }
  json["be"] = Json::array();
  for (const BeResult& app : run.be) {
    Json& be = json["be"].emplace_back();
    VisitBe(app, Writer{be});
    be["held"] = Json::array();
    for (const HeldTime& held : app.held) VisitHeld(held, Writer{be["held"].emplace_back()});
  }
  return json;
}

RunResult FromJson(const Json& json) {
  RunResult run;
  VisitRun(run, Reader{json});
  for (const Json& lc : json.at("lc")) {
    LcResult& app = run.lc.emplace_back();
    VisitLc(app, Reader{lc});
    for (const Json& point : lc.at("curve")) {
      VisitCurvePoint(app.curve.emplace_back(), Reader{point});
    }
  }
  for (const Json& be : json.at("be")) {
    BeResult& app = run.be.emplace_back();
    VisitBe(app, Reader{be});
    for (const Json& held : be.at("held")) VisitHeld(app.held.emplace_back(), Reader{held});
  }
  return run;
}

// Traces come from files that the scenario names; they are part of what the rows were made with.
uint64_t ArrivalDigest(const Scenario& scenario) {
  std::string text;
  for (const LcApp& app : scenario.lc) {
    for (const int64_t time_ns : app.arrivals.times_ns) text += std::to_string(time_ns) + " ";
    text += "\n";
  }
  return Fnv1a(text);
}

// The names of the cases asked for, each once; empty: all.
std::set<std::string> AskedCases(const ColocateOptions& options) {
  return {options.cases.begin(), options.cases.end()};
}

}  // namespace

std::string MadeWith(const Scenario& scenario, const ColocateOptions& options,
                     const ColocateResult& result) {
  const std::string profile =
      scenario.profile.empty() ? "" : ReadFile(scenario.profile, kScenarioBytesMax);
  const Json made_with = {{"version", gpushare_version_string()},
                          {"device", result.device.name},
                          {"gpu", result.hardware.gpu},
                          {"driver", result.hardware.driver},
                          {"sm_count", result.device.sm_count},
                          {"tier", result.tier},
                          {"profile", result.device.profile},
                          {"profile_digest", HexText(Fnv1a(profile))},
                          {"scenario_digest", HexText(scenario.digest)},
                          {"arrival_digest", HexText(ArrivalDigest(scenario))},
                          {"seed", scenario.seed},
                          {"policies", result.policies},
                          {"cases", AskedCases(options)},
                          {"queries", scenario.queries},
                          {"duration_ns", scenario.duration_ns},
                          {"rounds", result.rounds},
                          {"trace_window_ns", options.trace_window_ns}};
  return made_with.dump();
}

void SaveFinishedRows(const Scenario& scenario, const ColocateOptions& options,
                      const ColocateResult& result, const std::string& folder) {
  Json rows = Json::array();
  for (const RunResult& run : result.runs) rows.push_back(ToJson(run));
  const Json document = {{"schema_version", kSchemaVersion},
                         {"made_with", MadeWith(scenario, options, result)},
                         {"rows", std::move(rows)}};
  WriteFile(folder + "/events/index.json", FormatEventIndex(result.events));
  WriteFile(folder + "/rows.json", document.dump() + "\n");
}

FinishedRows LoadFinishedRows(const std::string& folder) {
  FinishedRows finished;
  const std::string file = folder + "/rows.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return finished;
  const Json document = ParseJson(ReadFile(file, kRowsBytesMax), file);
  try {
    if (document.at("schema_version") != kSchemaVersion) {
      throw InputError("The file '" + file + "' is of another version of gpushare.");
    }
    document.at("made_with").get_to(finished.made_with);
    for (const Json& row : document.at("rows")) finished.runs.push_back(FromJson(row));
  } catch (const Json::exception&) {
    throw InputError("The file '" + file + "' is corrupt; without --resume the run starts again.");
  }
  // After a crash the index may be ahead of the rows by a case.
  for (EventIndexEntry& entry : LoadEventIndex(folder)) {
    const auto has_rows = [&](const RunResult& run) { return run.case_name == entry.case_name; };
    if (std::any_of(finished.runs.begin(), finished.runs.end(), has_rows)) {
      finished.events.push_back(std::move(entry));
    }
  }
  return finished;
}

void RequireMadeWith(const std::string& set, const std::string& before_text,
                     const std::string& now_text) {
  if (before_text == now_text) return;
  const Json before = Json::parse(before_text, nullptr, false);
  const Json now = Json::parse(now_text);
  for (const auto& [key, value] : now.items()) {
    if (before.is_object() && before.value(key, Json()) == value) continue;
    const std::string was = before.is_object() ? before.value(key, Json()).dump() : "";
    throw InputError(set + " was made with " + key + " " + was + ", and this run has " +
                     value.dump() + "; without --resume the run starts again.");
  }
  throw InputError(set + " was made with other options; without --resume the run starts again.");
}

void RequireSameOrigin(const FinishedRows& rows, const std::string& made_with) {
  if (rows.runs.empty()) return;
  RequireMadeWith("The partial set", rows.made_with, made_with);
}

}  // namespace gpushare::tool
