#include "tools/gpushare/run/runner.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/interrupt.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/pause.h"
#include "tools/gpushare/run/app_driver.h"
#include "tools/gpushare/run/apps.h"
#include "tools/gpushare/run/metrics.h"
#include "tools/gpushare/run/raw_run.h"
#include "tools/gpushare/run/run_setup.h"

namespace gpushare::tool {

namespace {

// The library takes arrival 0 for "now", so runs start a little after the clock's zero.
constexpr int64_t kLeadNs = 1'000'000;
// Most device time of the drain after the last arrival, in which an overloaded baseline works off
// its backlog. One hour of device time is the library's limit for a deadline.
constexpr int64_t kDrainNs = int64_t{3600} * 1'000'000'000;

// Device time of one step of a drain, and the time that running BE tasks get to end.
constexpr int64_t kDrainStepNs = 1'000'000'000;
// Closed loops: the largest step of the clock while only answers can cause new queries.
constexpr int64_t kAnswerStepNs = 1'000'000;

// Real time: after a drain of five minutes an unstable baseline is given up. Callbacks may run a
// little after the drain that waited for their tasks.
constexpr int64_t kRealDrainNs = int64_t{300} * 1'000'000'000;
constexpr int64_t kCallbackLagNs = 100'000'000;
// Real time: the warm-up, which is not counted: queries of each LC app, one after another, and time
// for BE. Modules load, clocks rise and the models get their first samples.
constexpr int kWarmUpQueries = 10;
constexpr int64_t kWarmUpNs = 50'000'000;
constexpr int64_t kWarmUpNsMax = int64_t{3} * 1'000'000'000;

class Run {
 public:
  explicit Run(const RunPlan& plan)
      : plan_(plan),
        real_time_(plan.device.real_time),
        setup_(OpenRuntime(plan.device, plan.policy), plan, fault_) {}

  // After a failure in real time callbacks may still run; they must end before the apps do.
  ~Run() {
    if (!real_time_) return;
    for (auto& be : be_) be->Stop(start_ns_);
    int64_t now_ns = 0;
    if (gpushare_now_ns(runtime_.get(), &now_ns) != GPUSHARE_OK) return;
    gpushare_runtime_shutdown(runtime_.get(), now_ns + kDrainStepNs);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  RunOutcome Execute() {
    if (real_time_) {
      WarmUp();
    } else {
      start_ns_ = NowNs(runtime_.get()) + kLeadNs;
      AdvanceTo(start_ns_);
    }
    const int64_t busy_before_ns = Stats().busy_sm_ns;
    // Before the first submission, so that the log can be replayed.
    if (!real_time_ && TraceEdgeNs() == start_ns_) BeginTrace();
    for (auto& lc : lc_) lc->Start(start_ns_);
    for (auto& be : be_) {
      be->CountFrom(start_ns_);
      if (!real_time_ && !InRounds(plan_)) be->Start();
    }
    if (InRounds(plan_)) {
      DriveRounds();
    } else if (real_time_) {
      DriveRealTime();
    } else {
      DriveArrivals();
    }
    const int64_t end_ns = std::max(NowNs(runtime_.get()), start_ns_ + 1);
    for (auto& be : be_) be->Stop(end_ns);
    ReadGuarantees();
    RunOutcome outcome;
    outcome.start_ns = start_ns_;
    outcome.span_ns = end_ns - start_ns_;
    const double capacity = static_cast<double>(outcome.span_ns) *
                            static_cast<double>(FactsOf(runtime_.get()).sm_count);
    outcome.utilisation = static_cast<double>(Stats().busy_sm_ns - busy_before_ns) / capacity;
    if (real_time_) {
      DrainRealTime();
    } else {
      Drain();
    }
    outcome.traced = traced_;
    outcome.trace = trace_summary_;
    Shutdown();
    Collect(outcome);
    return outcome;
  }

 private:
  gpushare_runtime_stats Stats() {
    gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
    Check(gpushare_runtime_stats_get(runtime_.get(), &stats));
    return stats;
  }

  void ThrowOnFault() {
    if (fault_.any()) {
      throw RunError("The run under policy '" + plan_.policy + "' fails: " + fault_.message());
    }
    ThrowIfInterrupted();
    if (plan_.stop != nullptr && plan_.stop->load(std::memory_order_relaxed)) {
      throw RunError("The run is given up because another one failed.");
    }
  }

  int64_t TraceEdgeNs() const {
    if (plan_.trace.event_log_path.empty() || trace_state_ == TraceState::kOver) {
      return GPUSHARE_NEVER;
    }
    const int64_t from_ns = start_ns_ + plan_.trace.from_ns;
    return trace_state_ == TraceState::kBefore ? from_ns : from_ns + plan_.trace.length_ns;
  }

  // Moves the clock, and starts and stops the trace where its window begins and ends.
  void AdvanceTo(int64_t time_ns) {
    while (TraceEdgeNs() <= time_ns) {
      Check(gpushare_poll_until(runtime_.get(), TraceEdgeNs()));
      if (trace_state_ == TraceState::kBefore) {
        BeginTrace();
      } else {
        EndTrace();
      }
    }
    Check(gpushare_poll_until(runtime_.get(), time_ns));
    ThrowOnFault();
  }

  void BeginTrace() {
    gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
    options.event_log_path = plan_.trace.event_log_path.c_str();
    options.perfetto_path =
        plan_.trace.perfetto_path.empty() ? nullptr : plan_.trace.perfetto_path.c_str();
    options.records_max = kTraceRecordsMax;
    Check(gpushare_trace_start(runtime_.get(), &options));
    trace_state_ = TraceState::kInside;
  }

  void EndTrace() {
    trace_state_ = TraceState::kOver;
    Check(gpushare_trace_stop(runtime_.get(), &trace_summary_));
    traced_ = true;
  }

  // Spins until `done` or the time comes. True if it was `done`.
  template <class Condition>
  bool SpinUntil(int64_t deadline_ns, Condition done) {
    while (!done()) {
      ThrowOnFault();
      if (NowNs(runtime_.get()) >= deadline_ns) return false;
      Pause();
    }
    return true;
  }

  // Starts BE, gives every LC app a few queries one after another, then starts the clock of the
  // run. A traced run is traced from its start, because starting a trace allocates and would delay
  // arrivals.
  void WarmUp() {
    const int64_t begin_ns = NowNs(runtime_.get());
    for (auto& be : be_) {
      if (InRounds(plan_)) {
        be->StartRound(begin_ns);
      } else {
        be->Start();
      }
    }
    for (auto& lc : lc_) {
      for (int i = 0; i < kWarmUpQueries; ++i) {
        const int64_t now_ns = NowNs(runtime_.get());
        if (now_ns >= begin_ns + kWarmUpNsMax) break;
        lc->WarmUp(now_ns);
        SpinUntil(begin_ns + kWarmUpNsMax, [&] { return lc->Idle(); });
      }
    }
    SpinUntil(begin_ns + kWarmUpNs, [] { return false; });
    // Again, so that the warm-up's jobs do not count.
    if (plan_.partitions != nullptr) PlanPartitions(runtime_.get(), *plan_.partitions);
    if (InRounds(plan_)) round_ended_ = EndRound();
    if (!plan_.trace.event_log_path.empty()) BeginTrace();
    start_ns_ = NowNs(runtime_.get()) + kLeadNs;
    SpinUntil(start_ns_, [] { return false; });
  }

  // Submits the queries that are due. True if no more arrivals come.
  bool SubmitDue(int64_t now_ns) {
    bool exhausted = true;
    for (auto& lc : lc_) {
      lc->SubmitDue(now_ns);
      // Only future arrivals keep this phase going; the drain works off the backlog.
      exhausted =
          exhausted && (lc->ClosedLoop() ? lc->Exhausted() : lc->NextArrivalNs() == GPUSHARE_NEVER);
    }
    return exhausted;
  }

  void DriveRealTime() {
    const int64_t end_ns = plan_.span_ns > 0 ? start_ns_ + plan_.span_ns : GPUSHARE_NEVER;
    SpinUntil(end_ns, [&] { return !lc_.empty() && SubmitDue(NowNs(runtime_.get())); });
    for (auto& lc : lc_) {
      if (lc->ClosedLoop()) lc->StopNewQueries();
    }
  }

  void DrainRealTime() {
    const int64_t give_up_ns = NowNs(runtime_.get()) + kRealDrainNs;
    const auto submitted = [&] {
      SubmitDue(NowNs(runtime_.get()));
      return std::all_of(lc_.begin(), lc_.end(), [](auto& lc) { return lc->Exhausted(); });
    };
    bool done = SpinUntil(give_up_ns, submitted);
    while (done) {
      const int64_t now_ns = NowNs(runtime_.get());
      const gpushare_status status = gpushare_runtime_drain(runtime_.get(), now_ns + kDrainStepNs);
      if (status != GPUSHARE_DEADLINE_EXCEEDED) Check(status);
      if (SpinUntil(NowNs(runtime_.get()) + kCallbackLagNs, [&] { return LcDone(); })) break;
      done = status == GPUSHARE_DEADLINE_EXCEEDED && now_ns < give_up_ns;
    }
    if (trace_state_ == TraceState::kInside) EndTrace();
    if (!done) {
      throw RunError("The run under policy '" + plan_.policy + "' does not complete its queries " +
                     "within " + std::to_string(kRealDrainNs / 1'000'000'000) +
                     " s of the last arrival.");
    }
  }

  void WaitUntil(int64_t time_ns) {
    if (real_time_) {
      SpinUntil(time_ns, [] { return false; });
    } else {
      AdvanceTo(time_ns);
    }
  }

  bool RoundEnded() const {
    return std::all_of(lc_.begin(), lc_.end(), [](auto& lc) { return lc->Idle(); }) &&
           std::all_of(be_.begin(), be_.end(), [](auto& be) { return be->RoundEnded(); });
  }

  // False if it does not end; then tasks of it are in flight, and no other round may begin.
  bool EndRound() {
    const int64_t give_up_ns = NowNs(runtime_.get()) + plan_.round_ns_max;
    while (!RoundEnded()) {
      const int64_t now_ns = NowNs(runtime_.get());
      if (now_ns >= give_up_ns) return false;
      for (auto& lc : lc_) lc->SubmitDue(now_ns);
      WaitUntil(now_ns + kAnswerStepNs);
    }
    return true;
  }

  void DriveRounds() {
    std::vector<LcDriver*> in_order;
    for (auto& lc : lc_) in_order.push_back(lc.get());
    const auto spec = [](const LcDriver* lc) -> const ArrivalSpec& {
      return lc->plan().app->arrivals;
    };
    std::stable_sort(in_order.begin(), in_order.end(), [&](const auto* a, const auto* b) {
      return spec(a).after_ns < spec(b).after_ns;
    });
    const int64_t rounds = lc_.front()->plan().closed_queries;
    for (int64_t round = 0; round_ended_ && round < rounds; ++round) {
      const int64_t begin_ns = NowNs(runtime_.get());
      for (auto& be : be_) be->StartRound(begin_ns);
      for (LcDriver* lc : in_order) {
        const int64_t arrival_ns = begin_ns + spec(lc).after_ns;
        WaitUntil(arrival_ns);
        lc->Ask(arrival_ns);
      }
      round_ended_ = EndRound();
      if (round_ended_) WaitUntil(NowNs(runtime_.get()) + spec(lc_.front().get()).pause_ns);
    }
    for (auto& lc : lc_) lc->StopNewQueries();
  }

  void DriveArrivals() {
    const int64_t end_ns =
        plan_.span_ns > 0 ? start_ns_ + plan_.span_ns : std::numeric_limits<int64_t>::max();
    if (lc_.empty()) return AdvanceTo(end_ns);
    while (true) {
      const int64_t now_ns = NowNs(runtime_.get());
      int64_t next_ns = GPUSHARE_NEVER;
      int64_t step_ns = GPUSHARE_NEVER;
      const bool exhausted = SubmitDue(now_ns);
      for (auto& lc : lc_) {
        next_ns = std::min(next_ns, lc->NextArrivalNs());
        if (!lc->Exhausted()) step_ns = std::min(step_ns, lc->StepNs());
      }
      ThrowOnFault();
      if (exhausted || now_ns >= end_ns) break;
      int64_t target_ns = std::min(next_ns, end_ns);
      if (target_ns == GPUSHARE_NEVER) step_ns = std::min(step_ns, kAnswerStepNs);
      if (step_ns < target_ns - now_ns) target_ns = now_ns + step_ns;
      AdvanceTo(target_ns);
    }
    for (auto& lc : lc_) {
      if (lc->ClosedLoop()) lc->StopNewQueries();
    }
  }

  bool LcDone() const {
    return std::all_of(lc_.begin(), lc_.end(), [](auto& lc) { return lc->Done(); });
  }

  // Waits until every LC query is complete and running BE tasks had time to end. BE need not drain,
  // because a policy may hold BE tasks for ever (Baymax, if they are longer than every target).
  void Drain() {
    if (trace_state_ == TraceState::kInside) AdvanceTo(TraceEdgeNs());
    const int64_t give_up_ns = NowNs(runtime_.get()) + kDrainNs;
    while (true) {
      const int64_t now_ns = NowNs(runtime_.get());
      const gpushare_status status = gpushare_runtime_drain(runtime_.get(), now_ns + kDrainStepNs);
      if (status != GPUSHARE_DEADLINE_EXCEEDED) Check(status);
      ThrowOnFault();
      if (LcDone()) return;
      if (now_ns > give_up_ns) {
        throw RunError("The run under policy '" + plan_.policy +
                       "' does not drain within one hour of device time.");
      }
      for (auto& lc : lc_) lc->SubmitDue(NowNs(runtime_.get()));
      if (Stats().tasks_pending == 0) {
        throw RunError("The run under policy '" + plan_.policy +
                       "' ends with queries that were never completed.");
      }
    }
  }

  // Tasks that are still held end here, with the verdict SHUTDOWN, because they are not part of the
  // run: quiesce lets what runs end or leave, and the shutdown launches nothing more.
  void Shutdown() {
    gpushare_status status =
        gpushare_runtime_quiesce(runtime_.get(), NowNs(runtime_.get()) + kDrainStepNs);
    if (status != GPUSHARE_DEADLINE_EXCEEDED) Check(status);
    status = gpushare_runtime_shutdown(runtime_.get(), NowNs(runtime_.get()));
    if (status != GPUSHARE_DEADLINE_EXCEEDED) Check(status);
    ThrowOnFault();
  }

  void RequireExactlyOnce(const std::string& app, const TaskCount& count) const {
    if (count.accepted == count.completed) return;
    throw RunError("App '" + app + "' had " + std::to_string(count.accepted) +
                   " tasks accepted, and " + std::to_string(count.completed) + " completed.");
  }

  bool Verify(const std::string& app, int64_t completed) {
    return plan_.workloads->Verify(app, completed);
  }

  // Before the drain, in which nothing holds BE work for LC.
  void ReadGuarantees() {
    for (auto& lc : lc_) lc_guarantees_.push_back(lc->Guarantee());
    for (auto& be : be_) be_guarantees_.push_back(be->Guarantee());
  }

  void Collect(RunOutcome& outcome) {
    outcome.verified = true;
    for (auto& lc : lc_) {
      RequireExactlyOnce(lc->Id().name, lc->count());
      outcome.verified &= Verify(lc->Id().name, lc->count().completed);
      outcome.lc.push_back({lc->LatenciesNs(), 0, lc_guarantees_[outcome.lc.size()]});
      outcome.apps.push_back(lc->Id());
      outcome.realised_load += static_cast<double>(lc->plan().solo_ns) *
                               static_cast<double>(lc->Started()) /
                               static_cast<double>(outcome.span_ns);
    }
    for (auto& be : be_) {
      RequireExactlyOnce(be->Id().name, be->count());
      outcome.be.push_back(be->Work());
      outcome.be.back().guarantee = be_guarantees_[outcome.be.size() - 1];
      outcome.verified &= Verify(be->Id().name, outcome.be.back().tasks);
      outcome.apps.push_back(be->Id());
    }
    outcome.kernels = kernels_.Names();
    outcome.stats = Stats();
  }

  enum class TraceState : uint8_t { kBefore, kInside, kOver };
  static constexpr int64_t kTraceRecordsMax = int64_t{1} << 20;

  const RunPlan& plan_;
  const bool real_time_;
  RunFault fault_;
  RunSetup setup_;
  RuntimeHandle& runtime_ = setup_.runtime;
  const KernelTable& kernels_ = setup_.kernels;
  std::vector<std::unique_ptr<LcDriver>>& lc_ = setup_.lc;
  std::vector<std::unique_ptr<BeDriver>>& be_ = setup_.be;
  std::vector<gpushare_app_guarantee> lc_guarantees_;
  std::vector<gpushare_app_guarantee> be_guarantees_;
  int64_t start_ns_ = 0;
  bool round_ended_ = true;  // in rounds: the last one, of the warm-up too
  TraceState trace_state_ = TraceState::kBefore;
  gpushare_trace_summary trace_summary_ = GPUSHARE_TRACE_SUMMARY_INIT;
  bool traced_ = false;
};

}  // namespace

RunOutcome ExecuteRun(const RunPlan& plan) {
  return plan.raw ? ExecuteRawRun(plan) : Run(plan).Execute();
}

int64_t MeasureSoloNs(const DeviceChoice& device, Workloads& workloads, const LcApp& app) {
  // One after another with a pause, so that no query waits for another.
  constexpr int64_t kQueries = 5;
  constexpr int64_t kQueriesRealTime = 101;
  LcApp probe = app;
  probe.real_time = RealTimeSpec();
  probe.arrivals = ArrivalSpec();
  probe.arrivals.kind = ArrivalKind::kClosedLoop;
  probe.arrivals.clients = 1;
  probe.arrivals.think_ns = 1'000'000;
  RunPlan plan;
  plan.device = device;
  plan.workloads = &workloads;
  plan.policy = "bare";
  LcPlan lc;
  lc.app = &probe;
  lc.closed_queries = device.real_time ? kQueriesRealTime : kQueries;
  plan.lc.push_back(lc);
  std::vector<int64_t> latencies = ExecuteRun(plan).lc[0].latencies_ns;
  std::sort(latencies.begin(), latencies.end());
  return std::max<int64_t>(1, Quantile(latencies, 0.5));
}

}  // namespace gpushare::tool
