// The gate of an eager BE loop. See eager_gate.h.

#include "bindings/python/native/eager_gate.h"

#include <sched.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_nanosleep is POSIX's

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpushare::python {
namespace {

constexpr int kNotReady = 600;      // CUDA_ERROR_NOT_READY
constexpr unsigned kNoTiming = 2;   // CU_EVENT_DISABLE_TIMING
constexpr int kRelaxedCapture = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int64_t kRegionNs =
    20'000'000;  // then its record shows the work, and the next one begins
// A launch of which nothing is known claims this at first, or the room if that is less; and at most
// that where others took longer: a longer one might wait until a tail account is full.
constexpr int64_t kUnknownNs = 10'000;
constexpr int64_t kUnknownMaxNs = 1'000'000;
// From a launch to the start of its kernel, and from its end to the query that sees it: some 4 us
// on an H200 (docs/hardware.md), which are no time of the operation.
constexpr int64_t kLaunchNs = 4'000;
// An end that was not there this long before was seen when it happened.
constexpr int64_t kExactNs = 10'000;
constexpr int64_t kCreditAskNs = 250'000;  // between two regions that a longer room is asked for
// Longer than most LC queries, so that the loop goes on within a microsecond; then it sleeps, which
// takes some 70 us.
constexpr int64_t kSpinNs = 500'000;
constexpr int64_t kSleepNs = 20'000;
constexpr int64_t kSignalsNs = 100'000'000;  // between two looks for signals, as people notice it
// An operation that is still not complete counts as one that takes this long: the longest time that
// OperationTimes keeps.
constexpr int64_t kMeasureMaxNs = 1'000'000'000;

void Add(std::atomic<int64_t>& count, int64_t by = 1) {
  count.store(count.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

int64_t MonotonicNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Pause(int64_t waited_ns) {
  if (waited_ns < kSpinNs) {
    sched_yield();
    return;
  }
  const timespec nap = {0, kSleepNs};
  nanosleep(&nap, nullptr);
}

// Relaxed while it lives: what this thread asks the driver spoils no capture of another one.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const DriverCalls& driver) : exchange_(driver.exchange_capture_mode) {
    if (exchange_ != nullptr) exchange_(&mode_);
  }
  ~RelaxedCapture() {
    if (exchange_ != nullptr) exchange_(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  int (*exchange_)(int*);
  int mode_ = kRelaxedCapture;
};

}  // namespace

HostCalls SystemCalls() {
  return {&MonotonicNs, &Pause, [] { return static_cast<void*>(nullptr); }, [](void*) {}, nullptr};
}

class EagerGate::Waiting {
 public:
  explicit Waiting(EagerGate& gate) : host_(gate.host_), lock_(gate.mutex_, std::try_to_lock) {
    if (lock_.owns_lock()) return;
    Begin();
    lock_.lock();
  }
  // The caller has given the interpreter's lock away.
  struct Released {};
  Waiting(EagerGate& gate, Released) : host_(gate.host_), lock_(gate.mutex_), began_(true) {}
  // The interpreter's lock comes back behind the end of the gate's: a thread that has the former
  // may wait for the latter.
  ~Waiting() {
    lock_.unlock();
    if (released_ != nullptr) host_.restore(released_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void Begin() {
    if (!std::exchange(began_, true)) released_ = host_.release();
  }
  // Without the gate's lock: launches of other threads find that the gate is closing.
  void Pause(int64_t waited_ns) {
    lock_.unlock();
    host_.pause(waited_ns);
    lock_.lock();
  }
  // Whether a signal ends the wait. Its handler may call the gate, so that nobody has its lock.
  bool IsInterrupted() {
    Begin();
    if (host_.interrupted == nullptr) return false;
    lock_.unlock();
    const bool interrupted = host_.interrupted(released_);
    lock_.lock();
    return interrupted;
  }

 private:
  const HostCalls& host_;
  std::unique_lock<std::mutex> lock_;
  bool began_ = false;
  void* released_ = nullptr;
};

EagerGate::EagerGate(const EagerOptions& options, const LibraryCalls& library,
                     const DriverCalls& driver, const HostCalls& host)
    : options_(options), library_(library), driver_(driver), host_(host) {
  lanes_[0].queue = options.queues[0];
  lanes_[1].queue = options.queues[1];
}

bool EagerGate::Open() {
  if (!HasEvents()) return true;
  for (Group& group : groups_) {
    if (driver_.event_create(&group.event, kNoTiming) != 0) return false;
  }
  return driver_.event_create(&group_.event, kNoTiming) == 0;
}

gpushare_status EagerGate::Launch(uint64_t key) {
  Waiting waiting(*this);
  if (closing_.load()) return GPUSHARE_FAILED_PRECONDITION;
  Add(counts_.operations);
  if (failed_ != GPUSHARE_OK) return failed_;
  if (measures_ >= 0) FinishMeasurement(waiting);
  const uint16_t slot = OperationTimes::SlotOf(key);
  int64_t now_ns = host_.now_ns();  // some 25 ns: once where the launch goes at once
  gpushare_status status = GPUSHARE_OK;
  if (!MayGo(now_ns, times_.Of(slot))) status = Await(slot, waiting, now_ns);
  if (status == GPUSHARE_OK && failed_ == GPUSHARE_OK) NoteLaunch(slot, now_ns);
  follows_.store(measures_ >= 0 || region_on_credit_, std::memory_order_relaxed);
  return failed_ != GPUSHARE_OK ? failed_ : status;
}

void EagerGate::Launched() {
  Waiting waiting(*this);
  follows_.store(false, std::memory_order_relaxed);
  if (closing_.load() || failed_ != GPUSHARE_OK) return;
  if (measures_ >= 0) FinishMeasurement(waiting);
  // It has its one operation. A query that comes later does not meet it.
  if (region_on_credit_) EndRegion();  // or the next launch does
}

gpushare_status EagerGate::Close() {
  closing_.store(true);
  Waiting waiting(*this, Waiting::Released());
  const int64_t began_ns = host_.now_ns();
  if (std::exchange(closes_, true)) {  // the first one ends within kCloseNs
    while (!closed_) waiting.Pause(host_.now_ns() - began_ns);
    return failed_;
  }
  const auto goes_on = [&] {
    const int64_t waited_ns = host_.now_ns() - began_ns;
    if (waited_ns < kCloseNs) waiting.Pause(waited_ns);
    return waited_ns < kCloseNs;
  };
  while (region_open_ && !EndRegion() && goes_on()) {
  }
  for (Lane& lane : lanes_) {
    while (!Leave(lane) && goes_on()) {
    }
    GiveUp(lane);
  }
  for (Group& group : groups_) DestroyEvent(group);
  DestroyEvent(group_);
  closed_ = true;
  return failed_;
}

void EagerGate::DestroyEvent(Group& group) {
  if (group.event != nullptr) driver_.event_destroy(group.event);
  group.event = nullptr;
}

// Whether the launch may go at once: the usual case.
bool EagerGate::MayGo(int64_t now_ns, int64_t expected_ns) {
  if (!region_open_ || region_on_credit_ || expected_ns == 0) return false;
  if (now_ns - region_began_ns_ > kRegionNs) return false;
  const int64_t room_ns = Room();
  if (room_ns <= 0) return false;
  const int64_t standing_ns = StandingNs(room_ns);
  if (group_.count == kGroupMax || group_.work_ns >= standing_ns / 2) {
    CloseGroup();
    Reap();
  }
  return std::max<int64_t>(0, busy_until_ns_ - now_ns) + expected_ns <= standing_ns;
}

// Waits until the launch may go, which it does at `now_ns`.
gpushare_status EagerGate::Await(uint16_t slot, Waiting& waiting, int64_t& now_ns) {
  const int64_t began_ns = host_.now_ns();
  int64_t signals_ns = began_ns;  // when signals were looked for
  gpushare_status status = GPUSHARE_OK;
  while (status == GPUSHARE_OK) {
    bool progress = false;
    const bool goes = TryToGo(slot, waiting, progress);
    now_ns = host_.now_ns();
    if (goes || failed_ != GPUSHARE_OK) break;
    if (progress) continue;
    waiting.Begin();
    host_.pause(now_ns - began_ns);
    if (now_ns - signals_ns >= kSignalsNs) {
      signals_ns = now_ns;
      if (waiting.IsInterrupted()) status = GPUSHARE_CANCELLED;
    }
    if (closing_.load()) status = GPUSHARE_FAILED_PRECONDITION;
  }
  Add(counts_.held_ns, now_ns - began_ns);
  return status;
}

// Whether the launch may go now. `progress`: something has ended, so that it is worth another look.
bool EagerGate::TryToGo(uint16_t slot, Waiting& waiting, bool& progress) {
  const int64_t room_ns = Room();
  if (failed_ != GPUSHARE_OK) return false;
  const int64_t now_ns = host_.now_ns();
  if (region_open_ &&
      (room_ns <= 0 || region_on_credit_ || now_ns - region_began_ns_ > kRegionNs)) {
    if (!EndRegion()) return false;
  }
  if (room_ns <= 0) return false;
  const int64_t expected_ns = times_.Of(slot);
  const int64_t needs_ns = expected_ns > 0 ? expected_ns : UnknownNs(slot, room_ns);
  const int64_t standing_ns = StandingNs(room_ns);
  if (expected_ns == 0 || needs_ns > standing_ns) {
    if (!TryAlone(needs_ns, room_ns, waiting, progress)) return false;
    if (expected_ns == 0) measures_ = slot;
    return true;
  }
  if (std::max<int64_t>(0, busy_until_ns_ - now_ns) + needs_ns > standing_ns) {
    CloseGroup();
    progress = Reap();
    return false;
  }
  return region_open_ || BeginRegion(2 * standing_ns, waiting);  // a query meets all of it
}

// An operation that is unknown, or longer than what may stand in front of a query.
bool EagerGate::TryAlone(int64_t needs_ns, int64_t room_ns, Waiting& waiting, bool& progress) {
  if (!IsDrained()) {
    CloseGroup();
    progress = Reap();
    if (!IsDrained()) return false;
  }
  if (needs_ns <= room_ns) {
    // What it declares is what the accounts of LC apps pay for.
    if (region_open_ && needs_ns > region_bound_ns_ && !EndRegion()) return false;
    return region_open_ || BeginRegion(std::max(needs_ns, 2 * StandingNs(room_ns)), waiting);
  }
  // An open region counts as work, and while it waits nothing would be saved.
  if (region_open_ && !EndRegion()) return false;
  const int64_t now_ns = host_.now_ns();
  if (now_ns - credit_asked_ns_ < kCreditAskNs) return false;
  credit_asked_ns_ = now_ns;
  if (!BeginRegion(needs_ns, waiting)) return false;
  Add(counts_.on_credit);
  return region_on_credit_ = true;
}

void EagerGate::NoteLaunch(uint16_t slot, int64_t now_ns) {
  if (group_.count == kGroupMax) CloseGroup();
  if (failed_ != GPUSHARE_OK) return;  // the group is still full
  const int64_t expected_ns = times_.Of(slot);
  const int64_t work_ns = expected_ns > 0 ? expected_ns : kUnknownNs;
  busy_until_ns_ = std::max(busy_until_ns_, now_ns) + work_ns;
  if (group_.count == 0) group_.first_ns = now_ns;
  group_.last_ns = now_ns;
  group_.work_ns += work_ns;
  group_.slots[static_cast<size_t>(group_.count++)] = slot;
}

// What an operation that was not measured claims.
int64_t EagerGate::UnknownNs(uint16_t slot, int64_t room_ns) const {
  const int64_t needs_ns = std::max(times_.Claim(slot), unknown_ns_);
  if (needs_ns > kUnknownNs && !IsCapturing()) return needs_ns;
  return std::min(kUnknownNs, room_ns);  // a captured operation does not run
}

// The longest one counts: a loop of long operations has more of them.
void EagerGate::RaiseUnknown(int64_t took_ns) {
  unknown_ns_ = std::min(std::max(unknown_ns_, took_ns), kUnknownMaxNs);
}

// Waits for the operation that runs alone. LC work that came in between slows it, so that it is
// measured again another time. Until that work came it ran alone, and was not complete.
void EagerGate::FinishMeasurement(Waiting& waiting) {
  const auto slot = static_cast<uint16_t>(std::exchange(measures_, -1));
  if (!HasEvents()) return times_.Seed(slot, kUnknownNs);
  const int64_t launched_ns = group_.first_ns;
  CloseGroup();
  if (pending_ == 0) return;  // it was captured
  const int64_t began_ns = host_.now_ns();
  int64_t waited_ns = 0;
  int64_t alone_ns = 0;
  bool waited = false;
  bool spoiled = false;
  while (failed_ == GPUSHARE_OK && !closing_.load() && waited_ns < kMeasureMaxNs && !ReapOldest()) {
    spoiled = spoiled || Room() <= 0;
    if (!spoiled) alone_ns = host_.now_ns() - launched_ns;
    waiting.Begin();
    waited = true;
    host_.pause(waited_ns);
    waited_ns = host_.now_ns() - began_ns;
  }
  if (failed_ != GPUSHARE_OK || closing_.load()) return;
  if (spoiled || Room() <= 0) {
    times_.RanAtLeast(slot, std::max<int64_t>(0, alone_ns - kLaunchNs));
    return RaiseUnknown(times_.Claim(slot));
  }
  const bool complete = pending_ == 0;
  int64_t took_ns =
      complete ? last_end_ns_ - launched_ns - kLaunchNs : host_.now_ns() - launched_ns;
  // It may have ended long before it was looked at.
  if (!waited) took_ns = std::min(took_ns, kUnknownNs);
  times_.Seed(slot, took_ns);
  unknown_ns_ /= 2;  // or it has short ones too
  RaiseUnknown(took_ns);
  Add(counts_.measured);
}

// --- regions ---

int64_t EagerGate::Room() {
  int64_t room_ns = 0;
  Fail(library_.region_room(options_.runtime, &room_ns));
  return room_ns;
}

int64_t EagerGate::StandingNs(int64_t room_ns) const {
  return std::min(options_.outstanding_ns, room_ns / 2);
}

bool EagerGate::BeginRegion(int64_t bound_ns, Waiting& waiting) {
  waiting.Begin();
  Lane& lane = lanes_[1];
  if (!Leave(lane)) return false;
  gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
  options.bound_ns = std::max<int64_t>(1, bound_ns);
  const gpushare_status status =
      library_.region_begin(lane.queue, &options, &lane.ticket, &lane.stream);
  if (status == GPUSHARE_OK) {
    std::swap(lanes_[0], lanes_[1]);
    region_open_ = true;
    region_bound_ns_ = options.bound_ns;
    region_began_ns_ = host_.now_ns();
    Add(counts_.regions);
    return true;
  }
  lane.ticket.value = 0;
  Add(counts_.refusals);
  // A lost device is unavailable too, which the next look at the room says.
  if (status != GPUSHARE_UNAVAILABLE && status != GPUSHARE_RESOURCE_EXHAUSTED) Fail(status);
  return false;
}

// The region completes behind what was launched in it. False: the device is full of launches, which
// end by themselves, and the region is still open.
bool EagerGate::EndRegion() {
  CloseGroup();
  Lane& lane = lanes_[0];
  if (pending_ > 0 && lane.stream != nullptr) {
    const RelaxedCapture relaxed(driver_);
    if (driver_.stream_wait_event(lane.stream, last_event_, 0) != 0) Fail(GPUSHARE_INTERNAL);
  }
  const gpushare_status status = library_.region_end(options_.runtime, lane.ticket);
  if (status == GPUSHARE_RESOURCE_EXHAUSTED) return false;
  Fail(status);
  region_open_ = region_on_credit_ = false;
  return true;
}

// Whether the last region of the lane is complete, so that the next one may begin. A deadline that
// has passed: the library looks once, and drives the flow where no thread of its own does.
bool EagerGate::Leave(Lane& lane) {
  if (lane.ticket.value == 0) return true;
  if (library_.ticket_wait(options_.runtime, lane.ticket, 0) == GPUSHARE_DEADLINE_EXCEEDED) {
    return false;
  }
  library_.ticket_release(options_.runtime, lane.ticket);
  lane.ticket.value = 0;
  return true;
}

// A ticket that is left is of a region that is not complete.
void EagerGate::GiveUp(Lane& lane) {
  if (lane.ticket.value == 0) return;
  Fail(GPUSHARE_DEADLINE_EXCEEDED);
  library_.ticket_release(options_.runtime, lane.ticket);
  lane.ticket.value = 0;
}

void EagerGate::Fail(gpushare_status status) {
  if (failed_ == GPUSHARE_OK) failed_ = status;
}

// --- what is outstanding ---

// A captured operation does not run, and CUDA refuses event queries on a stream in capture.
bool EagerGate::IsCapturing() const {
  int status = 0;
  return driver_.stream_is_capturing != nullptr &&
         driver_.stream_is_capturing(options_.stream, &status) == 0 && status != 0;
}

bool EagerGate::IsDrained() const {
  if (!HasEvents()) return busy_until_ns_ <= host_.now_ns();
  return pending_ == 0 && group_.count == 0;
}

// An event behind the launches since the last one. Where all events are taken, the newest group's
// stands behind them from now on, and the group has them too. Its times are learnt by its own
// slots.
void EagerGate::CloseGroup() {
  if (group_.count == 0) return;
  if (HasEvents() && !IsCapturing()) {
    const bool joins = pending_ == kGroups;
    Group& group = joins ? At(pending_ - 1) : group_;
    const RelaxedCapture relaxed(driver_);
    if (driver_.event_record(group.event, options_.stream) != 0) Fail(GPUSHARE_INTERNAL);
    if (failed_ != GPUSHARE_OK) return;
    last_event_ = group.event;
    if (joins) {
      group.work_ns += group_.work_ns;
      group.last_ns = group_.last_ns;
    } else {
      std::swap(At(pending_), group_);
      ++pending_;
    }
  }
  void* const event = group_.event;
  group_ = Group();
  group_.event = event;
}

// Takes the groups that are complete. False: there is none.
bool EagerGate::Reap() {
  bool any = false;
  while (pending_ > 0 && failed_ == GPUSHARE_OK && ReapOldest()) any = true;
  return any;
}

bool EagerGate::IsComplete(const Group& group) {
  const RelaxedCapture relaxed(driver_);
  const int status = driver_.event_query(group.event);
  if (status != 0 && status != kNotReady) Fail(GPUSHARE_INTERNAL);
  return status == 0;
}

bool EagerGate::ReapOldest() {
  const int64_t now_ns = host_.now_ns();
  const Group& group = At(0);
  if (!IsComplete(group)) {
    looked_ns_ = now_ns;
    busy_until_ns_ = std::max(busy_until_ns_, now_ns + LaterNs());
    return false;
  }
  const bool exact = looked_ns_ != 0 && now_ns - looked_ns_ < kExactNs;
  Learn(group, now_ns, exact);
  looked_ns_ = 0;
  last_end_ns_ = now_ns;
  last_exact_ = exact;
  const int64_t later_ns = now_ns + LaterNs();
  busy_until_ns_ = exact ? later_ns : std::min(busy_until_ns_, later_ns);
  first_ = (first_ + 1) % kGroups;
  --pending_;
  return true;
}

// The expected time of what was launched behind the oldest group.
int64_t EagerGate::LaterNs() const {
  int64_t work_ns = group_.work_ns;
  for (int i = 1; i < pending_; ++i) work_ns += At(i).work_ns;
  return work_ns;
}

// Its end less the end of the group before is what the group took, if the GPU had all of it by
// then. So is the time of a single launch on an idle GPU. Otherwise it took less than that.
void EagerGate::Learn(const Group& group, int64_t end_ns, bool exact) {
  const bool idle = group.first_ns > last_end_ns_;  // before it
  const int64_t took_ns = end_ns - std::max(group.first_ns, last_end_ns_) - (idle ? kLaunchNs : 0);
  const float factor =
      static_cast<float>(std::max<int64_t>(took_ns, 1)) / static_cast<float>(group.work_ns);
  const bool single = idle && group.count == 1;
  const bool behind = last_exact_ && group.last_ns <= last_end_ns_;
  if ((exact && (single || behind)) || factor < 1) times_.Scale(group, factor);
}

}  // namespace gpushare::python
