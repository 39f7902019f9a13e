#include "tools/gpushare/events/replay.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/events/event_index.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

namespace {

namespace fs = std::filesystem;

struct Found {
  std::string folder;
  std::vector<EventIndexEntry> runs;
};

// The runs that the options ask for.
Found FindRuns(const ReplayOptions& options) {
  Found found;
  const fs::path path = fs::path(options.log);
  std::error_code error;
  const bool one = !fs::is_directory(path, error);
  if (one) {
    // Before the index: the message is then about the file that was named.
    int64_t events = 0;
    OpenEventLog(options.log, events);
  }
  found.folder = one ? fs::absolute(path).parent_path().parent_path().string() : options.log;
  for (EventIndexEntry& run : LoadEventIndex(found.folder)) {
    if (one && fs::path(run.file).filename() != path.filename()) continue;
    if (!options.case_name.empty() && run.case_name != options.case_name) continue;
    if (!options.policy.empty() && run.policy != options.policy) continue;
    found.runs.push_back(std::move(run));
  }
  if (found.runs.empty()) {
    throw InputError("No event log that the index of '" + found.folder +
                     "' names is the one that was asked for.");
  }
  return found;
}

const RunOrigin& OriginOf(const EventIndexEntry& run) {
  if (run.origin.has_value()) return *run.origin;
  throw InputError("The log '" + run.file +
                   "' cannot be replayed: it is of a run in real time or in partitions, or it does "
                   "not begin with its run. On the simulated device `gpushare colocate --trace-ms` "
                   "with a time that covers the run logs all of it.");
}

Scenario ScenarioOf(const RunOrigin& origin, const std::string& given) {
  Scenario scenario = LoadScenario(given.empty() ? origin.scenario : given);
  if (HexText(scenario.digest) == origin.scenario_digest) return scenario;
  throw InputError("The scenario '" + scenario.file + "' has the digest " +
                   HexText(scenario.digest) + ", and the run was made with one that has " +
                   origin.scenario_digest + ".");
}

template <class App>
const App& AppNamed(const std::vector<App>& apps, const std::string& name) {
  const auto found =
      std::find_if(apps.begin(), apps.end(), [&](const App& app) { return app.name == name; });
  if (found != apps.end()) return *found;
  throw InputError("The index names the app '" + name + "', and the scenario has none.");
}

LcPlan LcPlanOf(const Scenario& scenario, const EventIndexEntry& run, const NamedId& app) {
  LcPlan plan;
  plan.app = &AppNamed(scenario.lc, app.name);
  plan.reserve = ListNamesPolicy(scenario.reservation_policies, run.policy);
  for (const LcPromise& promise : run.promises) {
    if (promise.app_id != app.id) continue;
    plan.solo_ns = promise.solo_ns;
    plan.p99_bound = promise.p99_bound;
    plan.p50_bound = promise.p50_bound;
    plan.p99_alone_ns = promise.p99_alone_ns;
    plan.target_ns = promise.target_ns;
  }
  return plan;
}

ReplayedLog ReplayOne(const Found& found, const EventIndexEntry& run,
                      const ReplayOptions& options) {
  const RunOrigin& origin = OriginOf(run);
  const Scenario scenario = ScenarioOf(origin, options.scenario);
  RunPlan plan;
  plan.device.device = origin.device;
  plan.device.tier = origin.tier;
  plan.device.profile = scenario.profile;
  plan.device.seed = origin.seed;
  plan.policy = options.under.empty() ? run.policy : options.under;
  plan.fused = &scenario.fused;
  const std::unique_ptr<Workloads> workloads =
      MakeWorkloads(FactsOf(OpenRuntime(plan.device, "bare").get()));
  plan.workloads = workloads.get();
  for (const NamedId& app : run.apps) {
    if (app.latency_critical) {
      plan.lc.push_back(LcPlanOf(scenario, run, app));
    } else {
      plan.be.push_back({&AppNamed(scenario.be, app.name),
                         ListNamesPolicy(scenario.reservation_policies, run.policy)});
    }
  }
  return {run.file, run.case_name, run.policy, plan.policy,
          ExecuteReplay(plan, found.folder + "/" + run.file)};
}

}  // namespace

std::vector<ReplayedLog> ReplayLogs(const ReplayOptions& options) {
  if (!options.under.empty()) RequirePolicies({options.under});
  const Found found = FindRuns(options);
  std::vector<ReplayedLog> logs;
  logs.reserve(found.runs.size());
  for (const EventIndexEntry& run : found.runs) logs.push_back(ReplayOne(found, run, options));
  return logs;
}

std::string TextOf(const std::vector<ReplayedLog>& logs) {
  std::string text;
  for (const ReplayedLog& log : logs) {
    const gpushare_replay_result& result = log.outcome.result;
    text += log.file + ", under " + log.under + ": ";
    if (log.matches()) {
      text +=
          Format("the same, %lld events and %lld decisions.\n",
                 static_cast<long long>(result.events), static_cast<long long>(result.decisions));
      continue;
    }
    text += Format(
        "differs after %lld of %lld events and %lld of %lld decisions.\n",
        static_cast<long long>(result.events_equal), static_cast<long long>(result.events),
        static_cast<long long>(result.decisions_equal), static_cast<long long>(result.decisions));
    text += "  " + log.outcome.difference + "\n";
  }
  return text;
}

}  // namespace gpushare::tool
