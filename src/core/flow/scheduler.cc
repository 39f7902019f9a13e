// Construction, driving, and the calls that concern the whole runtime. See scheduler.h.

#include "src/core/flow/scheduler.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/quiet_thread.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/driver.h"
#include "src/core/flow/learn/learn.h"

namespace gpushare::core {
namespace {

// When a shutdown stops launching, so that what it evicts has left by its deadline.
TimeNs CutOffNs(TimeNs now_ns, TimeNs deadline_ns) {
  if (deadline_ns == kNever) return kNever;
  return deadline_ns - std::min(kShutdownEvictionNs, (deadline_ns - now_ns) / 2);
}

}  // namespace

// --- construction ---

Scheduler::Scheduler(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const SchedulerOptions& options,
                                                             std::unique_ptr<Device> device,
                                                             std::unique_ptr<CostModel> model,
                                                             std::unique_ptr<Policy> policy) {
  if (device == nullptr || model == nullptr || policy == nullptr) {
    return absl::InvalidArgumentError("A scheduler needs a device, a cost model and a policy.");
  }
  auto driver =
      std::make_unique<Driver>(options, std::move(device), std::move(model), std::move(policy));
  Lanes& lanes = driver->flow.lanes;
  const bool eager = options.places == PlacesMode::kEager;
  if (absl::Status status = eager ? lanes.Create(*driver->flow.device, options.splits_max)
                                  : lanes.Open(*driver->flow.device, options.splits_max);
      !status.ok()) {
    return status;
  }
  driver->flow.counters.evictions_blocked.store(driver->flow.lanes.lanes_blocked());
  FollowPolicy(driver->flow);
  driver->flow.now_ns = driver->flow.device->NowNs();
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(driver)));
}

Scheduler::~Scheduler() {
  // An application that needs more time calls Shutdown first.
  constexpr int64_t kDestructorDeadlineNs = int64_t{1000} * 1000 * 1000;
  Shutdown(NowNs() + kDestructorDeadlineNs).IgnoreError();
  StopThread();
}

// --- driving ---

bool Scheduler::Tick() { return driver_->Tick(); }

absl::StatusOr<bool> Scheduler::Poll() {
  if (driver_->threaded()) {
    return absl::FailedPreconditionError("The scheduler's own thread runs; it needs no Poll.");
  }
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not poll: Poll is what runs it.");
  }
  if (driver_->Tick()) return true;
  return driver_->virtual_time() && driver_->StepVirtualTime(kNever);
}

absl::Status Scheduler::PollUntil(TimeNs time_ns) {
  if (time_ns > kLatestTimeNs) {
    return absl::InvalidArgumentError(absl::StrCat("poll_until is asked to drive until ", time_ns,
                                                   " ns, and no clock gets beyond ", kLatestTimeNs,
                                                   " ns."));
  }
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not poll: Poll is what runs it.");
  }
  if (driver_->threaded()) {
    // The scheduler's own thread does the work; this one only waits.
    const auto never = [] { return false; };
    const absl::Status status = driver_->DriveUntil(never, time_ns, "poll until", Awaited::kTime);
    return absl::IsDeadlineExceeded(status) ? absl::OkStatus() : status;
  }
  Device& device = *driver_->flow.device;
  for (;;) {
    const bool worked = driver_->Tick();
    // Virtual time stops at time_ns, after all work that is due then. Real time advances by itself.
    if (worked && driver_->virtual_time()) continue;
    if (device.NowNs() >= time_ns) return absl::OkStatus();
    if (driver_->virtual_time()) driver_->StepVirtualTime(time_ns);
  }
}

absl::Status Scheduler::StartThread() {
  if (driver_->shut_down.load()) {
    return absl::FailedPreconditionError("The runtime is shut down.");
  }
  if (driver_->thread_running.exchange(true)) {
    return absl::FailedPreconditionError("The scheduler's thread runs already.");
  }
  driver_->stop.store(false);
  try {
    driver_->thread = StartQuietThread([driver = driver_.get()] { driver->ThreadMain(); });
  } catch (const std::system_error& error) {
    driver_->thread_running.store(false);
    return absl::ResourceExhaustedError(
        absl::StrCat("The system starts no thread for the scheduler: ", error.what(), "."));
  } catch (const std::bad_alloc&) {
    driver_->thread_running.store(false);
    return MemoryExhausted();
  }
  return absl::OkStatus();
}

void Scheduler::StopThread() {
  if (!driver_->thread.joinable()) return;
  driver_->stop.store(true);
  driver_->Wake();
  driver_->thread.join();
}

// --- whole runtime ---

absl::Status Scheduler::Drain(TimeNs deadline_ns) {
  const auto done = [&] { return driver_->flow.counters.pending.load() == 0; };
  return driver_->DriveUntil(done, deadline_ns, "drain", Awaited::kDrained);
}

absl::Status Scheduler::Quiesce(TimeNs deadline_ns) {
  Flow& flow = driver_->flow;
  // A shutdown runs what was accepted, so that a quiesce beside it holds nothing and only waits.
  if (FlowChange change(*driver_); flow.accepting.load() || flow.device_lost.load()) {
    flow.quiesced.store(true);
    flow.fast_path.store(false, std::memory_order_seq_cst);
    driver_->EvictAllBe();
  }
  const auto idle = [&] {
    MutexLock lock(&driver_->tick_mutex);
    return driver_->IsQuiet();
  };
  absl::Status status = driver_->DriveUntil(idle, deadline_ns, "quiesce", Awaited::kQuiet);
  if (!absl::IsDeadlineExceeded(status)) return status;
  return StatusOf(absl::StatusCode::kDeadlineExceeded, [&] {
    MutexLock lock(&driver_->tick_mutex);
    const Task* const region = flow.first_region;
    if (region == nullptr) return std::string(status.message());
    return absl::StrCat(status.message(), " App '", region->app->options.name,
                        "' has an open region.");
  });
}

absl::Status Scheduler::Resume() {
  Flow& flow = driver_->flow;
  const FlowChange change(*driver_);
  if (!flow.quiesced.exchange(false)) {
    return absl::FailedPreconditionError("The runtime is not quiesced.");
  }
  flow.fast_path.store(flow.accepting.load(), std::memory_order_seq_cst);
  flow.dirty = true;
  return absl::OkStatus();
}

absl::Status Scheduler::Shutdown(TimeNs deadline_ns) {
  Flow& flow = driver_->flow;
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not shut the runtime down.");
  }
  MutexLock one_at_a_time(&driver_->shutdown_mutex);
  if (driver_->shut_down.load()) return absl::OkStatus();
  flow.accepting.store(false);
  flow.fast_path.store(false, std::memory_order_seq_cst);
  driver_->AwaitSubmitters();
  driver_->BeginShutdown(deadline_ns);
  driver_->AwaitSubmitters();  // of a lost device's regions
  const auto done = [&] { return flow.counters.pending.load() == 0; };
  const TimeNs now_ns = NowNs();
  const bool has_time = deadline_ns > now_ns;
  absl::Status status;
  const auto ended_by = [&](TimeNs time_ns) {
    return driver_->DriveUntil(done, time_ns, "shutdown", Awaited::kDrained).ok();
  };
  if (!done() && !(has_time && ended_by(CutOffNs(now_ns, deadline_ns)))) {
    const int64_t left = flow.counters.pending.load();
    driver_->CutOff();
    if (!ended_by(deadline_ns)) driver_->GiveUpRunning();
    status = StatusOf(absl::StatusCode::kDeadlineExceeded, [&] {
      return absl::StrCat("The shutdown cut off ", left,
                          " tasks that had not completed by its deadline.");
    });
  }
  StopThread();  // its callbacks have ended: no two run at once
  driver_->place_maker.Stop();
  driver_->Tick();  // the callbacks of what was given up
  driver_->AwaitCalls();
  driver_->Tick();  // what a thread left that ended inside a callback
  driver_->shut_down.store(true);
  return status;
}

}  // namespace gpushare::core
