// Which runs and event logs a plot takes; see plot_inputs.h.

#include "tools/gpushare/plot/plot_inputs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/suggest.h"
#include "tools/gpushare/colocate/colocate.h"

namespace gpushare::tool {

namespace {

namespace fs = std::filesystem;

constexpr int kSchemaVersion = 1;
constexpr double kRatioMax = 1e12;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

LcResult LcFromJson(const Json& json, const std::string& file, const std::string& where) {
  ObjectReader in(json, file, where);
  LcResult app;
  app.app = in.Name("app");
  app.queries = in.Integer("queries", 0, 0, INT64_MAX);
  app.p50_over_alone = in.Number("p50_over_alone", 0, 0, kRatioMax);
  app.p99_over_alone = in.Number("p99_over_alone", 0, 0, kRatioMax);
  app.p99_bound = in.Number("p99_bound", 0, 0, kRatioMax);
  app.qos_ns = in.Integer("qos_ns", 0, 0, INT64_MAX);
  app.qos_met = in.Flag("qos_met", true);
  return app;
}

BeResult BeFromJson(const Json& json, const std::string& file, const std::string& where) {
  ObjectReader in(json, file, where);
  BeResult app;
  app.app = in.Name("app");
  app.rate_of_solo = in.Number("rate_of_solo", 0, 0, kRatioMax);
  return app;
}

RunResult RunFromJson(const Json& json, const std::string& file, const std::string& where) {
  ObjectReader in(json, file, where);
  RunResult run;
  run.case_name = in.Name("case");
  run.policy = in.Name("policy");
  run.load = in.Number("load", 0, 0, kRatioMax);
  run.realised_load = in.Number("realised_load", 0, 0, kRatioMax);
  const Json* lc = in.Array("lc", kAppsMax);
  const Json* be = in.Array("be", kAppsMax);
  if (lc == nullptr) in.Fail("lc", "is missing");
  if (be == nullptr) in.Fail("be", "is missing");
  for (const Json& app : *lc) run.lc.push_back(LcFromJson(app, file, in.Where("lc")));
  for (const Json& app : *be) run.be.push_back(BeFromJson(app, file, in.Where("be")));
  return run;
}

// A choice that takes no run names the nearest case or policy that there is.
[[noreturn]] void RefuseChoice(const std::string& path, const PlotChoice& choice,
                               const std::vector<std::string>& cases,
                               const std::vector<std::string>& policies) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return name.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has(cases, choice.case_name)) {
    throw InputError("'" + path + "' has no case '" + choice.case_name + "'" +
                     DidYouMean(choice.case_name, cases) + ListOf("cases", cases));
  }
  if (!has(policies, choice.policy)) {
    throw InputError("'" + path + "' has no run under the policy '" + choice.policy + "'" +
                     DidYouMean(choice.policy, policies) + ListOf("policies", policies));
  }
  throw InputError("'" + path + "' has no run of the case '" + choice.case_name +
                   "' under the policy '" + choice.policy + "'.");
}

// Names of cases and policies, each once, in their order.
class Names {
 public:
  void Add(const std::string& case_name, const std::string& policy) {
    AddOnce(case_name, cases);
    AddOnce(policy, policies);
  }
  std::vector<std::string> cases;
  std::vector<std::string> policies;

 private:
  static void AddOnce(const std::string& name, std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
};

bool Takes(const PlotChoice& choice, const std::string& case_name, const std::string& policy) {
  return (choice.case_name.empty() || case_name == choice.case_name) &&
         (choice.policy.empty() || policy == choice.policy);
}

void ReadResultFile(const std::string& file, const PlotChoice& choice, PlotInput& input) {
  input.results = ParseResults(ReadFile(file, kResultBytesMax), file);
  Names names;
  for (const RunResult& run : input.results.runs) {
    if (!IsReference(run.policy)) names.Add(run.case_name, run.policy);
  }
  std::vector<RunResult>& runs = input.results.runs;
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [&](const RunResult& run) {
                              return IsReference(run.policy) ||
                                     !Takes(choice, run.case_name, run.policy);
                            }),
             runs.end());
  if (runs.empty()) RefuseChoice(file, choice, names.cases, names.policies);
  if (runs.size() > kPlotRunsMax) {
    throw InputError("'" + file + "' has " + std::to_string(runs.size()) +
                     " runs to plot, and the most are " + std::to_string(kPlotRunsMax) +
                     "; choose with --case or --policy.");
  }
}

// A log has no word of its device. The result of its folder has one; without it an origin says
// enough, because only runs in virtual time have one.
std::optional<bool> IsSimulated(const EventIndexEntry& run, const std::optional<bool>& result) {
  if (result.has_value()) return result;
  return run.origin.has_value() ? std::optional(true) : std::nullopt;
}

void ReadLogs(const std::string& folder, const PlotChoice& choice,
              const std::optional<bool>& result_simulated, PlotInput& input) {
  const bool chosen_only = choice.case_name.empty() && choice.policy.empty();
  Names names;
  for (EventIndexEntry& run : LoadEventIndex(folder)) {
    names.Add(run.case_name, run.policy);
    if (!Takes(choice, run.case_name, run.policy) || (chosen_only && !run.chosen)) continue;
    std::string path = folder + "/" + run.file;
    const std::optional<bool> simulated = IsSimulated(run, result_simulated);
    input.logs.push_back({std::move(path), std::move(run), simulated});
  }
  if (input.logs.empty() && !chosen_only) RefuseChoice(folder, choice, names.cases, names.policies);
  if (input.logs.size() > kPlotLogsMax) {
    throw InputError("The choice takes " + std::to_string(input.logs.size()) + " event logs of '" +
                     folder + "', and the most are " + std::to_string(kPlotLogsMax) +
                     "; give both --case and --policy.");
  }
}

// The folder that colocate wrote and that has the log; empty for a log alone.
std::string FolderOf(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::absolute(path, error);
  if (error) throw InputError("'" + path + "' is no path of a file: " + error.message() + ".");
  std::string folder = file.parent_path().parent_path().string();
  return Exists(folder + "/events/index.json") ? folder : "";
}

LogToPlot LogOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  if (!folder.empty()) {
    for (EventIndexEntry& run : LoadEventIndex(folder)) {
      if (fs::path(run.file).filename() != fs::path(path).filename()) continue;
      std::optional<bool> result;
      if (const std::string file = folder + "/result.json"; Exists(file)) {
        result = ParseResults(ReadFile(file, kResultBytesMax), file).simulated;
      }
      const std::optional<bool> simulated = IsSimulated(run, result);
      return {path, std::move(run), simulated};
    }
  }
  return {path, RunOfEvents(path, LoadEvents(path)), std::nullopt};
}

bool IsJson(const std::string& path) { return fs::path(path).extension() == ".json"; }

double DoubleOfBits(int64_t bits) {
  double value = 0;
  static_assert(sizeof value == sizeof bits);
  std::memcpy(&value, &bits, sizeof value);
  return value >= 0 && value <= kRatioMax ? value : 0;
}

}  // namespace

ReadResults ParseResults(std::string_view text, const std::string& file) {
  const Json document = ParseJson(text, file);
  ObjectReader in(document, file, "");
  if (in.Integer("schema_version", 0, 0, INT32_MAX) != kSchemaVersion) {
    in.Fail("schema_version", "is not 1, the version that this program reads");
  }
  ReadResults results;
  results.scenario = in.Text("scenario");
  results.simulated = in.Flag("simulated", false);
  const Json* runs = in.Array("runs", kCasesMax * 64);
  if (runs == nullptr) in.Fail("runs", "is missing");
  for (size_t i = 0; i < runs->size(); ++i) {
    results.runs.push_back(RunFromJson((*runs)[i], file, "runs[" + std::to_string(i) + "]"));
  }
  for (const RunResult& run : results.runs) {
    std::vector<std::string>& names = results.policies;
    if (IsReference(run.policy)) continue;
    if (std::find(names.begin(), names.end(), run.policy) == names.end()) {
      names.push_back(run.policy);
    }
  }
  return results;
}

EventIndexEntry RunOfEvents(const std::string& path, const std::vector<gpushare_event>& events) {
  EventIndexEntry run;
  run.case_name = fs::path(path).filename().string();
  run.file = run.case_name;
  if (!events.empty()) run.start_ns = events.front().time_ns;
  for (const gpushare_event& event : events) {
    if (event.app_id == 0) continue;
    const bool lc = event.app_class == GPUSHARE_CLASS_LATENCY_CRITICAL;
    const auto known = std::find_if(run.apps.begin(), run.apps.end(),
                                    [&](const NamedId& app) { return app.id == event.app_id; });
    if (known == run.apps.end()) {
      if (run.apps.size() == kAppsMax) continue;
      run.apps.push_back({event.app_id, "app " + std::to_string(event.app_id), lc});
      if (lc) run.promises.emplace_back().app_id = event.app_id;
    }
    const auto promise =
        std::find_if(run.promises.begin(), run.promises.end(),
                     [&](const LcPromise& candidate) { return candidate.app_id == event.app_id; });
    if (promise == run.promises.end()) continue;
    if (event.type == GPUSHARE_EVENT_APP_CREATED) {
      promise->target_ns = event.b;
      promise->p99_bound = 1e-6 * static_cast<double>(event.c);
    } else if (event.type == GPUSHARE_EVENT_APP_UPDATED) {
      promise->target_ns = event.a;
      promise->p99_alone_ns = event.b;
      promise->p99_bound = DoubleOfBits(event.c);
    }
  }
  return run;
}

PlotInput ReadPlotInput(const std::string& path, const PlotChoice& choice) {
  PlotInput input;
  input.name = path;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (IsJson(path)) {
      ReadResultFile(path, choice, input);
    } else {
      input.logs.push_back(LogOf(path));
    }
    return input;
  }
  const std::string result = path + "/result.json";
  const bool has_result = Exists(result);
  const bool has_logs = Exists(path + "/events/index.json");
  if (!has_result && !has_logs) {
    throw InputError("The folder '" + path +
                     "' holds no results of gpushare colocate: it has neither 'result.json' nor "
                     "'events/index.json'.");
  }
  if (has_result) ReadResultFile(result, choice, input);
  const auto simulated = has_result ? std::optional(input.results.simulated) : std::nullopt;
  if (has_logs) ReadLogs(path, choice, simulated, input);
  return input;
}

}  // namespace gpushare::tool
