#include "tools/gpushare/colocate/colocate.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <tuple>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/progress.h"
#include "tools/gpushare/base/suggest.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/colocate/load_plan.h"
#include "tools/gpushare/colocate/parallel.h"
#include "tools/gpushare/colocate/plain_rows.h"
#include "tools/gpushare/colocate/preflight.h"
#include "tools/gpushare/colocate/rounds.h"
#include "tools/gpushare/run/run_result.h"
#include "tools/gpushare/run/runner.h"

namespace gpushare::tool {

namespace {

constexpr int64_t kQueriesDefault = 3000;
constexpr int kRoundsDefault = 3;
// Real devices: most queries of a closed loop in the traced run.
constexpr int64_t kTracedQueries = 64;

// The part of a case that decides its references (LC alone and library alone): LC apps, load,
// number of queries. Cases with equal keys share references. On a real device the last part is the
// number of the case, so that each case has references from its own rounds.
using LoadKey = std::tuple<std::vector<int>, double, int64_t, size_t>;
using BoundKey = std::tuple<LoadKey, double, double>;  // with the bounds on p99 and p50

struct Alone {
  std::vector<LcPlan> plans;  // arrivals of this load
  RunOutcome pooled;          // real devices: over the rounds so far
  RunResult result;
  bool done = false;
};

struct LibraryAlone {
  const Case* one = nullptr;
  RunOutcome pooled;
  RunResult result;
  bool done = false;
};

// The LC apps are the first ones of a run.
std::vector<LcPromise> PromisesOf(const RunPlan& plan, const RunOutcome& outcome,
                                  const RunResult& lc_alone) {
  std::vector<LcPromise> promises;
  for (size_t i = 0; i < outcome.lc.size(); ++i) {
    const gpushare_app_guarantee& guarantee = outcome.lc[i].guarantee;
    promises.push_back({outcome.apps[i].id, guarantee.target_ns, guarantee.p99_bound,
                        guarantee.p50_bound, lc_alone.lc[i].p99_ns, lc_alone.lc[i].p50_ns,
                        plan.lc[i].solo_ns, guarantee.tail_credit, guarantee.queries_late_for_be});
  }
  return promises;
}

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
    RequirePolicies(WithoutPlainRows(asked_));
    OpenDevice(out);
    LeaveOutPlainRows();
    Preflight(scenario_, device_, *workloads_, asked_);
    out.tier = options_.tier;
    out.seed = scenario_.seed;
    out.policies = asked_;
    out.rounds = rounds_;
    if (options_.begin) options_.begin(out);
    if (!options_.out.empty()) MakeFolder(options_.out + "/events");
    ListRuns();
    try {
      Measure(out);
    } catch (const std::exception&) {
      out.stopped = std::current_exception();
    }
    Assemble(out);
    return out;
  }

 private:
  void Measure(ColocateResult& out) {
    const size_t rows = alone_.size() + library_.size() + policy_runs_.size();
    Progress progress(solo_ns_.size() + be_alone_.size() + rows * static_cast<size_t>(rounds_),
                      options_.quiet);
    MeasureSolo(progress);
    MakePlans();
    if (device_.real_time) {
      RunRounds(progress, out);
    } else {
      MeasureAlone(progress);
      RunPolicies(progress);
    }
  }

  struct PolicyRun {
    const Case* one = nullptr;
    std::string policy;
    RunOutcome pooled;
    RunResult result;
    EventIndexEntry events;
    bool done = false;
  };

  void OpenDevice(ColocateResult& out) {
    // Kept while the workloads are made: the library must set its options of the device first.
    const RuntimeHandle runtime = OpenRuntime(device_, "bare");
    out.device = FactsOf(runtime.get());
    workloads_ = MakeWorkloads(out.device);
    out.hardware = workloads_->Hardware();
    device_.real_time = !out.device.virtual_time;
    device_name_ = out.device.name;
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    // One thread on a real device, where runs would disturb each other.
    threads_ = device_.real_time ? 1 : options_.threads == 0 ? processors : options_.threads;
    if (device_.real_time) {
      rounds_ = options_.rounds > 0 ? options_.rounds : kRoundsDefault;
    } else if (options_.rounds > 1) {
      throw InputError("--rounds is " + std::to_string(options_.rounds) +
                       ", and on a device in virtual time every row has 1 round.");
    }
  }

  // Removes the rows without the library on devices that have no bare launches.
  void LeaveOutPlainRows() {
    if (workloads_->HasRaw()) return;
    const std::vector<std::string> rest = WithoutPlainRows(asked_);
    if (rest.empty() && !asked_.empty()) {
      throw InputError("The row '" + asked_[0] + "' exists on a GPU only.");
    }
    asked_ = rest;
  }

  void SelectCases() {
    for (const std::string& name : options_.cases) {
      const auto found = std::find_if(scenario_.cases.begin(), scenario_.cases.end(),
                                      [&](const Case& one) { return one.name == name; });
      if (found == scenario_.cases.end()) {
        std::vector<std::string> names;
        for (const Case& one : scenario_.cases) names.push_back(one.name);
        throw InputError("The scenario '" + scenario_.name + "' has no case '" +
                         name.substr(0, 60) + "'" + DidYouMean(name, names) +
                         ListOf("cases", names));
      }
    }
    for (const Case& one : scenario_.cases) {
      const bool wanted =
          options_.cases.empty() ||
          std::find(options_.cases.begin(), options_.cases.end(), one.name) != options_.cases.end();
      if (wanted) cases_.push_back(&one);
    }
  }

  // Whether an earlier run finished the case.
  bool IsKept(const Case& one) const {
    const std::vector<RunResult>& runs = options_.finished.runs;
    return std::any_of(runs.begin(), runs.end(),
                       [&](const RunResult& run) { return run.case_name == one.name; });
  }

  LoadKey KeyOf(const Case& one) const {
    const auto number = static_cast<size_t>(&one - scenario_.cases.data());
    return {one.lc, one.load, QueriesOf(one), device_.real_time ? number : 0};
  }
  BoundKey BoundKeyOf(const Case& one) const { return {KeyOf(one), one.p99_bound, one.p50_bound}; }

  int64_t QueriesOf(const Case& one) const {
    if (one.queries > 0) return one.queries;
    if (scenario_.queries > 0) return scenario_.queries;
    return scenario_.duration_ns > 0 ? kQueriesMax : kQueriesDefault;
  }

  void ListRuns() {
    for (const Case* one : cases_) {
      if (IsKept(*one)) continue;
      for (const int index : one->lc) solo_ns_[index] = 0;
      for (const int index : one->be) be_alone_[index];
      alone_[KeyOf(*one)];
      library_[BoundKeyOf(*one)].one = one;
      for (const std::string& policy : PoliciesOf(*one, asked_)) {
        policy_runs_.push_back({one, policy, {}, {}, {}, false});
      }
    }
    ChooseTraced();
  }

  // Chooses the run that trace.pftrace shows: the scenario's choice if it runs, else the first case
  // under `adaptive`, else the first run. None if the earlier run has traced it.
  void ChooseTraced() {
    const std::vector<EventIndexEntry>& kept = options_.finished.events;
    if (std::any_of(kept.begin(), kept.end(), [](const auto& run) { return run.chosen; })) return;
    const std::string policy =
        scenario_.traced_policy.empty() ? "adaptive" : scenario_.traced_policy;
    int best = -1;
    for (PolicyRun& run : policy_runs_) {
      if (IsPlainRow(run.policy)) continue;  // runs without the library, which records the trace
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
        solo_ns_.at(lc[job]) =
            app.solo_ns > 0 ? app.solo_ns : MeasureSoloNs(device_, *workloads_, app);
        progress.Step(app.name + " alone, one query");
      } else {
        const int index = be[job - lc.size()];
        be_alone_.at(index) = RunBeAlone(index);
        progress.Step(scenario_.be[static_cast<size_t>(index)].name + " alone");
      }
    });
  }

  RunPlan NewPlan(const std::string& policy) const {
    RunPlan plan;
    plan.device = device_;
    plan.workloads = workloads_.get();
    plan.policy = policy;
    plan.stop = &stop_;
    plan.fused = &scenario_.fused;
    return plan;
  }

  RunResult RunBeAlone(int index) {
    RunPlan plan = NewPlan("bare");
    plan.be.push_back({&scenario_.be[static_cast<size_t>(index)], false});
    plan.span_ns = scenario_.be_alone_ns;
    return BeAloneResult(plan, ExecuteRun(plan));
  }

  void MakePlans() {
    for (auto& [key, alone] : alone_) {
      const auto& [lc, load, queries, number] = key;
      alone.plans = PlanLoad(scenario_, lc, load, queries, solo_ns_);
    }
  }

  RunPlan PlanAlone(const Alone& alone) const {
    RunPlan plan = NewPlan("bare");
    plan.raw = workloads_->HasRaw();
    plan.lc = alone.plans;
    plan.span_ns = ClosedLoopSpanNs(plan);
    return plan;
  }

  static RunResult AloneResult(const RunPlan& plan, const RunOutcome& outcome) {
    RunResult result = LcAloneResult(plan, outcome);
    result.policy = kLcAlone;
    return result;
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
      const RunPlan plan = PlanAlone(alone);
      alone.result = AloneResult(plan, ExecuteRun(plan));
      alone.done = true;
      progress.Step(Format("LC alone at load %.3g", loads[job]));
    });
  }

  void RunPolicies(Progress& progress) {
    std::vector<LibraryAlone*> library;
    for (auto& entry : library_) library.push_back(&entry.second);
    RunParallel(library.size() + policy_runs_.size(), threads_, stop_, [&](size_t job) {
      if (job < library.size()) {
        RunLibraryAlone(*library[job]);
        progress.Step(library[job]->one->name + ", library alone");
      } else {
        PolicyRun& run = policy_runs_[job - library.size()];
        RunPolicy(run);
        progress.Step(run.one->name + ", " + run.policy);
      }
    });
  }

  void RunLibraryAlone(LibraryAlone& library) {
    const RunPlan plan = PlanUnder("adaptive", *library.one, false);
    library.result = ResultUnder(kLibraryAlone, *library.one, plan, ExecuteRun(plan));
    library.done = true;
  }

  void RunPolicy(PolicyRun& run) {
    RunPlan plan = PlanUnder(run.policy, *run.one, true);
    if (!options_.out.empty()) {
      PlanTrace(alone_.at(KeyOf(*run.one)).result.span_ns, run, plan.trace);
    }
    const RunOutcome outcome = ExecuteRun(plan);
    run.result = ResultUnder(run.policy, *run.one, plan, outcome);
    if (outcome.traced) IndexEvents(plan, outcome, run);
    run.done = true;
  }

  // --- real devices ---

  // Runs one round of a row and adds it to the rounds so far.
  void RunRound(RunPlan plan, int round, RunOutcome& pooled) const {
    plan.lc = RoundOf(plan.lc, round, rounds_);
    if (plan.span_ns > 0) plan.span_ns = std::max<int64_t>(1, plan.span_ns / rounds_);
    Pool(ExecuteRun(plan), pooled);
  }

  void RunRounds(Progress& progress, ColocateResult& out) {
    for (const Case* one : cases_) {
      if (IsKept(*one)) continue;
      for (int round = 0; round < rounds_; ++round) RunCaseRound(*one, round, progress);
      for (PolicyRun& run : policy_runs_) {
        if (run.one != one) continue;
        if (!options_.out.empty() && !IsPlainRow(run.policy)) TraceShortRun(run);
        run.done = true;
      }
      alone_.at(KeyOf(*one)).done = true;
      library_.at(BoundKeyOf(*one)).done = true;
      if (!options_.save) continue;
      Assemble(out);
      options_.save(out);
    }
  }

  void RunCaseRound(const Case& one, int round, Progress& progress) {
    const std::string suffix = Format(", round %d of %d", round + 1, rounds_);
    Alone& alone = alone_.at(KeyOf(one));
    const RunPlan alone_plan = PlanAlone(alone);
    RunRound(alone_plan, round, alone.pooled);
    alone.result = AloneResult(alone_plan, alone.pooled);
    progress.Step(one.name + ", LC alone" + suffix);
    LibraryAlone& library = library_.at(BoundKeyOf(one));
    const RunPlan library_plan = PlanUnder("adaptive", one, false);
    RunRound(library_plan, round, library.pooled);
    library.result = ResultUnder(kLibraryAlone, one, library_plan, library.pooled);
    progress.Step(one.name + ", library alone" + suffix);
    for (PolicyRun& run : policy_runs_) {
      if (run.one != &one) continue;
      const RunPlan plan = PlanUnder(run.policy, one, true);
      RunRound(plan, round, run.pooled);
      run.result = ResultUnder(run.policy, one, plan, run.pooled);
      progress.Step(one.name + ", " + run.policy + suffix);
    }
  }

  // Traces a separate short run, so that tracing does not change the measured rows.
  void TraceShortRun(PolicyRun& run) {
    RunPlan plan = PlanUnder(run.policy, *run.one, true);
    plan.lc = Beginning(plan.lc, options_.trace_window_ns, kTracedQueries);
    plan.span_ns = std::min(plan.span_ns, options_.trace_window_ns);
    PlanTrace(options_.trace_window_ns, run, plan.trace);
    const RunOutcome outcome = ExecuteRun(plan);
    if (outcome.traced) IndexEvents(plan, outcome, run);
  }

  int64_t ClosedLoopSpanNs(const RunPlan& plan) const {
    const bool closed = std::any_of(plan.lc.begin(), plan.lc.end(),
                                    [](const LcPlan& lc) { return lc.closed_queries > 0; });
    return closed ? scenario_.duration_ns : 0;
  }

  RunPlan PlanUnder(const std::string& policy, const Case& one, bool with_be) const {
    const Alone& alone = alone_.at(KeyOf(one));
    RunPlan plan = NewPlan(policy);
    plan.raw = IsPlainRow(policy);
    plan.raw_form = PlainFormOf(policy);
    plan.lc = alone.plans;
    if (HasPartitions(scenario_, one.lc, policy)) plan.partitions = &scenario_.partitions;
    const bool reserve = with_be && ListNamesPolicy(scenario_.reservation_policies, policy);
    for (size_t i = 0; i < plan.lc.size(); ++i) {
      LcPlan& lc = plan.lc[i];
      lc.p99_bound = BoundOf(one, *lc.app);
      lc.p50_bound = one.p50_bound > 0 ? one.p50_bound : lc.app->p50_bound;
      lc.p99_alone_ns = alone.result.lc[i].p99_ns;
      // With a bound, only policies that do not know bounds get the target.
      const bool bounded = lc.p99_bound > 0 || lc.p50_bound > 0;
      const bool has_target = !bounded || ListNamesPolicy(scenario_.target_policies, policy);
      lc.target_ns = has_target ? TargetOf(lc) : 0;
      lc.reserve = reserve;
    }
    if (with_be) {
      for (const int index : one.be) {
        plan.be.push_back({&scenario_.be[static_cast<size_t>(index)], reserve});
      }
    }
    plan.span_ns = ClosedLoopSpanNs(plan);
    return plan;
  }

  RunResult ResultUnder(const std::string& row, const Case& one, const RunPlan& plan,
                        const RunOutcome& outcome) const {
    RunResult result =
        PolicyResult(one, plan, outcome, alone_.at(KeyOf(one)).result, BeAloneOf(one));
    result.policy = row;
    return result;
  }

  void PlanTrace(int64_t span_ns, PolicyRun& run, TraceWindow& window) const {
    // The window starts after a fifth of the run, when the models have settled. It covers all of a
    // short run.
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

  void IndexEvents(const RunPlan& plan, const RunOutcome& outcome, PolicyRun& run) const {
    run.events.case_name = run.one->name;
    run.events.policy = run.policy;
    run.events.start_ns = outcome.start_ns;
    run.events.apps = outcome.apps;
    run.events.kernels = outcome.kernels;
    run.events.promises = PromisesOf(plan, outcome, alone_.at(KeyOf(*run.one)).result);
    // A log has no record of a plan of partitions, so such a run does not replay.
    if (!device_.real_time && plan.trace.from_ns == 0 && plan.partitions == nullptr) {
      run.events.origin = {scenario_.file, HexText(scenario_.digest), device_name_, device_.tier,
                           device_.seed};
    }
    run.result.events = run.events.file;
    run.result.decision_digest = HexText(outcome.trace.decision_digest);
    run.result.events_dropped = outcome.trace.dropped;
  }

  static void AddRow(const Case& one, RunResult row, ColocateResult& out) {
    row.case_name = one.name;
    row.load = one.load;
    out.runs.push_back(std::move(row));
  }

  // The solo runs of the case's BE apps, in the order of a plan's BE apps.
  std::vector<const RunResult*> BeAloneOf(const Case& one) const {
    std::vector<const RunResult*> alone;
    for (const int index : one.be) alone.push_back(&be_alone_.at(index));
    return alone;
  }

  bool IsFinished(const Case& one) const {
    if (!alone_.at(KeyOf(one)).done || !library_.at(BoundKeyOf(one)).done) return false;
    return std::all_of(policy_runs_.begin(), policy_runs_.end(),
                       [&](const PolicyRun& run) { return run.one != &one || run.done; });
  }

  // The rows of all cases that are finished, in the scenario's order.
  void Assemble(ColocateResult& out) const {
    out.runs.clear();
    out.events.clear();
    out.missing_cases.clear();
    for (const Case* one : cases_) {
      if (IsKept(*one)) {
        AddKept(*one, out);
      } else if (IsFinished(*one)) {
        AddFinished(*one, out);
      } else {
        out.missing_cases.push_back(one->name);
      }
    }
    out.cases_finished = cases_.size() - out.missing_cases.size();
  }

  void AddKept(const Case& one, ColocateResult& out) const {
    for (const RunResult& run : options_.finished.runs) {
      if (run.case_name == one.name) out.runs.push_back(run);
    }
    for (const EventIndexEntry& entry : options_.finished.events) {
      if (entry.case_name == one.name) out.events.push_back(entry);
    }
  }

  void AddFinished(const Case& one, ColocateResult& out) const {
    AddRow(one, alone_.at(KeyOf(one)).result, out);
    AddRow(one, library_.at(BoundKeyOf(one)).result, out);
    if (!one.be.empty()) {
      RunResult be_alone = JoinBeAlone(BeAloneOf(one));
      be_alone.policy = kBeAlone;
      AddRow(one, std::move(be_alone), out);
      out.runs.back().load = 0;
    }
    for (const PolicyRun& run : policy_runs_) {
      if (run.one != &one) continue;
      AddRow(one, run.result, out);
      if (!run.events.file.empty()) out.events.push_back(run.events);
    }
  }

  const Scenario& scenario_;
  const ColocateOptions& options_;
  DeviceChoice device_;
  std::string device_name_;  // of what was opened: never "auto"
  std::vector<std::string> asked_;
  std::vector<const Case*> cases_;
  std::unique_ptr<Workloads> workloads_;
  unsigned threads_ = 1;
  int rounds_ = 1;
  std::atomic<bool> stop_{false};
  std::map<int, int64_t> solo_ns_;
  std::map<int, RunResult> be_alone_;
  std::map<LoadKey, Alone> alone_;
  std::map<BoundKey, LibraryAlone> library_;
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
