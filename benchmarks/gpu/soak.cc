// See soak.h. An actor is an app, or the one that quiesces and changes policies. It never blocks
// for long: Step does what is due and says when to come again.

#include "benchmarks/gpu/soak.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/gpu/soak_work.h"

namespace gpushare::soak {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
// How often an actor looks at what it has in flight.
constexpr int64_t kLookNs = 200'000;
// A task that is not complete after so long is lost.
constexpr int64_t kPatienceNs = 60 * kSecondNs;
// What a callback or a counter may come after its ticket.
constexpr int64_t kLateNs = 5 * kSecondNs;
constexpr size_t kFailuresKept = 10;
constexpr int64_t kFailuresMax = 50;
constexpr int kLcApps = 2;
constexpr int kBeApps = 5;
constexpr int kLcSlots = 4;
constexpr int kBeSlots = 3;
constexpr int kBeThreads = 3;
constexpr double kLcMeanNs = 6e6;  // between the queries of one app
constexpr size_t kBacklogMax = 64;
constexpr double kLcTaskMs = 0.15;
constexpr int64_t kLcTargetNs = 20'000'000;
constexpr int64_t kLcSoloNs = 500'000;
constexpr int64_t kLcAloneNs = 2'000'000;
constexpr double kLcBound = 1.1;  // 0.2 ms of blocking
// An app's life. While an LC app states a bound, BE work that blocks for longer is held by design,
// for as long as the app is there: far shorter than the patience.
constexpr int64_t kLifeMaxNs = 20 * kSecondNs;
constexpr double kBeTaskMsMin = 2;
constexpr double kBeTaskMsMax = 8;
constexpr int64_t kQuiesceNs = 200'000'000;
constexpr size_t kLeakBytes = 256 << 10;

// Counters and failures that all actors share.
class Ledger {
 public:
  void Fail(const std::string& sentence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failures_.size() < kFailuresKept) failures_.push_back(sentence);
    if (failure_count_.fetch_add(1) + 1 >= kFailuresMax) stop_.store(true);
  }
  // `allowed`: statuses beside OK that are no failure here.
  bool Expect(const Status& status, const char* call, std::initializer_list<int> allowed = {}) {
    if (status.ok()) return true;
    if (std::find(allowed.begin(), allowed.end(), status.code()) == allowed.end()) {
      Fail(std::string(call) + " answers " + status.ToString());
    }
    return false;
  }
  bool stopped() const { return stop_.load(); }
  void Stop() { stop_.store(true); }

  void Report(soak::Report& report) {
    const std::lock_guard<std::mutex> lock(mutex_);
    report.accepted = accepted;
    report.refused = refused;
    report.ok = ok;
    report.cancelled = cancelled;
    report.callbacks_expected = callbacks_expected;
    report.callbacks = callbacks;
    report.answers_checked = answers_checked;
    report.queries = queries;
    report.failed_waiting = failed_waiting;
    report.cancels_overtaken = cancels_overtaken;
    report.cancels = cancels;
    report.waits_timed_out = waits_timed_out;
    report.apps = apps;
    report.releases_refused = releases_refused;
    report.reservations = reservations;
    report.quiesces = quiesces;
    report.policy_changes = policy_changes;
    report.failure_count = failure_count_;
    report.failures = failures_;
  }

  std::atomic<int64_t> accepted{0}, refused{0}, ok{0}, cancelled{0};
  std::atomic<int64_t> callbacks_expected{0}, callbacks{0}, answers_checked{0}, queries{0};
  std::atomic<int64_t> cancels{0}, waits_timed_out{0}, apps{0}, releases_refused{0};
  std::atomic<int64_t> failed_waiting{0}, cancels_overtaken{0};
  std::atomic<int64_t> reservations{0}, quiesces{0}, policy_changes{0};
  std::atomic<int64_t> failure_count_{0};

 private:
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<std::string> failures_;
};

struct Shared {
  explicit Shared(const Options& wanted) : options(wanted) {}

  const Options& options;
  Runtime runtime;
  DeviceInfo device;
  Ledger ledger;
  std::atomic<int64_t> stop_ns{0};  // no new work from then on
  std::atomic<uint64_t> broken_at{0};

  // One time in a hundred, if this is what is to be broken.
  bool Breaks(Break what) { return options.broken == what && broken_at.fetch_add(1) % 100 == 99; }
  bool Ending(int64_t now_ns) const { return ledger.stopped() || now_ns >= stop_ns; }
  // In virtual time everything runs on one thread, and nothing comes later by itself.
  std::chrono::nanoseconds LateMax() const {
    return std::chrono::nanoseconds(device.virtual_time != 0 ? 0 : kLateNs);
  }
  // A mean time between events: a part of the run, within bounds.
  double MeanNs(double part, double least_s, double most_s) const {
    return std::clamp(options.seconds * part, least_s, most_s) * 1e9;
  }
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t Below(int64_t limit) {
    return std::uniform_int_distribution<int64_t>(0, limit - 1)(engine_);
  }
  bool Chance(double p) { return std::uniform_real_distribution<double>(0, 1)(engine_) < p; }
  double Between(double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(engine_);
  }
  int64_t Exponential(double mean) {
    return static_cast<int64_t>(std::exponential_distribution<double>(1 / mean)(engine_));
  }

 private:
  std::mt19937_64 engine_;
};

// --- one submitted task --------------------------------------------------------------------------

// Filled by the callback of a task, on a thread of the library.
struct Receipt {
  std::atomic<int64_t> count{0};  // of all jobs
  gpushare_completion_record record = {};
  Shared* shared = nullptr;

  static void Complete(void* user, const gpushare_completion_record* record) noexcept {
    auto& receipt = *static_cast<Receipt*>(user);
    Shared& shared = *receipt.shared;
    receipt.record = *record;
    shared.ledger.callbacks.fetch_add(1);
    if (shared.Breaks(Break::kCallback)) return;
    receipt.count.fetch_add(shared.Breaks(Break::kTwice) ? 2 : 1);
  }
};

enum class Notice : uint8_t { kTicket, kCallback, kDetached, kEventFd };

// A task with its buffers, and its submit while it has one.
class Flight {
 public:
  Flight(Shared& shared, std::unique_ptr<Task> task) : shared_(shared), task_(std::move(task)) {
    receipt_.shared = &shared;
  }
  ~Flight() { CloseFd(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  bool active() const { return active_; }
  const Ticket& ticket() const { return ticket_; }
  gpushare_verdict verdict() const { return verdict_; }
  // Before a job, in which it may not be submitted.
  void Reset() { verdict_ = GPUSHARE_VERDICT_PENDING; }

  // False when it was refused, or went wrong.
  bool Submit(const Queue& queue, bool lc, Random& random, gpushare_query query,
              const Flight* wait_for) {
    TaskOptions options;
    if (const std::string error = task_->Fill(options); !error.empty()) {
      shared_.ledger.Fail(error);
      return false;
    }
    options.query = query;
    awaited_ = wait_for;
    awaited_ticket_ = wait_for == nullptr ? gpushare_ticket{0} : wait_for->ticket_.get();
    options.wait_tickets = &awaited_ticket_;
    options.wait_ticket_count = wait_for == nullptr ? 0 : 1;
    notice_ = ChooseNotice(random);
    const bool calls_back = notice_ == Notice::kCallback || notice_ == Notice::kDetached;
    if (calls_back) {
      options.callback = &Receipt::Complete;
      options.callback_user = &receipt_;
      ++receipts_expected_;
    }
    options.detached = notice_ == Notice::kDetached ? 1 : 0;
    auto ticket = lc ? queue.SubmitLc(options) : queue.SubmitBe(options);
    if (!ticket.ok()) {
      if (calls_back) --receipts_expected_;
      if (ticket.status().code() == GPUSHARE_RESOURCE_EXHAUSTED) ++shared_.ledger.refused;
      shared_.ledger.Expect(ticket.status(), "A submit", {GPUSHARE_RESOURCE_EXHAUSTED});
      return false;
    }
    ticket_ = std::move(*ticket);
    submitted_ticket_ = ticket_.get().value;
    ++shared_.ledger.accepted;
    if (calls_back) ++shared_.ledger.callbacks_expected;
    if (notice_ == Notice::kEventFd) OpenFd();
    active_ = true;
    cancel_accepted_ = false;
    complete_ns_ = 0;
    submitted_ns_ = shared_.runtime.NowNs();
    return true;
  }

  bool has_ticket() const { return active_ && notice_ != Notice::kDetached; }

  void Cancel() {
    if (!has_ticket()) return;
    ++shared_.ledger.cancels;
    const Status status = ticket_.Cancel();
    cancel_accepted_ |= status.ok();
    shared_.ledger.Expect(status, "gpushare_ticket_cancel", {GPUSHARE_FAILED_PRECONDITION});
  }

  void Wait(int64_t deadline_ns) {
    if (!has_ticket()) return;
    const Status status = ticket_.Wait(deadline_ns);
    if (status.code() == GPUSHARE_DEADLINE_EXCEEDED) ++shared_.ledger.waits_timed_out;
    shared_.ledger.Expect(status, "gpushare_ticket_wait", {GPUSHARE_DEADLINE_EXCEEDED});
  }

  // Whether it is done, and then its verdict is known.
  bool Reap(int64_t now_ns) {
    if (!active_) return true;
    if (!IsComplete()) {
      if (now_ns - submitted_ns_ < kPatienceNs) return false;
      shared_.ledger.Fail("A task is not complete after " +
                          std::to_string(kPatienceNs / kSecondNs) + " s.");
      shared_.ledger.Stop();
      active_ = false;
      return true;
    }
    if (complete_ns_ == 0) complete_ns_ = now_ns;
    if (!WasTold() && now_ns - complete_ns_ < kLateNs) return false;
    CheckReceipt();
    Finish();
    return true;
  }

  std::string Check() {
    if (verdict_ != GPUSHARE_VERDICT_OK) return {};
    if (shared_.Breaks(Break::kAnswer)) task_->Spoil();
    ++shared_.ledger.answers_checked;
    return task_->Check(record_);
  }

 private:
  static Notice ChooseNotice(Random& random) {
    const double p = random.Between(0, 1);
    if (p < 0.4) return Notice::kTicket;
    if (p < 0.75) return Notice::kCallback;
    if (p < 0.9) return Notice::kDetached;
    return Notice::kEventFd;
  }

  bool IsComplete() {
    if (notice_ == Notice::kDetached) return receipt_.count.load() >= receipts_expected_;
    auto complete = ticket_.IsComplete();
    return shared_.ledger.Expect(complete.status(), "gpushare_ticket_poll") && *complete;
  }

  void OpenFd() {
    auto fd = ticket_.EventFd();
    if (shared_.ledger.Expect(fd.status(), "gpushare_ticket_eventfd")) fd_ = *fd;
  }
  void CloseFd() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  // A callback or an eventfd may come a little later than its ticket.
  bool WasTold() {
    if (fd_ >= 0) {
      pollfd readable = {fd_, POLLIN, 0};
      return ::poll(&readable, 1, 0) == 1;
    }
    return receipt_.count.load() >= receipts_expected_;
  }

  void CheckReceipt() {
    const int64_t count = receipt_.count.load();
    if (count != receipts_expected_) {
      shared_.ledger.Fail("A task with a callback was told " +
                          std::to_string(count - receipts_expected_ + 1) +
                          " times that it is complete, not once.");
      receipts_expected_ = count;
    }
    if (fd_ >= 0 && !WasTold()) {
      shared_.ledger.Fail("The eventfd of a complete task does not become readable.");
    }
    CloseFd();
  }

  void Finish() {
    if (notice_ == Notice::kDetached) {
      record_ = receipt_.record;
    } else {
      auto record = ticket_.Record();
      if (shared_.ledger.Expect(record.status(), "gpushare_ticket_record")) record_ = *record;
      if (notice_ == Notice::kCallback && receipt_.record.verdict != record_.verdict) {
        shared_.ledger.Fail("A callback and its ticket differ about a verdict.");
      }
    }
    ticket_ = Ticket();
    active_ = false;
    verdict_ = record_.verdict;
    if (verdict_ == GPUSHARE_VERDICT_OK) ++shared_.ledger.ok;
    if (verdict_ == GPUSHARE_VERDICT_CANCELLED) ++shared_.ledger.cancelled;
    if (verdict_ != GPUSHARE_VERDICT_OK) {
      unwell_[unwell_count_++ % unwell_.size()] = submitted_ticket_;
    }
    CheckVerdict();
  }

  // A ticket that does not end well fails those that wait for it.
  bool AwaitedUnwell() const {
    if (awaited_ == nullptr) return false;
    const auto& unwell = awaited_->unwell_;
    return std::find(unwell.begin(), unwell.end(), awaited_ticket_.value) != unwell.end();
  }

  void CheckVerdict() {
    Ledger& ledger = shared_.ledger;
    if (cancel_accepted_) {
      if (verdict_ == GPUSHARE_VERDICT_CANCELLED) return;
      // All done before the cancellation took effect: then its answer is checked too.
      if (verdict_ == GPUSHARE_VERDICT_OK) {
        ++ledger.cancels_overtaken;
        return;
      }
    } else if (verdict_ == GPUSHARE_VERDICT_FAILED && AwaitedUnwell()) {
      ++ledger.failed_waiting;
      return;
    } else if (verdict_ == GPUSHARE_VERDICT_OK) {
      return;
    }
    ledger.Fail(std::string("A task that was ") +
                (cancel_accepted_ ? "cancelled" : "not cancelled") + " ends with the verdict '" +
                gpushare_verdict_name(verdict_) + "' and the code " +
                std::to_string(record_.error_code) + ".");
  }

  Shared& shared_;
  std::unique_ptr<Task> task_;
  Receipt receipt_;
  int64_t receipts_expected_ = 0;
  Notice notice_ = Notice::kTicket;
  Ticket ticket_;
  int fd_ = -1;
  bool active_ = false;
  bool cancel_accepted_ = false;
  int64_t submitted_ns_ = 0;
  int64_t complete_ns_ = 0;  // seen first
  uint64_t submitted_ticket_ = 0;
  const Flight* awaited_ = nullptr;
  gpushare_ticket awaited_ticket_ = {0};
  // The last tickets that did not end well.
  std::array<uint64_t, 8> unwell_ = {};
  size_t unwell_count_ = 0;
  gpushare_verdict verdict_ = GPUSHARE_VERDICT_PENDING;
  gpushare_completion_record record_ = {};
};

// --- actors --------------------------------------------------------------------------------------

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
    // Whole SMs come in groups: a packed quota of less than one is refused.
    if (options.packed != 0)
      options.capsms = std::max(options.capsms, shared_.device.sm_granularity);
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
    shared_.ledger.Expect(shared_.runtime.SetPolicy(policies[chosen]), "gpushare_set_policy");
  }

  Shared& shared_;
  Random random_;
  int64_t quiesce_ns_ = 0;
  int64_t policy_ns_ = 0;
  bool done_ = false;
};

// --- the run -------------------------------------------------------------------------------------

class Soak {
 public:
  explicit Soak(const Options& options) : shared_(options) {}

  Report Run() {
    Report report;
    report.device = shared_.options.device;
    if (std::string error = Open(); error.empty()) error = MakeActors();
    const int64_t begin_ns = shared_.runtime.NowNs();
    if (shared_.ledger.failure_count_ == 0) {
      Drive(begin_ns);
      Close(report);
    }
    report.seconds = static_cast<double>(shared_.runtime.NowNs() - begin_ns) / 1e9;
    CheckMemory(report);
    shared_.ledger.Report(report);
    return report;
  }

 private:
  std::string Open() {
    std::string why;
    const Options& options = shared_.options;
    const bool simulated = options.device == "sim";
    work_ = simulated ? MakeSimulatedWork() : MakeCudaWork(&why);
    if (work_ == nullptr) return Failed(why);
    RuntimeOptions runtime;
    runtime.device = options.device.c_str();
    runtime.drive = simulated ? GPUSHARE_DRIVE_POLL : GPUSHARE_DRIVE_THREAD;
    runtime.seed = options.seed;
    runtime.sim_faults = options.sim_faults.empty() ? nullptr : options.sim_faults.c_str();
    auto created = Runtime::Create(runtime);
    if (!created.ok()) return Failed(created.status().ToString());
    shared_.runtime = *created;
    auto device = shared_.runtime.Device();
    if (!device.ok()) return Failed(device.status().ToString());
    shared_.device = *device;
    return {};
  }

  std::string Failed(const std::string& why) {
    shared_.ledger.Fail(why);
    return why;
  }

  std::string MakeActors() {
    const uint64_t seed = shared_.options.seed * 1000;
    groups_.resize(2 + kBeThreads);
    for (int i = 0; i < kLcApps; ++i) {
      auto actor = std::make_unique<LcActor>(shared_, "lc" + std::to_string(i),
                                             seed + 1 + static_cast<uint64_t>(i), i == 0);
      for (int s = 0; s < kLcSlots; ++s) {
        const std::vector<Kind> kinds =
            s % 2 == 0 ? std::vector<Kind>{Kind::kSincos, Kind::kBlackScholes, Kind::kMd5}
                       : std::vector<Kind>{Kind::kGraph};
        const std::string error = actor->AddSlot(*work_, kinds, kLcTaskMs);
        if (!error.empty()) return Failed(error);
      }
      groups_[0].push_back(std::move(actor));
    }
    int kind = 0;
    for (int i = 0; i < kBeApps; ++i) {
      auto actor = std::make_unique<BeActor>(shared_, "be" + std::to_string(i),
                                             seed + 101 + static_cast<uint64_t>(i));
      for (int s = 0; s < kBeSlots; ++s, ++kind) {
        const double part = static_cast<double>(kind % 4) / 3;
        const double solo_ms = kBeTaskMsMin + (kBeTaskMsMax - kBeTaskMsMin) * part;
        const std::string error =
            actor->AddSlot(*work_, {static_cast<Kind>(kind % kBeKinds)}, solo_ms);
        if (!error.empty()) return Failed(error);
      }
      groups_[static_cast<size_t>(2 + i % kBeThreads)].push_back(std::move(actor));
    }
    groups_[1].push_back(std::make_unique<Director>(shared_, seed + 201));
    return {};
  }

  void Drive(int64_t begin_ns) {
    const auto span_ns = static_cast<int64_t>(shared_.options.seconds * 1e9);
    shared_.stop_ns = begin_ns + span_ns;
    sample_ns_ = std::max<int64_t>(1, std::min<int64_t>(kSecondNs, span_ns / 50));
    if (shared_.device.virtual_time) {
      DriveVirtual();
    } else {
      DriveReal();
    }
  }

  // Everything on this thread, in order of time.
  void DriveVirtual() {
    struct Due {
      int64_t ns;
      Actor* actor;
    };
    std::vector<Due> due;
    for (auto& group : groups_) {
      for (auto& actor : group) due.push_back({0, actor.get()});
    }
    while (!due.empty()) {
      const auto next = std::min_element(due.begin(), due.end(),
                                         [](const Due& a, const Due& b) { return a.ns < b.ns; });
      if (next->ns > shared_.runtime.NowNs() &&
          !shared_.ledger.Expect(shared_.runtime.PollUntil(next->ns), "gpushare_poll_until")) {
        return;
      }
      const int64_t now_ns = shared_.runtime.NowNs();
      Sample(now_ns);
      next->ns = next->actor->Step(now_ns);
      if (next->actor->done() || GaveUp(now_ns)) due.erase(next);
    }
  }

  // Tasks that a broken library never completes keep their actor; it is left behind.
  bool GaveUp(int64_t now_ns) const {
    return shared_.ledger.stopped() && now_ns > shared_.stop_ns + 2 * kPatienceNs;
  }

  void DriveReal() {
    std::vector<std::thread> threads;
    std::atomic<int> running{static_cast<int>(groups_.size())};
    for (auto& group : groups_) {
      threads.emplace_back([this, &group, &running] {
        RunGroup(group);
        --running;
      });
    }
    while (running.load() > 0) {
      Sample(shared_.runtime.NowNs());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (std::thread& thread : threads) thread.join();
  }

  void RunGroup(std::vector<std::unique_ptr<Actor>>& group) {
    for (;;) {
      bool all = true;
      int64_t next_ns = GPUSHARE_NEVER;
      for (auto& actor : group) {
        const int64_t now_ns = shared_.runtime.NowNs();
        if (actor->done() || GaveUp(now_ns)) continue;
        next_ns = std::min(next_ns, actor->Step(now_ns));
        all = false;
      }
      if (all) return;
      const int64_t rest_ns = std::min(next_ns - shared_.runtime.NowNs(), kLookNs);
      if (rest_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(rest_ns));
    }
  }

  void Sample(int64_t now_ns) {
    if (now_ns < next_sample_ns_) return;
    next_sample_ns_ = now_ns + sample_ns_;
    resident_.push_back(ResidentBytes());
    const int64_t free_bytes = work_->FreeDeviceBytes();
    if (free_bytes > 0) device_used_.push_back(-free_bytes);
    if (!shared_.options.progress || resident_.size() % 10 != 0) return;
    std::fprintf(stderr, "%6.0f s to go: %lld accepted, %lld checked, %lld failures, %.1f MB\n",
                 static_cast<double>(shared_.stop_ns - now_ns) / 1e9,
                 static_cast<long long>(shared_.ledger.accepted.load()),
                 static_cast<long long>(shared_.ledger.answers_checked.load()),
                 static_cast<long long>(shared_.ledger.failure_count_.load()),
                 static_cast<double>(resident_.back()) / (1 << 20));
  }

  // Everything is complete, and the library says so too.
  void Close(Report& report) {
    Ledger& ledger = shared_.ledger;
    ledger.Expect(shared_.runtime.Drain(shared_.runtime.NowNs() + 10 * kSecondNs),
                  "gpushare_runtime_drain");
    auto stats = shared_.runtime.Stats();
    if (ledger.Expect(stats.status(), "gpushare_runtime_stats_get")) {
      report.evictions = stats->evictions;
      report.launches = stats->launches;
      if (stats->tasks_pending != 0 || stats->hung != 0 || stats->device_lost != 0 ||
          stats->app_count != 0) {
        ledger.Fail("At the end " + std::to_string(stats->tasks_pending) + " tasks are pending, " +
                    std::to_string(stats->hung) + " launches hung, " +
                    std::to_string(stats->app_count) + " apps are left, and the device is " +
                    (stats->device_lost != 0 ? "lost." : "there."));
      }
    }
    groups_.clear();
    ledger.Expect(shared_.runtime.Shutdown(shared_.runtime.NowNs() + 10 * kSecondNs),
                  "gpushare_runtime_shutdown");
    if (ledger.accepted != ledger.ok + ledger.cancelled + ledger.failed_waiting) {
      ledger.Fail(std::to_string(ledger.accepted) + " tasks were accepted, and " +
                  std::to_string(ledger.ok + ledger.cancelled + ledger.failed_waiting) +
                  " ended as they should.");
    }
    if (ledger.callbacks != ledger.callbacks_expected) {
      ledger.Fail(std::to_string(ledger.callbacks) + " callbacks came, and " +
                  std::to_string(ledger.callbacks_expected) + " were asked for.");
    }
    if (ledger.answers_checked == 0) ledger.Fail("No answer was checked.");
  }

  void CheckMemory(Report& report) {
    constexpr int64_t kResidentMax = 8 << 20;
    constexpr int64_t kDeviceMax = 32 << 20;
    report.resident = GrowthOf(resident_);
    report.device_memory = GrowthOf(device_used_);
    Grows("The process", report.resident, kResidentMax);
    Grows("Device memory", report.device_memory, kDeviceMax);
  }
  void Grows(const char* what, const Growth& growth, int64_t limit_bytes) {
    if (!growth.enough || growth.bytes() < limit_bytes) return;
    shared_.ledger.Fail(std::string(what) + " grew by " + std::to_string(growth.bytes()) +
                        " bytes, and the limit is " + std::to_string(limit_bytes) + ".");
  }

  Shared shared_;
  std::unique_ptr<Work> work_;
  std::vector<std::vector<std::unique_ptr<Actor>>> groups_;
  std::vector<int64_t> resident_;
  std::vector<int64_t> device_used_;
  int64_t sample_ns_ = kSecondNs;
  int64_t next_sample_ns_ = 0;
};

}  // namespace

Report RunSoak(const Options& options) { return Soak(options).Run(); }

}  // namespace gpushare::soak
