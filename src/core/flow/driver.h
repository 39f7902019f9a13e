// The driver of the flow: Tick runs the seven stages, then what must run with no lock held.
//
//   lock tick_mutex -> RunStages: submit (Collect), admit, predict, plan, launch, complete, learn
//   unlock          -> deferred launches of opaque work, then callbacks (deferred_calls.h)
//
// Invariants: Tick allocates nothing, so that it needs no memory to complete what was accepted; a
// device call that cannot allocate fails (exhaustion.h). tick_mutex lets one thread at a time run
// Tick: the scheduler's own thread, a caller of Poll, or a caller that waits in a runtime without
// that thread. The public calls are in scheduler.h. Threads: any, unless a comment says otherwise.

#ifndef GPUSHARE_SRC_CORE_FLOW_DRIVER_H_
#define GPUSHARE_SRC_CORE_FLOW_DRIVER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "src/core/base/application_call.h"
#include "src/core/base/mutex.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/places/place_maker.h"
#include "src/core/flow/waiting/parking.h"
#include "src/core/flow/waiting/spinners.h"
#include "src/core/flow/waiting/waiters.h"
#include "src/core/queueing/headroom.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

class Driver {
 public:
  Driver(const SchedulerOptions& options, std::unique_ptr<Device> device,
         std::unique_ptr<CostModel> model, std::unique_ptr<Policy> policy)
      : flow(options, std::move(device), std::move(model), std::move(policy)),
        waiters(flow.device->capabilities().virtual_time) {
    for (int counter = kMaxCounters - 1; counter >= 0; --counter) flow.free_counters.Add(counter);
    // Baymax eq. 5: how many pageable copies fit beside the LC one in each direction.
    const DeviceProfile& profile = flow.device->capabilities().profile;
    flow.copies[static_cast<size_t>(CopyDirection::kHostToDevice)].be_limit =
        ConcurrentCopies(profile.pinned_bytes_per_ns, profile.pageable_h2d_bytes_per_ns);
    flow.copies[static_cast<size_t>(CopyDirection::kDeviceToHost)].be_limit =
        ConcurrentCopies(profile.pinned_bytes_per_ns, profile.pageable_d2h_bytes_per_ns);
  }

  bool virtual_time() const { return flow.device->capabilities().virtual_time; }
  bool threaded() const { return thread_running.load(std::memory_order_acquire); }

  bool RunStages() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  bool Tick();
  TimeNs NextWake();
  bool StepVirtualTime(TimeNs limit_ns);
  bool IsIdle() const;
  // Wakes the scheduler's thread, after something was posted or changed for it.
  void Wake() { parking.Wake(); }
  // Whether nothing is on the device and no region is open.
  bool IsQuiet() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  // `joined`: Waiters::Joined before the state was looked at. True: more callers are to be woken.
  bool Notify(const AwaitedEnds& ends, bool quiet, uint64_t joined);

  // The scheduler's thread (scheduler_thread.cc).
  void ThreadMain();
  // Whether something was posted, or changed outside a Tick, that the next Tick has to look at.
  bool HasWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  void RestInVirtualTime();
  void RestSpinning();
  void SpinAtRest(TimeNs next_ns);
  void RestBalanced();
  void Park();
  TimeNs NextLookNs(TimeNs now_ns);
  // `awaited`: what `done` asks for; of kTask, `task` is the one.
  absl::Status DriveUntil(absl::FunctionRef<bool()> done, TimeNs deadline_ns, const char* what,
                          Awaited awaited, Task* task = nullptr);
  bool OthersDrive();
  // Whether something is pending, and nothing is due without a new call.
  bool AtRest();
  // Writes to the application's log why callers that wait without a deadline wait for ever, if
  // nothing is due. Once for each call.
  void ReportRest();
  // What LookAtRest keeps of one call that drives the flow itself, in real time.
  struct Rest {
    TimeNs since_ns = kNever;
    bool told = false;
  };
  void LookAtRest(Rest& rest);
  std::string RestReport(int calls);
  // Lets the scheduler's thread drive. True: `done` was true, which another submit may have ended
  // since. It also returns when the deadline has passed or that thread has ended.
  bool AwaitThread(absl::FunctionRef<bool()> done, TimeNs deadline_ns, Awaited awaited, Task* task);
  // Before that, for an LC task in real time (caller_spin.cc).
  bool SpinForEnd(absl::FunctionRef<bool()> done, TimeNs deadline_ns, Task& task);
  // Waits until the application's functions that were taken have ended (deferred_calls.h).
  void AwaitCalls();
  void EvictAllBe() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  void EvictAllYielding() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  void FinishOpenRegions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  // The three steps of a shutdown. BeginShutdown: nothing is held any more, and regions end. If its
  // deadline has passed, nothing more is launched either.
  // CutOff: what waits ends with kShutdown, and what can be evicted leaves the device: BE, and the
  // graphs of LC apps that yield. GiveUpRunning: what is still on the device ends with kTimedOut.
  void BeginShutdown(TimeNs deadline_ns);
  void CutOff();
  void GiveUpRunning();
  void AdmitEverything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  void AwaitSubmitters();

  Flow flow;
  // Held while the device describes and prepares a kernel; taken before tick_mutex.
  Mutex registration_mutex ABSL_ACQUIRED_BEFORE(tick_mutex);
  // One driver at a time. Submitters never take it.
  Mutex tick_mutex;

  Parking parking;
  Waiters waiters;
  Spinners spinners{Spinners::MostOf(UsableCores())};
  std::atomic<bool> thread_running{false};
  std::atomic<bool> stop{false};
  std::atomic<bool> parked{false};  // the scheduler's thread sleeps, and nothing is due
  std::thread thread;
  // The scheduler's thread's own.
  TimeNs idle_since_ns = kNever;
  TimeNs rest_since_ns = kNever;  // spinning: something is pending, and nothing is due
  int64_t wake_latency_ns = kWakeLatencyNsMax / 4;  // of its timed sleeps, measured
  Mutex shutdown_mutex;
  std::atomic<bool> shut_down{false};
  // Behind what its thread uses, so that it ends first.
  PlaceMaker place_maker{flow, registration_mutex, tick_mutex, [this] { Wake(); }};
};

// Holds the lock of Tick while something other than a Tick changes the flow, and then wakes the
// scheduler's thread, which may sleep without a time limit.
class ABSL_SCOPED_LOCKABLE FlowChange {
 public:
  explicit FlowChange(Driver& driver) ABSL_EXCLUSIVE_LOCK_FUNCTION(driver.tick_mutex)
      : driver_(driver) {
    driver_.tick_mutex.Lock();
  }
  ~FlowChange() ABSL_UNLOCK_FUNCTION() {
    driver_.tick_mutex.Unlock();
    driver_.Wake();
  }
  FlowChange(const FlowChange&) = delete;
  FlowChange& operator=(const FlowChange&) = delete;

 private:
  Driver& driver_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_DRIVER_H_
