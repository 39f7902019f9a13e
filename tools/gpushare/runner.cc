#include "tools/gpushare/runner.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "tools/gpushare/app_driver.h"
#include "tools/gpushare/errors.h"
#include "tools/gpushare/limits.h"

namespace gpushare::tool {

namespace {

// Arrival 0 means "now" to the library, so runs start a little after the clock's zero.
constexpr int64_t kLeadNs = 1'000'000;
// Device time that a drain may take beyond the last arrival: an overloaded baseline works off its
// backlog in it. One hour of device time is the library's own bound on a deadline.
constexpr int64_t kDrainNs = int64_t{3600} * 1'000'000'000;

// Device time that one step of a drain takes, and that BE gets to end what runs.
constexpr int64_t kDrainStepNs = 1'000'000'000;
// How far the clock moves at a time while only answers can bring new queries (closed loops).
constexpr int64_t kAnswerStepNs = 1'000'000;

class Run {
 public:
  explicit Run(const RunPlan& plan)
      : plan_(plan), runtime_(OpenRuntime(plan.device, plan.policy)), kernels_(runtime_.get()) {
    // The library has 65,536 task slots in all; beyond its share an app's queries wait in front.
    const int tasks_max = static_cast<int>(std::max<size_t>(256, 32768 / (plan.lc.size() + 1)));
    for (const LcPlan& lc : plan.lc) {
      lc_.push_back(std::make_unique<LcDriver>(runtime_.get(), lc, kernels_,
                                               std::min(tasks_max, 8192), fault_));
    }
    for (const BePlan& be : plan.be) {
      be_.push_back(std::make_unique<BeDriver>(runtime_.get(), be, kernels_, fault_));
    }
  }

  RunOutcome Execute() {
    start_ns_ = NowNs(runtime_.get()) + kLeadNs;
    AdvanceTo(start_ns_);
    const int64_t busy_before_ns = Stats().busy_sm_ns;
    for (auto& lc : lc_) lc->Start(start_ns_);
    for (auto& be : be_) be->Start(start_ns_);
    DriveArrivals();
    const int64_t end_ns = std::max(NowNs(runtime_.get()), start_ns_ + 1);
    for (auto& be : be_) be->Stop(end_ns);
    RunOutcome outcome;
    outcome.start_ns = start_ns_;
    outcome.span_ns = end_ns - start_ns_;
    const double capacity = static_cast<double>(outcome.span_ns) *
                            static_cast<double>(FactsOf(runtime_.get()).sm_count);
    outcome.utilisation = static_cast<double>(Stats().busy_sm_ns - busy_before_ns) / capacity;
    Drain();
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
      throw RunError("The run under policy '" + plan_.policy + "' fails: " + fault_.message);
    }
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
        gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
        options.event_log_path = plan_.trace.event_log_path.c_str();
        options.perfetto_path =
            plan_.trace.perfetto_path.empty() ? nullptr : plan_.trace.perfetto_path.c_str();
        options.records_max = kTraceRecordsMax;
        Check(gpushare_trace_start(runtime_.get(), &options));
        trace_state_ = TraceState::kInside;
      } else {
        EndTrace();
      }
    }
    Check(gpushare_poll_until(runtime_.get(), time_ns));
    ThrowOnFault();
  }

  void EndTrace() {
    trace_state_ = TraceState::kOver;
    Check(gpushare_trace_stop(runtime_.get(), &trace_summary_));
    traced_ = true;
  }

  void DriveArrivals() {
    const int64_t end_ns =
        plan_.span_ns > 0 ? start_ns_ + plan_.span_ns : std::numeric_limits<int64_t>::max();
    if (lc_.empty()) return AdvanceTo(end_ns);
    while (true) {
      const int64_t now_ns = NowNs(runtime_.get());
      int64_t next_ns = GPUSHARE_NEVER;
      int64_t step_ns = GPUSHARE_NEVER;
      bool exhausted = true;
      for (auto& lc : lc_) {
        lc->SubmitDue(now_ns);
        next_ns = std::min(next_ns, lc->NextArrivalNs());
        if (!lc->Exhausted()) step_ns = std::min(step_ns, lc->StepNs());
        // Only arrivals to come keep the run going; a backlog is worked off by the drain.
        exhausted = exhausted &&
                    (lc->ClosedLoop() ? lc->Exhausted() : lc->NextArrivalNs() == GPUSHARE_NEVER);
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

  // Until every LC query is complete and BE had time to end what runs. A policy may hold BE tasks
  // for ever (Baymax, when they are longer than every target), so BE does not have to drain.
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

  // What is still held ends here with the verdict SHUTDOWN, once, like every accepted task.
  void Shutdown() {
    const gpushare_status status =
        gpushare_runtime_shutdown(runtime_.get(), NowNs(runtime_.get()) + kDrainStepNs);
    if (status != GPUSHARE_DEADLINE_EXCEEDED) Check(status);
    ThrowOnFault();
  }

  void RequireExactlyOnce(const std::string& app, const TaskCount& count) const {
    if (count.accepted == count.completed) return;
    throw RunError("App '" + app + "' had " + std::to_string(count.accepted) +
                   " tasks accepted, and " + std::to_string(count.completed) + " completed.");
  }

  void Collect(RunOutcome& outcome) {
    for (auto& lc : lc_) {
      RequireExactlyOnce(lc->Id().name, lc->count());
      outcome.lc.push_back({lc->latencies_ns()});
      outcome.apps.push_back(lc->Id());
      outcome.realised_load += static_cast<double>(lc->plan().solo_ns) *
                               static_cast<double>(lc->Started()) /
                               static_cast<double>(outcome.span_ns);
    }
    for (auto& be : be_) {
      RequireExactlyOnce(be->Id().name, be->count());
      outcome.be.push_back(be->Work());
      outcome.apps.push_back(be->Id());
    }
    outcome.kernels = kernels_.Names();
    outcome.stats = Stats();
  }

  enum class TraceState : uint8_t { kBefore, kInside, kOver };
  static constexpr int64_t kTraceRecordsMax = int64_t{1} << 20;

  const RunPlan& plan_;
  RunFault fault_;
  RuntimeHandle runtime_;
  KernelTable kernels_;
  std::vector<std::unique_ptr<LcDriver>> lc_;
  std::vector<std::unique_ptr<BeDriver>> be_;
  int64_t start_ns_ = 0;
  TraceState trace_state_ = TraceState::kBefore;
  gpushare_trace_summary trace_summary_ = GPUSHARE_TRACE_SUMMARY_INIT;
  bool traced_ = false;
};

}  // namespace

RunOutcome ExecuteRun(const RunPlan& plan) { return Run(plan).Execute(); }

int64_t MeasureSoloNs(const DeviceChoice& device, const LcApp& app) {
  // One after another with a pause, so that none waits for another; the first warms a real device
  // up and the median leaves it out.
  constexpr int64_t kQueries = 5;
  LcApp probe = app;
  probe.arrivals = ArrivalSpec();
  probe.arrivals.kind = ArrivalKind::kClosedLoop;
  probe.arrivals.clients = 1;
  probe.arrivals.think_ns = 1'000'000;
  RunPlan plan;
  plan.device = device;
  plan.policy = "bare";
  LcPlan lc;
  lc.app = &probe;
  lc.closed_queries = kQueries;
  plan.lc.push_back(lc);
  std::vector<int64_t> latencies = ExecuteRun(plan).lc[0].latencies_ns;
  std::sort(latencies.begin(), latencies.end());
  return std::max<int64_t>(1, Quantile(latencies, 0.5));
}

}  // namespace gpushare::tool
