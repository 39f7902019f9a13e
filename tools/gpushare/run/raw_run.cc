#include "tools/gpushare/run/raw_run.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/interrupt.h"
#include "tools/gpushare/base/pause.h"
#include "tools/gpushare/run/metrics.h"
#include "tools/gpushare/run/think_times.h"

namespace gpushare::tool {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeadNs = 1'000'000;
// As in runner.cc, but limited to half a second, because a baseline may starve the warm-up.
constexpr int kWarmUpQueries = 10;
constexpr int64_t kWarmUpNs = 50'000'000;
constexpr int64_t kWarmUpNsMax = 500'000'000;
// The least time between the last arrival and giving up a run.
constexpr int64_t kPatienceNsMin = 1'000'000'000;
// Most queries of an app on its stream. Enough that the device never waits for the next one, and
// few enough that launches stay far below 1,024, where a launch on a stream blocks.
constexpr size_t kQueriesInFlightMax = 8;
constexpr size_t kLaunchesInFlightMax = 512;
// A stable queue is short at the last arrival: at load 0.9 it holds 9 queries on average.
constexpr int64_t kBacklogMin = 10;
constexpr double kBacklogShare = 0.1;

int64_t WallNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

size_t QueriesInFlight(const LcApp& app) {
  const size_t passes = app.swap.queries > 0 ? static_cast<size_t>(app.swap.passes) : 1;
  return std::clamp<size_t>(kLaunchesInFlightMax / std::max<size_t>(1, app.tasks.size() * passes),
                            1, kQueriesInFlightMax);
}

class RawLc {
 public:
  RawLc(const LcPlan& plan, std::unique_ptr<RawApp> app)
      : plan_(plan),
        app_(std::move(app)),
        window_(QueriesInFlight(*plan.app)),
        think_times_(plan) {}

  const LcPlan& plan() const { return plan_; }

  void WarmUp(int64_t now_ns) {
    ++warm_ups_;
    queries_.push_back({now_ns, -1, Pass(), false});
  }

  void Start(int64_t start_ns) {
    start_ns_ = start_ns;
    if (!ClosedLoop() || InRounds(plan_)) return;
    for (int32_t client = 0; client < plan_.app->arrivals.clients; ++client) {
      due_clients_.emplace(start_ns, client);
    }
  }

  // In rounds: a query arrives.
  void Ask(int64_t arrival_ns) { queries_.push_back({arrival_ns, -1, Pass(), true}); }

  // Takes queries that arrived, checks for answers, and launches the next task. True if it
  // launched.
  bool Turn(int64_t now_ns) {
    while (NextArrivalNs() <= now_ns) TakeArrival();
    Poll();
    return LaunchNext();
  }

  void Poll() {
    while (answered_ < launched_ && app_->Reached(answered_ % window_)) {
      Query& query = queries_[answered_++];
      const int64_t seen_ns = WallNs();
      query.latency_ns = seen_ns - query.arrival_ns;
      if (query.client >= 0)
        due_clients_.emplace(seen_ns + think_times_.Draw().time_ns, query.client);
    }
  }

  void StopArrivals() { stopped_ = true; }
  // Whether every query has arrived.
  bool Exhausted() const {
    if (stopped_) return true;
    if (ClosedLoop()) return Started() >= plan_.closed_queries;
    return next_arrival_ == plan_.arrivals_ns.size();
  }
  int64_t Started() const { return static_cast<int64_t>(queries_.size()) - warm_ups_; }
  int64_t Backlog() const { return static_cast<int64_t>(queries_.size() - answered_); }
  bool Idle() const { return answered_ == queries_.size(); }

  // Drops queries that are not on the stream yet. Each counts with the time that it has waited.
  void GiveUp(int64_t now_ns) {
    StopArrivals();
    const size_t keep = launched_ + (next_task_ > 0 ? 1 : 0);
    for (size_t i = answered_; i < queries_.size(); ++i) {
      queries_[i].latency_ns = now_ns - queries_[i].arrival_ns;
      unanswered_ += queries_[i].counted;
    }
    for (size_t i = keep; i < queries_.size(); ++i) dropped_.push_back(queries_[i]);
    queries_.resize(keep);
  }

  LcSamples Samples() const {
    LcSamples samples;
    samples.unanswered = unanswered_;
    for (const std::deque<Query>* list : {&queries_, &dropped_}) {
      for (const Query& query : *list) {
        if (query.counted) samples.latencies_ns.push_back(query.latency_ns);
      }
    }
    return samples;
  }
  int64_t TasksCompleted() const {
    size_t tasks = 0;
    for (size_t i = 0; i < answered_; ++i) tasks += queries_[i].tasks;
    return static_cast<int64_t>(tasks);
  }

 private:
  struct Query {
    int64_t arrival_ns = 0;
    int32_t client = -1;
    size_t tasks = 0;
    bool counted = true;
    int64_t latency_ns = -1;
  };

  size_t Pass() const { return plan_.app->tasks.size(); }  // tasks
  bool ClosedLoop() const { return plan_.closed_queries > 0; }

  int64_t NextArrivalNs() const {
    if (Exhausted() || start_ns_ == kNever) return kNever;
    if (!ClosedLoop()) return start_ns_ + plan_.arrivals_ns[next_arrival_];
    return due_clients_.empty() ? kNever : due_clients_.begin()->first;
  }

  void TakeArrival() {
    const int64_t arrival_ns = NextArrivalNs();
    int32_t client = -1;
    if (ClosedLoop()) {
      client = due_clients_.begin()->second;
      due_clients_.erase(due_clients_.begin());
    } else {
      ++next_arrival_;
    }
    const auto passes = static_cast<size_t>(plan_.app->swap.PassesOf(Started()));
    queries_.push_back({arrival_ns, client, passes * Pass(), true});
  }

  // One task a call, so that answers are seen during the launches of a long chain.
  bool LaunchNext() {
    if (launched_ == queries_.size() || launched_ - answered_ >= window_) return false;
    app_->Launch(next_task_++ % Pass());
    if (next_task_ == queries_[launched_].tasks) {
      app_->Mark(launched_ % window_);
      next_task_ = 0;
      ++launched_;
    }
    return true;
  }

  const LcPlan& plan_;
  std::unique_ptr<RawApp> app_;
  const size_t window_;
  std::deque<Query> queries_;  // in order of arrival, which is the order on the stream
  std::deque<Query> dropped_;
  size_t launched_ = 0;   // queries with all their tasks on the stream
  size_t next_task_ = 0;  // next task of the first query that is not launched completely
  size_t answered_ = 0;
  int64_t warm_ups_ = 0;
  int64_t unanswered_ = 0;
  int64_t start_ns_ = kNever;
  size_t next_arrival_ = 0;
  bool stopped_ = false;
  ThinkTimes think_times_;
  std::multimap<int64_t, int32_t> due_clients_;  // closed loop: time to client
};

class RawBe {
 public:
  RawBe(const BePlan& plan, std::unique_ptr<RawApp> app) : plan_(plan), app_(std::move(app)) {}

  // At least two, so that the next task is there when one ends.
  static size_t DepthOf(const BeApp& app) { return static_cast<size_t>(std::max(2, app.depth)); }

  void Stop() { stopped_ = true; }
  bool Idle() const { return done_ == launched_; }

  // In rounds: before the first one it launches nothing.
  void LaunchInRounds() { launches_max_ = 0; }
  // The queues' tasks of one round, in a row on the stream.
  void StartRound(int64_t now_ns) {
    round_start_ns_ = now_ns;
    launches_max_ = launched_ + static_cast<size_t>(plan_.app->queues * plan_.app->depth);
  }
  bool RoundEnded() const { return done_ == launches_max_; }

  void Turn() {
    Poll();
    if (stopped_ || launched_ == launches_max_) return;
    if (launched_ - done_ >= DepthOf(*plan_.app)) return;
    launch_ns_.push_back(WallNs());
    app_->Launch(static_cast<size_t>(launched_) % plan_.app->tasks.size());
    app_->Mark(static_cast<size_t>(launched_) % DepthOf(*plan_.app));
    ++launched_;
  }

  void Poll() {
    while (done_ < launched_ && app_->Reached(static_cast<size_t>(done_) % DepthOf(*plan_.app))) {
      // Tasks of a stream run one after another: one starts when the task before it ends.
      const int64_t to_ns = WallNs();
      const int64_t from_ns = std::max(launch_ns_.front(), last_ns_);
      launch_ns_.pop_front();
      const size_t item = static_cast<size_t>(done_) % plan_.app->tasks.size();
      spans_.push_back({from_ns, to_ns, plan_.app->tasks[item].work()});
      last_ns_ = to_ns;
      ++done_;
      if (done_ == launches_max_) rounds_.push_back({round_start_ns_, to_ns, 0});
    }
  }

  const BePlan& plan() const { return plan_; }

  BeWork Work(int64_t start_ns, int64_t end_ns) const {
    BeWork work;
    work.tasks = static_cast<int64_t>(done_);
    double done = 0;
    for (const Span& span : spans_) {
      done += span.work * OverlapShare(span.from_ns, span.to_ns, start_ns, end_ns);
    }
    int64_t span_ns = end_ns - start_ns;
    if (launches_max_ != kNoLimit) {
      span_ns = 0;
      for (const Span& round : rounds_) {
        if (round.from_ns >= start_ns) span_ns += round.to_ns - round.from_ns;
      }
    }
    const double seconds = static_cast<double>(span_ns) * 1e-9;
    work.work_per_second = seconds > 0 ? done / seconds : 0;
    return work;
  }

 private:
  struct Span {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    double work = 0;
  };

  const BePlan& plan_;
  std::unique_ptr<RawApp> app_;
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  size_t launches_max_ = kNoLimit;
  size_t launched_ = 0;
  size_t done_ = 0;
  bool stopped_ = false;
  int64_t last_ns_ = 0;
  std::deque<int64_t> launch_ns_;  // launch times of the tasks in flight
  std::deque<Span> spans_;
  int64_t round_start_ns_ = 0;
  std::deque<Span> rounds_;
};

class RawRun {
 public:
  explicit RawRun(const RunPlan& plan) : plan_(plan) {
    Workloads& workloads = *plan.workloads;
    workloads.BeginRun();
    for (const LcPlan& lc : plan.lc) {
      RawOptions options;
      if (plan.raw_form.priority) options.priority = RawPriority::kHighest;
      options.marks = QueriesInFlight(*lc.app);
      lc_.push_back(std::make_unique<RawLc>(lc, Make(lc.app->name, lc.app->tasks, options)));
    }
    for (const BePlan& be : plan.be) {
      RawOptions options;
      if (plan.raw_form.priority) options.priority = RawPriority::kLowest;
      options.carveout_max = plan.raw_form.carveout_max;
      options.best_effort = true;
      options.marks = RawBe::DepthOf(*be.app);
      be_.push_back(std::make_unique<RawBe>(be, Make(be.app->name, be.app->tasks, options)));
      if (InRounds(plan)) be_.back()->LaunchInRounds();
    }
  }

  RunOutcome Execute() {
    WarmUp();
    const auto exhausted = [&] {
      return !lc_.empty() &&
             std::all_of(lc_.begin(), lc_.end(), [](auto& lc) { return lc->Exhausted(); });
    };
    if (InRounds(plan_)) {
      DriveRounds();
    } else {
      SpinUntil(plan_.span_ns > 0 ? start_ns_ + plan_.span_ns : kNever, exhausted);
    }
    RunOutcome outcome;
    outcome.start_ns = start_ns_;
    const int64_t end_ns = std::max(WallNs(), start_ns_ + 1);
    outcome.span_ns = end_ns - start_ns_;
    for (auto& lc : lc_) {
      lc->StopArrivals();
      outcome.unstable |= lc->Backlog() > BacklogMax(*lc);
    }
    const bool answered =
        SpinUntil(end_ns + std::max(kPatienceNsMin, outcome.span_ns), [&] { return LcIdle(); });
    if (!answered) {
      outcome.unstable = true;
      for (auto& lc : lc_) lc->GiveUp(WallNs());
    }
    Drain();
    Collect(end_ns, outcome);
    return outcome;
  }

 private:
  std::unique_ptr<RawApp> Make(const std::string& app, const std::vector<WorkItem>& tasks,
                               const RawOptions& options) const {
    std::unique_ptr<RawApp> raw = plan_.workloads->MakeRaw(app, tasks, options);
    if (raw != nullptr) return raw;
    throw RunError("The row '" + plan_.policy + "' needs bare launches of app '" + app +
                   "', and this device has none.");
  }

  static int64_t BacklogMax(const RawLc& lc) {
    const auto share = static_cast<int64_t>(kBacklogShare * static_cast<double>(lc.Started()));
    return std::max(kBacklogMin, share);
  }

  bool LcIdle() const {
    return std::all_of(lc_.begin(), lc_.end(), [](auto& lc) { return lc->Idle(); });
  }

  void Turn() {
    bool launched = false;
    for (auto& lc : lc_) launched |= lc->Turn(WallNs());
    if (launched) return;
    for (auto& be : be_) be->Turn();
    Pause();
  }

  // Spins until `done` or the time comes. True if it was `done` first.
  template <class Condition>
  bool SpinUntil(int64_t deadline_ns, Condition done) {
    while (!done()) {
      ThrowIfInterrupted();
      if (plan_.stop != nullptr && plan_.stop->load(std::memory_order_relaxed)) {
        throw RunError("The run is given up because another one failed.");
      }
      if (WallNs() >= deadline_ns) return false;
      Turn();
    }
    return true;
  }

  // False if it does not end; then tasks of it are in flight, and no other round may begin.
  bool EndRound() {
    return SpinUntil(WallNs() + plan_.round_ns_max, [&] {
      return LcIdle() &&
             std::all_of(be_.begin(), be_.end(), [](auto& be) { return be->RoundEnded(); });
    });
  }

  void DriveRounds() {
    std::vector<RawLc*> in_order;
    for (auto& lc : lc_) in_order.push_back(lc.get());
    const auto after_ns = [](const RawLc* lc) { return lc->plan().app->arrivals.after_ns; };
    std::stable_sort(in_order.begin(), in_order.end(),
                     [&](const RawLc* a, const RawLc* b) { return after_ns(a) < after_ns(b); });
    const int64_t rounds = lc_.front()->plan().closed_queries;
    for (int64_t round = 0; round_ended_ && round < rounds; ++round) {
      const int64_t begin_ns = WallNs();
      for (auto& be : be_) be->StartRound(begin_ns);
      for (RawLc* lc : in_order) {
        const int64_t arrival_ns = begin_ns + after_ns(lc);
        SpinUntil(arrival_ns, [] { return false; });
        lc->Ask(arrival_ns);
      }
      round_ended_ = EndRound();
      const int64_t pause_ns = lc_.front()->plan().app->arrivals.pause_ns;
      if (round_ended_) SpinUntil(WallNs() + pause_ns, [] { return false; });
    }
  }

  void WarmUp() {
    const int64_t begin_ns = WallNs();
    for (auto& be : be_) {
      if (InRounds(plan_)) be->StartRound(begin_ns);
    }
    const int64_t give_up_ns = begin_ns + kWarmUpNsMax;
    for (auto& lc : lc_) {
      for (int i = 0; i < kWarmUpQueries && WallNs() < give_up_ns; ++i) {
        lc->WarmUp(WallNs());
        SpinUntil(give_up_ns, [&] { return lc->Idle(); });
      }
    }
    SpinUntil(begin_ns + kWarmUpNs, [] { return false; });
    if (InRounds(plan_)) round_ended_ = EndRound();
    start_ns_ = WallNs() + kLeadNs;
    for (auto& lc : lc_) lc->Start(start_ns_);
    SpinUntil(start_ns_, [] { return false; });
  }

  void Drain() {
    for (auto& be : be_) be->Stop();
    const bool done = SpinUntil(WallNs() + kRawDrainNs, [&] {
      return LcIdle() && std::all_of(be_.begin(), be_.end(), [](auto& be) { return be->Idle(); });
    });
    if (done) return;
    throw RunError("The row '" + plan_.policy +
                   "' has work on the device that does not end within " +
                   std::to_string(kRawDrainNs / 1'000'000'000) + " s.");
  }

  void Collect(int64_t end_ns, RunOutcome& outcome) {
    outcome.verified = true;
    for (auto& lc : lc_) {
      outcome.verified &= plan_.workloads->Verify(lc->plan().app->name, lc->TasksCompleted());
      outcome.lc.push_back(lc->Samples());
      outcome.realised_load += static_cast<double>(lc->plan().solo_ns) *
                               static_cast<double>(outcome.lc.back().latencies_ns.size()) /
                               static_cast<double>(outcome.span_ns);
    }
    for (auto& be : be_) {
      outcome.be.push_back(be->Work(start_ns_, end_ns));
      outcome.verified &= plan_.workloads->Verify(be->plan().app->name, outcome.be.back().tasks);
    }
  }

  const RunPlan& plan_;
  std::vector<std::unique_ptr<RawLc>> lc_;
  std::vector<std::unique_ptr<RawBe>> be_;
  int64_t start_ns_ = 0;
  bool round_ended_ = true;  // in rounds: the last one, of the warm-up too
};

}  // namespace

RunOutcome ExecuteRawRun(const RunPlan& plan) { return RawRun(plan).Execute(); }

}  // namespace gpushare::tool
