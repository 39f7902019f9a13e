#include "tools/gpushare/colocate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <thread>
#include <tuple>

#include "tools/gpushare/errors.h"
#include "tools/gpushare/files.h"
#include "tools/gpushare/limits.h"
#include "tools/gpushare/load_plan.h"
#include "tools/gpushare/parallel.h"
#include "tools/gpushare/preflight.h"
#include "tools/gpushare/progress.h"
#include "tools/gpushare/runner.h"
#include "tools/gpushare/text.h"

namespace gpushare::tool {

namespace {

constexpr int64_t kQueriesDefault = 3000;

// The part of a case that decides the references: cases that agree on it share them.
using LoadKey = std::tuple<std::vector<int>, double, int64_t>;
using BoundKey = std::pair<LoadKey, double>;

struct Alone {
  std::vector<LcPlan> plans;  // arrivals of this load
  RunResult result;
};

class Colocation {
 public:
  Colocation(const Scenario& scenario, const ColocateOptions& options)
      : scenario_(scenario), options_(options) {
    device_.device = options.device;
    device_.tier = options.tier;
    device_.profile = scenario.profile;
    device_.seed = scenario.seed;
    asked_ = options.policies.empty() ? scenario.policies : options.policies;
    SelectCases();
  }

  ColocateResult Execute() {
    ColocateResult out;
    out.device = Preflight(scenario_, device_, asked_);
    out.tier = options_.tier;
    out.seed = scenario_.seed;
    out.policies = asked_;
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    // Runs on a real device would disturb each other.
    threads_ = !out.device.virtual_time ? 1 : options_.threads == 0 ? processors : options_.threads;
    if (!options_.out.empty()) MakeFolder(options_.out + "/events");
    ListRuns();
    Progress progress(solo_ns_.size() + be_alone_.size() + alone_.size() + library_.size() +
                      policy_runs_.size());
    MeasureSolo(progress);
    MakePlans();
    MeasureAlone(progress);
    RunPolicies(progress);
    Assemble(out);
    return out;
  }

 private:
  struct PolicyRun {
    const Case* one = nullptr;
    std::string policy;
    RunResult result;
    EventIndexEntry events;
  };

  void SelectCases() {
    for (const std::string& name : options_.cases) {
      const auto found = std::find_if(scenario_.cases.begin(), scenario_.cases.end(),
                                      [&](const Case& one) { return one.name == name; });
      if (found == scenario_.cases.end()) {
        throw InputError("The scenario '" + scenario_.name + "' has no case '" + name + "'.");
      }
    }
    for (const Case& one : scenario_.cases) {
      const bool wanted =
          options_.cases.empty() ||
          std::find(options_.cases.begin(), options_.cases.end(), one.name) != options_.cases.end();
      if (wanted) cases_.push_back(&one);
    }
  }

  LoadKey KeyOf(const Case& one) const { return {one.lc, one.load, QueriesOf(one)}; }
  BoundKey BoundKeyOf(const Case& one) const { return {KeyOf(one), one.p99_bound}; }

  int64_t QueriesOf(const Case& one) const {
    if (one.queries > 0) return one.queries;
    if (scenario_.queries > 0) return scenario_.queries;
    return scenario_.duration_ns > 0 ? kQueriesMax : kQueriesDefault;
  }

  void ListRuns() {
    for (const Case* one : cases_) {
      for (const int index : one->lc) solo_ns_[index] = 0;
      for (const int index : one->be) be_alone_[index];
      alone_[KeyOf(*one)];
      library_.emplace(BoundKeyOf(*one), std::make_pair(one, RunResult()));
      for (const std::string& policy : PoliciesOf(*one, asked_)) {
        policy_runs_.push_back({one, policy, {}, {}});
      }
    }
    ChooseTraced();
  }

  // The run that trace.pftrace shows: the scenario's choice if it runs, else the first case under
  // `adaptive`, else the first run.
  void ChooseTraced() {
    const std::string policy =
        scenario_.traced_policy.empty() ? "adaptive" : scenario_.traced_policy;
    int best = -1;
    for (PolicyRun& run : policy_runs_) {
      const int score = 2 * (run.one->name == scenario_.traced_case) + (run.policy == policy) + 1;
      if (score > best) {
        best = score;
        traced_ = &run;
      }
    }
  }

  void MeasureSolo(Progress& progress) {
    std::vector<int> lc;
    std::vector<int> be;
    for (const auto& entry : solo_ns_) lc.push_back(entry.first);
    for (const auto& entry : be_alone_) be.push_back(entry.first);
    RunParallel(lc.size() + be.size(), threads_, stop_, [&](size_t job) {
      if (job < lc.size()) {
        const LcApp& app = scenario_.lc[static_cast<size_t>(lc[job])];
        solo_ns_.at(lc[job]) = app.solo_ns > 0 ? app.solo_ns : MeasureSoloNs(device_, app);
        progress.Step(app.name + " alone, one query");
      } else {
        const int index = be[job - lc.size()];
        RunBeAlone(index, be_alone_.at(index));
        progress.Step(scenario_.be[static_cast<size_t>(index)].name + " alone");
      }
    });
  }

  void RunBeAlone(int index, RunResult& result) {
    RunPlan plan;
    plan.device = device_;
    plan.policy = "bare";
    plan.be.push_back({&scenario_.be[static_cast<size_t>(index)], false});
    plan.span_ns = scenario_.be_alone_ns;
    plan.stop = &stop_;
    const RunOutcome outcome = ExecuteRun(plan);
    FillCommon(outcome, result);
    const BeWork& work = outcome.be[0];
    if (work.work_per_second <= 0) {
      throw RunError("BE app '" + plan.be[0].app->name + "' does no work alone within " +
                     std::to_string(plan.span_ns) + " ns of device time.");
    }
    result.be.push_back({plan.be[0].app->name, 1, work.work_per_second, work.tasks, 0});
  }

  void MakePlans() {
    for (auto& [key, alone] : alone_) {
      const auto& [lc, load, queries] = key;
      alone.plans = PlanLoad(scenario_, lc, load, queries, solo_ns_);
    }
  }

  void MeasureAlone(Progress& progress) {
    std::vector<Alone*> jobs;
    std::vector<double> loads;
    for (auto& [key, alone] : alone_) {
      jobs.push_back(&alone);
      loads.push_back(std::get<1>(key));
    }
    RunParallel(jobs.size(), threads_, stop_, [&](size_t job) {
      Alone& alone = *jobs[job];
      RunPlan plan;
      plan.device = device_;
      plan.policy = "bare";
      plan.lc = alone.plans;
      plan.span_ns = ClosedLoopSpanNs(plan);
      plan.stop = &stop_;
      const RunOutcome outcome = ExecuteRun(plan);
      FillCommon(outcome, alone.result);
      alone.result.policy = kLcAlone;
      for (size_t i = 0; i < outcome.lc.size(); ++i) {
        LcResult app = SummariseLatencies(plan.lc[i].app->name, outcome.lc[i].latencies_ns);
        app.solo_ns = plan.lc[i].solo_ns;
        CompareWithAlone(LcResult(app), outcome.lc[i].latencies_ns, 0, 0, app);
        alone.result.lc.push_back(app);
      }
      FillThroughput(alone.result);
      progress.Step(Format("LC alone at load %.3g", loads[job]));
    });
  }

  void RunPolicies(Progress& progress) {
    std::vector<std::pair<const Case*, RunResult>*> library;
    for (auto& entry : library_) library.push_back(&entry.second);
    RunParallel(library.size() + policy_runs_.size(), threads_, stop_, [&](size_t job) {
      if (job < library.size()) {
        RunUnder("adaptive", *library[job]->first, false, library[job]->second, nullptr);
        library[job]->second.policy = kLibraryAlone;
        progress.Step(library[job]->first->name + ", library alone");
      } else {
        PolicyRun& run = policy_runs_[job - library.size()];
        RunUnder(run.policy, *run.one, true, run.result, &run);
        progress.Step(run.one->name + ", " + run.policy);
      }
    });
  }

  int64_t ClosedLoopSpanNs(const RunPlan& plan) const {
    const bool closed = std::any_of(plan.lc.begin(), plan.lc.end(),
                                    [](const LcPlan& lc) { return lc.closed_queries > 0; });
    return closed ? scenario_.duration_ns : 0;
  }

  static double BoundOf(const Case& one, const LcApp& app) {
    return one.p99_bound > 0 ? one.p99_bound : app.p99_bound;
  }

  int64_t TargetOf(const LcPlan& plan) const {
    if (plan.app->target_ns > 0) return plan.app->target_ns;
    return std::llround(plan.app->target_solo_factor * static_cast<double>(plan.solo_ns));
  }

  void RunUnder(const std::string& policy, const Case& one, bool with_be, RunResult& result,
                PolicyRun* traced) {
    const Alone& alone = alone_.at(KeyOf(one));
    RunPlan plan;
    plan.device = device_;
    plan.policy = policy;
    plan.lc = alone.plans;
    plan.stop = &stop_;
    const bool reserve = with_be && ListNamesPolicy(scenario_.reservation_policies, policy);
    for (size_t i = 0; i < plan.lc.size(); ++i) {
      LcPlan& lc = plan.lc[i];
      lc.p99_bound = BoundOf(one, *lc.app);
      lc.p99_alone_ns = alone.result.lc[i].p99_ns;
      // A target beside a bound is for the policies that know no bound.
      const bool told = lc.p99_bound == 0 || ListNamesPolicy(scenario_.target_policies, policy);
      lc.target_ns = told ? TargetOf(lc) : 0;
      lc.reserve = reserve;
    }
    if (with_be) {
      for (const int index : one.be) {
        plan.be.push_back({&scenario_.be[static_cast<size_t>(index)], reserve});
      }
    }
    plan.span_ns = ClosedLoopSpanNs(plan);
    if (traced != nullptr && !options_.out.empty()) {
      PlanTrace(alone.result.span_ns, *traced, plan.trace);
    }
    const RunOutcome outcome = ExecuteRun(plan);
    FillCommon(outcome, result);
    FillPolicyRun(one, policy, alone, plan, outcome, result);
    if (outcome.traced && traced != nullptr) IndexEvents(outcome, *traced);
  }

  void PlanTrace(int64_t span_ns, PolicyRun& run, TraceWindow& window) const {
    // A fifth into the run: models have settled, and a short run is seen whole.
    window.length_ns = std::min(options_.trace_window_ns, std::max<int64_t>(span_ns, 1));
    window.from_ns = std::min(span_ns / 5, span_ns - window.length_ns);
    run.events.file =
        "events/" + FileNameOf(run.one->name) + "-" + FileNameOf(run.policy) + ".gpulog";
    window.event_log_path = options_.out + "/" + run.events.file;
    run.events.chosen = &run == traced_;
    if (run.events.chosen) window.perfetto_path = options_.out + "/trace.pftrace";
  }

  static std::string FileNameOf(std::string name) {
    std::replace(name.begin(), name.end(), ':', '_');
    return name;
  }

  void IndexEvents(const RunOutcome& outcome, PolicyRun& run) const {
    run.events.case_name = run.one->name;
    run.events.policy = run.policy;
    run.events.start_ns = outcome.start_ns;
    run.events.apps = outcome.apps;
    run.events.kernels = outcome.kernels;
    run.result.events = run.events.file;
    run.result.decision_digest = HexText(outcome.trace.decision_digest);
    run.result.events_dropped = outcome.trace.dropped;
  }

  void FillPolicyRun(const Case& one, const std::string& policy, const Alone& alone,
                     const RunPlan& plan, const RunOutcome& outcome, RunResult& result) const {
    result.policy = policy;
    for (size_t i = 0; i < plan.lc.size(); ++i) {
      const std::vector<int64_t>& samples = outcome.lc[i].latencies_ns;
      LcResult app = SummariseLatencies(plan.lc[i].app->name, samples);
      app.solo_ns = plan.lc[i].solo_ns;
      app.target_ns = plan.lc[i].target_ns;
      CompareWithAlone(alone.result.lc[i], samples, BoundOf(one, *plan.lc[i].app),
                       TargetOf(plan.lc[i]), app);
      result.lc.push_back(app);
    }
    for (size_t i = 0; i < plan.be.size(); ++i) {
      const BeWork& work = outcome.be[i];
      const RunResult& solo = be_alone_.at(one.be[i]);
      result.be.push_back({plan.be[i].app->name, work.work_per_second / solo.be[0].work_per_second,
                           work.work_per_second, work.tasks, work.evictions});
    }
    FillThroughput(result);
  }

  static void FillCommon(const RunOutcome& outcome, RunResult& result) {
    result.realised_load = outcome.realised_load;
    result.utilisation = outcome.utilisation;
    result.prediction_error = outcome.stats.prediction_error;
    result.prediction_samples = outcome.stats.prediction_samples;
    result.evictions.count = outcome.stats.evictions;
    result.evictions.p50_ns = outcome.stats.eviction_latency.p50_ns;
    result.evictions.p99_ns = outcome.stats.eviction_latency.p99_ns;
    result.evictions_blocked = outcome.stats.evictions_blocked;
    result.launches = outcome.stats.launches;
    result.fast_path_launches = outcome.stats.fast_path_launches;
    result.span_ns = outcome.span_ns;
  }

  // Against the bound of its own case: references are shared between cases that differ in it.
  void AddReference(const Case& one, RunResult reference, ColocateResult& out) const {
    reference.case_name = one.name;
    reference.load = one.load;
    out.runs.push_back(std::move(reference));
  }

  RunResult BeAloneOf(const Case& one) const {
    RunResult all;
    for (const int index : one.be) {
      const RunResult& single = be_alone_.at(index);
      all.be.push_back(single.be[0]);
      all.utilisation += single.utilisation / static_cast<double>(one.be.size());
      all.launches += single.launches;
      all.span_ns = single.span_ns;
    }
    all.policy = kBeAlone;
    FillThroughput(all);
    return all;
  }

  void Assemble(ColocateResult& out) {
    size_t next = 0;
    for (const Case* one : cases_) {
      AddReference(*one, alone_.at(KeyOf(*one)).result, out);
      AddReference(*one, library_.at(BoundKeyOf(*one)).second, out);
      if (!one->be.empty()) {
        AddReference(*one, BeAloneOf(*one), out);
        out.runs.back().load = 0;
      }
      for (; next < policy_runs_.size() && policy_runs_[next].one == one; ++next) {
        AddReference(*one, policy_runs_[next].result, out);
        if (!policy_runs_[next].events.file.empty())
          out.events.push_back(policy_runs_[next].events);
      }
    }
  }

  const Scenario& scenario_;
  const ColocateOptions& options_;
  DeviceChoice device_;
  std::vector<std::string> asked_;
  std::vector<const Case*> cases_;
  unsigned threads_ = 1;
  std::atomic<bool> stop_{false};
  std::map<int, int64_t> solo_ns_;
  std::map<int, RunResult> be_alone_;
  std::map<LoadKey, Alone> alone_;
  std::map<BoundKey, std::pair<const Case*, RunResult>> library_;
  std::vector<PolicyRun> policy_runs_;
  const PolicyRun* traced_ = nullptr;
};

}  // namespace

ColocateResult Colocate(const Scenario& scenario, const ColocateOptions& options) {
  return Colocation(scenario, options).Execute();
}

bool IsReference(const std::string& policy) {
  return policy == kLcAlone || policy == kLibraryAlone || policy == kBeAlone;
}

}  // namespace gpushare::tool
