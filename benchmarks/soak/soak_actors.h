// What happens in a soak: LC apps, BE apps, and the one that quiesces and changes policies. An
// actor never blocks for long: Step does what is due and says when to come again. Threads: one an
// actor.

#ifndef GPUSHARE_BENCHMARKS_SOAK_SOAK_ACTORS_H_
#define GPUSHARE_BENCHMARKS_SOAK_SOAK_ACTORS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/soak/soak_flight.h"
#include "benchmarks/soak/soak_ledger.h"
#include "benchmarks/soak/soak_work.h"

namespace gpushare::soak {

// How often an actor looks at what it has in flight.
inline constexpr int64_t kLookNs = 200'000;
inline constexpr double kLcMeanNs = 6e6;  // between the queries of one app
inline constexpr size_t kBacklogMax = 64;
inline constexpr int64_t kLcTargetNs = 20'000'000;
inline constexpr int64_t kLcSoloNs = 500'000;
inline constexpr int64_t kLcAloneNs = 2'000'000;
inline constexpr double kLcBound = 1.1;  // 0.2 ms of blocking
// An app's life. While an LC app states a bound, BE work that blocks for longer is held by design,
// for as long as the app is there: far shorter than the patience.
inline constexpr int64_t kLifeMaxNs = 20 * kSecondNs;
inline constexpr int64_t kQuiesceNs = 200'000'000;
inline constexpr size_t kLeakBytes = 256 << 10;

class Actor {
 public:
  virtual ~Actor() = default;
  // Does what is due; when to come again.
  virtual int64_t Step(int64_t now_ns) = 0;
  // Nothing left, after the end was announced.
  virtual bool done() const = 0;
};

// A few tasks that run together and are checked together.
struct Slot {
  std::vector<std::unique_ptr<Flight>> flights;
  bool busy = false;
  int64_t cancel_ns = 0;  // 0: not
};

// An app with its queue, which ends now and then and begins again under another name.
class AppActor : public Actor {
 public:
  AppActor(Shared& shared, std::string name, bool lc, uint64_t seed)
      : shared_(shared), random_(seed), name_(std::move(name)), lc_(lc) {}

  // Empty, or why not.
  std::string AddSlot(Work& work, const std::vector<Kind>& kinds, double solo_ms) {
    Slot slot;
    for (const Kind kind : kinds) {
      std::unique_ptr<Task> made[2];
      const auto seed = static_cast<uint32_t>(random_.Below(1 << 30));
      if (std::string error = work.Make(shared_.runtime, kind, solo_ms, seed, made);
          !error.empty()) {
        return error;
      }
      for (std::unique_ptr<Task>& task : made) {
        if (task == nullptr) continue;
        slot.flights.push_back(std::make_unique<Flight>(shared_, std::move(task)));
      }
    }
    slots_.push_back(std::move(slot));
    return {};
  }

  bool done() const override { return done_; }

  int64_t Step(int64_t now_ns) final {
    for (Slot& slot : slots_) Collect(slot, now_ns);
    const bool ending = shared_.Ending(now_ns);
    if (app_ && !leaving_ && (ending || now_ns >= leave_ns_)) BeginToLeave();
    if (leaving_) {
      if (Busy()) return now_ns + kLookNs;
      Leave();
    }
    if (ending) {
      done_ = !app_;
      return now_ns + kLookNs;
    }
    if (!app_) Join(now_ns);
    if (!app_) return now_ns + kSecondNs / 100;
    if (now_ns >= reserve_ns_) Reserve(now_ns);
    const int64_t next_ns = Offer(now_ns);
    Loiter(now_ns);
    return std::max(now_ns + 1, std::min(next_ns, Busy() ? now_ns + kLookNs : next_ns));
  }

 protected:
  // Submits what is due; when more is.
  virtual int64_t Offer(int64_t now_ns) = 0;
  virtual void Configure(AppOptions& options) = 0;
  virtual int32_t CapSms() = 0;

  bool Busy() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.busy; });
  }

  Shared& shared_;
  Random random_;
  Queue queue_;
  std::vector<Slot> slots_;
  void Launched(Slot& slot, int64_t cancel_ns) {
    slot.busy = true;
    slot.cancel_ns = cancel_ns;
  }
  int64_t submitted_ = 0;  // accepted, in this life of the app
  int64_t failed_ = 0;     // because what they waited for did not end well

 private:
  void Join(int64_t now_ns) {
    AppOptions options;
    options.app_class = lc_ ? GPUSHARE_CLASS_LATENCY_CRITICAL : GPUSHARE_CLASS_BEST_EFFORT;
    const std::string name = name_ + "_" + std::to_string(++lives_);
    options.name = name.c_str();
    Configure(options);
    auto app = shared_.runtime.CreateApp(options);
    if (!shared_.ledger.Expect(app.status(), "gpushare_app_create")) return;
    app_ = *app;
    auto queue = app_.CreateQueue();
    if (!shared_.ledger.Expect(queue.status(), "gpushare_queue_create")) return;
    queue_ = *queue;
    ++shared_.ledger.apps;
    leaving_ = false;
    const int64_t life_ns = random_.Exponential(shared_.MeanNs(0.1, 0.1, 15));
    leave_ns_ = now_ns + std::min(life_ns, kLifeMaxNs);
    reserve_ns_ = now_ns + random_.Exponential(shared_.MeanNs(0.05, 0.05, 2));
    submitted_ = 0;
    failed_ = 0;
  }

  // Asks for the end while work is queued, which the library refuses until it is complete.
  void BeginToLeave() {
    leaving_ = true;
    if (!Busy()) return;
    const Status status = queue_.Reset();
    if (status.code() == GPUSHARE_FAILED_PRECONDITION) ++shared_.ledger.releases_refused;
    shared_.ledger.Expect(status, "gpushare_queue_release", {GPUSHARE_FAILED_PRECONDITION});
  }

  void Leave() {
    CheckStats();
    if (queue_) shared_.ledger.Expect(queue_.Reset(), "gpushare_queue_release");
    shared_.ledger.Expect(app_.Reset(), "gpushare_app_release");
    leaving_ = false;
  }

  // What the library counted is what this actor saw. A counter may come after its ticket.
  void CheckStats() {
    const auto give_up = std::chrono::steady_clock::now() + shared_.LateMax();
    for (;;) {
      auto stats = app_.Stats();
      if (!shared_.ledger.Expect(stats.status(), "gpushare_app_stats_get")) return;
      const int64_t complete = stats->completed + stats->failed + stats->dropped + stats->cancelled;
      if (stats->submitted == submitted_ && complete == submitted_ && stats->failed == failed_)
        return;
      if (std::chrono::steady_clock::now() < give_up) {
        std::this_thread::yield();
        continue;
      }
      shared_.ledger.Fail("An app counts " + std::to_string(stats->submitted) + " submitted and " +
                          std::to_string(complete) + " complete tasks, " +
                          std::to_string(stats->failed) + " of them failed, and it submitted " +
                          std::to_string(submitted_) + ".");
      return;
    }
  }

  void Reserve(int64_t now_ns) {
    reserve_ns_ = now_ns + random_.Exponential(shared_.MeanNs(0.05, 0.05, 2));
    ReservationOptions options;
    options.capsms = random_.Chance(0.4) ? 0 : CapSms();
    options.packed = options.capsms > 0 && random_.Chance(0.5) ? 1 : 0;
    // Whole SMs come in groups, the smallest side with what they leave over, which is less than
    // two: a packed quota below that is refused.
    if (options.packed != 0)
      options.capsms = std::max(options.capsms, 2 * shared_.device.sm_granularity);
    ++shared_.ledger.reservations;
    shared_.ledger.Expect(app_.ReserveCapSm(options), "gpushare_reserve_capsm",
                          {GPUSHARE_RESOURCE_EXHAUSTED});
    if (shared_.options.broken != Break::kStatus) return;
    options.capsms = 100'000;
    shared_.ledger.Expect(app_.ReserveCapSm(options), "gpushare_reserve_capsm");
  }

  // Now and then somebody waits, for too short a time.
  void Loiter(int64_t now_ns) {
    if (!random_.Chance(0.02)) return;
    for (Slot& slot : slots_) {
      if (!slot.busy) continue;
      slot.flights.front()->Wait(now_ns + random_.Below(1'000'000));
      return;
    }
  }

  void Collect(Slot& slot, int64_t now_ns) {
    if (!slot.busy) return;
    if (slot.cancel_ns != 0 && now_ns >= slot.cancel_ns) {
      slot.flights.back()->Cancel();
      slot.cancel_ns = 0;
    }
    bool all = true;
    for (auto& flight : slot.flights) all = flight->Reap(now_ns) && all;
    if (!all) return;
    slot.busy = false;
    bool cancelled = false;
    for (const auto& flight : slot.flights) {
      if (flight->verdict() == GPUSHARE_VERDICT_FAILED) ++failed_;
      cancelled |= flight->verdict() == GPUSHARE_VERDICT_CANCELLED;
    }
    if (shared_.options.broken == Break::kMemory) Leak();
    if (cancelled || shared_.ledger.stopped()) return;
    for (auto& flight : slot.flights) {
      const std::string error = flight->Check();
      if (!error.empty()) shared_.ledger.Fail(error);
    }
  }

  static void Leak() {
    static std::mutex mutex;
    static std::deque<std::vector<char>> kept;
    const std::lock_guard<std::mutex> lock(mutex);
    kept.emplace_back(kLeakBytes, 'x');
  }

  const std::string name_;
  const bool lc_;
  App app_;
  int lives_ = 0;
  bool leaving_ = false;
  bool done_ = false;
  int64_t leave_ns_ = 0;
  int64_t reserve_ns_ = 0;
};

// Poisson queries of a graph or of a chain of kernels.
class LcActor final : public AppActor {
 public:
  LcActor(Shared& shared, const std::string& name, uint64_t seed, bool states_bound)
      : AppActor(shared, name, true, seed), states_bound_(states_bound) {}

 private:
  void Configure(AppOptions& options) override {
    options.target_ns = kLcTargetNs;
    // Every other life without it: what it held goes on then.
    options.p99_bound = states_bound_ && bound_next_ ? kLcBound : 0;
    bound_next_ = !bound_next_;
    options.p99_alone_ns = kLcAloneNs;
    options.solo_ns = kLcSoloNs;
    arrivals_.clear();
    next_ns_ = 0;
  }
  int32_t CapSms() override { return static_cast<int32_t>(1 + random_.Below(32)); }

  int64_t Offer(int64_t now_ns) override {
    if (next_ns_ == 0) next_ns_ = now_ns;
    while (next_ns_ <= now_ns) {
      if (arrivals_.size() < kBacklogMax) arrivals_.push_back(next_ns_);
      next_ns_ += 1 + random_.Exponential(kLcMeanNs);
    }
    for (Slot& slot : slots_) {
      if (arrivals_.empty()) break;
      if (slot.busy) continue;
      Ask(slot, arrivals_.front());
      arrivals_.pop_front();
    }
    return next_ns_;
  }

  void Ask(Slot& slot, int64_t arrival_ns) {
    auto query = queue_.BeginQuery(arrival_ns);
    if (!shared_.ledger.Expect(query.status(), "gpushare_query_begin",
                               {GPUSHARE_RESOURCE_EXHAUSTED})) {
      return;
    }
    ++shared_.ledger.queries;
    bool any = false;
    for (auto& flight : slot.flights) flight->Reset();
    for (auto& flight : slot.flights) {
      if (!flight->Submit(queue_, true, random_, query->get(), nullptr)) continue;
      ++submitted_;
      any = true;
    }
    shared_.ledger.Expect(query->End(), "gpushare_query_end");
    if (any) Launched(slot, 0);
  }

  const bool states_bound_;
  bool bound_next_ = true;
  std::deque<int64_t> arrivals_;
  int64_t next_ns_ = 0;
};

class BeActor final : public AppActor {
 public:
  BeActor(Shared& shared, const std::string& name, uint64_t seed)
      : AppActor(shared, name, false, seed) {}

 private:
  void Configure(AppOptions& options) override {
    options.weight = random_.Between(0.25, 4);
    // Now and then less room than there are tasks: backpressure.
    options.tasks_max = random_.Chance(0.2) ? 2 : 0;
  }
  int32_t CapSms() override {
    return static_cast<int32_t>(1 + random_.Below(shared_.device.sm_count));
  }

  int64_t Offer(int64_t now_ns) override {
    const Flight* previous = nullptr;
    bool refused = false;
    for (Slot& slot : slots_) {
      if (slot.busy) {
        if (slot.flights.front()->has_ticket()) previous = slot.flights.front().get();
        continue;
      }
      if (refused || random_.Chance(0.2)) continue;
      refused = !Submit(slot, now_ns, random_.Chance(0.15) ? previous : nullptr);
    }
    return now_ns + kLookNs;
  }

  // A copy back comes after the copy there, because they share a queue. False when refused.
  bool Submit(Slot& slot, int64_t now_ns, const Flight* wait_for) {
    bool any = false;
    bool all = true;
    for (auto& flight : slot.flights) flight->Reset();
    for (auto& flight : slot.flights) {
      all = flight->Submit(queue_, false, random_, gpushare_query{0}, wait_for);
      if (!all) break;
      ++submitted_;
      any = true;
    }
    if (any) Launched(slot, random_.Chance(0.08) ? now_ns + random_.Below(10'000'000) + 1 : 0);
    return all;
  }
};

// Quiesces and changes policies.
class Director final : public Actor {
 public:
  Director(Shared& shared, uint64_t seed) : shared_(shared), random_(seed) {}
  bool done() const override { return done_; }

  int64_t Step(int64_t now_ns) override {
    if (shared_.Ending(now_ns)) {
      done_ = true;
      return now_ns + kLookNs;
    }
    if (quiesce_ns_ == 0) Plan(now_ns);
    if (now_ns >= quiesce_ns_) Quiesce(now_ns);
    if (now_ns >= policy_ns_) ChangePolicy(now_ns);
    return std::max(now_ns + 1, std::min(quiesce_ns_, policy_ns_));
  }

 private:
  void Plan(int64_t now_ns) {
    quiesce_ns_ = now_ns + random_.Exponential(shared_.MeanNs(0.05, 0.05, 5));
    policy_ns_ = now_ns + random_.Exponential(shared_.MeanNs(0.08, 0.1, 10));
  }
  void Quiesce(int64_t now_ns) {
    quiesce_ns_ = now_ns + random_.Exponential(shared_.MeanNs(0.05, 0.05, 5));
    ++shared_.ledger.quiesces;
    const int64_t patience_ns = random_.Chance(0.3) ? 100'000 : kQuiesceNs;
    shared_.ledger.Expect(shared_.runtime.Quiesce(now_ns + patience_ns), "gpushare_runtime_quiesce",
                          {GPUSHARE_DEADLINE_EXCEEDED});
    shared_.ledger.Expect(shared_.runtime.Resume(), "gpushare_runtime_resume");
    shared_.ledger.Expect(shared_.runtime.Metrics().status(), "gpushare_metrics_text");
  }
  void ChangePolicy(int64_t now_ns) {
    policy_ns_ = now_ns + random_.Exponential(shared_.MeanNs(0.08, 0.1, 10));
    const auto& policies = shared_.options.policies;
    if (policies.empty()) return;
    ++shared_.ledger.policy_changes;
    const auto chosen = static_cast<size_t>(random_.Below(static_cast<int64_t>(policies.size())));
    shared_.ledger.Expect(shared_.runtime.SetPolicy(policies[chosen]), "gpushare_set_policy",
                          {GPUSHARE_FAILED_PRECONDITION});
  }

  Shared& shared_;
  Random random_;
  int64_t quiesce_ns_ = 0;
  int64_t policy_ns_ = 0;
  bool done_ = false;
};

}  // namespace gpushare::soak

#endif  // GPUSHARE_BENCHMARKS_SOAK_SOAK_ACTORS_H_
