// Tick, its drivers, and the calls that change a running scheduler. See scheduler.h.

#include "src/core/scheduler.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "src/core/admit.h"
#include "src/core/complete.h"
#include "src/core/fast_path.h"
#include "src/core/flow.h"
#include "src/core/flow_check.h"
#include "src/core/headroom.h"
#include "src/core/launch.h"
#include "src/core/learn.h"
#include "src/core/mutex.h"
#include "src/core/open_metrics.h"
#include "src/core/plan.h"
#include "src/core/predict.h"
#include "src/core/state_change.h"
#include "src/core/submit.h"

namespace gpushare::core {
namespace {

// Callbacks that this thread is inside of: they must not wait.
thread_local int callback_depth = 0;

// How long a thread that waits, or the parked scheduler thread, sleeps at most before it looks
// again; wake-ups normally come from a signal.
constexpr int64_t kNapNs = 2 * 1000 * 1000;

absl::Status NoApp(AppId app) {
  return absl::InvalidArgumentError(
      absl::StrCat("App ", app.value, " does not exist or is released."));
}

absl::Status NoTicket(TicketId ticket) {
  return absl::InvalidArgumentError(
      absl::StrCat("Ticket ", ticket.value, " does not exist or is released."));
}

LatencySummary Summarise(const LatencyHistogram& histogram) {
  return {histogram.Count(), histogram.Quantile(0.5), histogram.Quantile(0.99), histogram.Max()};
}

}  // namespace

class Scheduler::Impl {
 public:
  Impl(const SchedulerOptions& options, std::unique_ptr<Device> device,
       std::unique_ptr<CostModel> model, std::unique_ptr<Policy> policy)
      : flow(options, std::move(device), std::move(model), std::move(policy)) {
    for (int i = 0; i < kMaxCounters; ++i) {
      flow.free_counters[static_cast<size_t>(flow.free_counter_count++)] = kMaxCounters - 1 - i;
    }
    flow.notices.reserve(kNoticeReserve);
    spare_notices.reserve(kNoticeReserve);
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
  void LaunchDeferred(std::vector<LaunchRequest>& requests);
  TimeNs NextWake();
  bool StepVirtualTime(TimeNs limit_ns);
  void ThreadMain();
  void Park();
  void Wake();
  void NotifyWaiters();
  absl::Status DriveUntil(absl::FunctionRef<bool()> done, TimeNs deadline_ns, const char* what);
  void EvictAllBe() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  void FinishOpenRegions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tick_mutex);
  void AwaitSubmitters();

  static constexpr size_t kNoticeReserve = 4096;

  Flow flow;
  // One driver at a time. Submitters never take it.
  Mutex tick_mutex;
  std::vector<Notice> spare_notices ABSL_GUARDED_BY(tick_mutex);

  std::atomic<bool> thread_running{false};
  std::atomic<bool> stop{false};
  std::atomic<bool> parked{false};
  std::atomic<int> waiters{0};
  std::atomic<TimeNs> waiter_deadline_ns{kNever};
  Mutex wake_mutex;
  CondVar wake;
  CondVar completed;
  std::thread thread;
  Mutex shutdown_mutex;
  std::atomic<bool> shut_down{false};
};

bool Scheduler::Impl::RunStages() {
  flow.now_ns = flow.device->NowNs();
  Collect(flow);
  Admit(flow);
  Predict(flow);
  MakePlan(flow);
  Launch(flow);
  const bool completions = Complete(flow);
  Learn(flow);
  flow.counters.ticks.fetch_add(1, std::memory_order_relaxed);
  const bool acted =
      flow.planned && (flow.buffers.plan.launch_count > 0 || flow.buffers.plan.eviction_count > 0);
  return flow.inbox_count > 0 || completions || acted || flow.dirty;
}

// Opaque launches call the application's function. Thread: the driver's, no lock held, so that the
// function may submit.
void Scheduler::Impl::LaunchDeferred(std::vector<LaunchRequest>& requests) {
  for (const LaunchRequest& request : requests) {
    const absl::Status status = flow.device->Launch(request);
    if (status.ok()) continue;
    DeviceCompletion refused;
    refused.launch = request.launch;
    refused.outcome = IsDeviceLost(status) ? Outcome::kDeviceLost : Outcome::kFailed;
    refused.start_ns = refused.end_ns = flow.device->NowNs();
    refused.error_code = static_cast<int32_t>(status.code());
    MutexLock lock(&tick_mutex);
    flow.refused.push_back(refused);
  }
  requests.clear();
}

bool Scheduler::Impl::Tick() {
  std::vector<Notice> notices;
  std::vector<LaunchRequest> deferred;
  bool worked = false;
  {
    MutexLock lock(&tick_mutex);
    worked = RunStages();
    deferred.swap(flow.deferred);
    if (!flow.notices.empty()) {
      notices.swap(flow.notices);
      flow.notices.swap(spare_notices);
    }
  }
  if (!deferred.empty()) {
    ++callback_depth;
    LaunchDeferred(deferred);
    --callback_depth;
  }
  if (!notices.empty()) {
    ++callback_depth;
    for (const Notice& notice : notices) notice.callback(notice.user, notice.record);
    --callback_depth;
    notices.clear();
    MutexLock lock(&tick_mutex);
    if (spare_notices.capacity() < notices.capacity()) spare_notices.swap(notices);
  }
  if (worked) NotifyWaiters();
  return worked;
}

void Scheduler::Impl::NotifyWaiters() {
  if (waiters.load(std::memory_order_seq_cst) == 0) return;
  MutexLock lock(&wake_mutex);
  completed.SignalAll();
}

// When something will happen without anybody's doing: a device event, a plan's wish, a hang's
// limit.
TimeNs Scheduler::Impl::NextWake() {
  MutexLock lock(&tick_mutex);
  TimeNs next = flow.device->NextEventNs();
  if (flow.backlog_count > 0 || flow.running_be_count > 0) next = std::min(next, flow.replan_at_ns);
  if (flow.running_be_count + flow.running_lc_count > 0) next = std::min(next, flow.hang_check_ns);
  return next;
}

// Moves virtual time to the next event, but not beyond the limit. False: there is nothing to wait
// for.
bool Scheduler::Impl::StepVirtualTime(TimeNs limit_ns) {
  const TimeNs next = std::min(NextWake(), limit_ns);
  if (next == kNever) return false;
  flow.device->AdvanceTo(std::max(next, flow.device->NowNs()));
  return true;
}

void Scheduler::Impl::Wake() {
  if (!parked.load(std::memory_order_seq_cst)) return;
  MutexLock lock(&wake_mutex);
  wake.SignalAll();
}

void Scheduler::Impl::Park() {
  MutexLock lock(&wake_mutex);
  parked.store(true, std::memory_order_seq_cst);
  if (flow.ring.Empty() && !stop.load()) wake.WaitFor(&wake_mutex, kNapNs);
  parked.store(false, std::memory_order_seq_cst);
}

void Scheduler::Impl::ThreadMain() {
  while (!stop.load(std::memory_order_acquire)) {
    if (Tick()) continue;
    if (virtual_time()) {
      if (StepVirtualTime(kNever)) continue;
      // Nothing will ever happen, but somebody waits until a time: let it come.
      const TimeNs deadline = waiter_deadline_ns.exchange(kNever);
      if (deadline != kNever) {
        flow.device->AdvanceTo(std::max(deadline, flow.device->NowNs()));
        NotifyWaiters();
        continue;
      }
      Park();
    } else if (NextWake() == kNever && flow.gate.InFlight() == 0) {
      Park();
    }
    // On a real device with work in flight: spin.
  }
}

absl::Status Scheduler::Impl::DriveUntil(absl::FunctionRef<bool()> done, TimeNs deadline_ns,
                                         const char* what) {
  if (callback_depth > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("A callback must not wait (", what, "): it would wait for itself."));
  }
  const auto late = [&] {
    return absl::DeadlineExceededError(absl::StrCat(
        "The deadline passed (", what, ") with ", flow.counters.pending.load(), " tasks pending."));
  };
  if (!threaded()) {
    while (!done()) {
      const bool worked = Tick();
      if (done()) break;
      // Also while there is work: callbacks that submit could go on for ever.
      if (flow.device->NowNs() >= deadline_ns) return late();
      if (worked) continue;
      if (virtual_time()) {
        if (!StepVirtualTime(deadline_ns)) return late();
      } else {
        std::this_thread::yield();
      }
    }
    return absl::OkStatus();
  }
  waiters.fetch_add(1, std::memory_order_seq_cst);
  absl::Status status;
  {
    MutexLock lock(&wake_mutex);
    while (!done()) {
      if (flow.device->NowNs() >= deadline_ns || !threaded()) {
        status = late();
        break;
      }
      TimeNs registered = waiter_deadline_ns.load();
      while (deadline_ns < registered &&
             !waiter_deadline_ns.compare_exchange_weak(registered, deadline_ns)) {
      }
      completed.WaitFor(&wake_mutex, kNapNs);
    }
  }
  waiters.fetch_sub(1);
  return status;
}

void Scheduler::Impl::EvictAllBe() {
  for (int i = 0; i < flow.running_be_count; ++i) {
    const Task& task = *flow.running_be[static_cast<size_t>(i)];
    for (int p = 0; p < task.part_count; ++p) {
      const Part& part = task.parts[static_cast<size_t>(p)];
      if (part.epoch != 0) {
        EvictLane(flow, part.lane, 0, task.record.ticket, Reason::kHoldQuiesced);
      }
    }
  }
}

// Regions that nobody ended: their tickets complete all the same.
void Scheduler::Impl::FinishOpenRegions() {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    App& app = flow.tables.app_slot(slot);
    if (app.id.load() == 0) continue;
    for (int i = 0; i < app.task_capacity; ++i) {
      Task& task = app.tasks[static_cast<size_t>(i)];
      RegionPhase open = RegionPhase::kOpen;
      if (task.holders.load() == 0 || task.complete.load()) continue;
      if (!task.region.compare_exchange_strong(open, RegionPhase::kEnded)) continue;
      task.adopted = true;
      FinishTask(flow, task, Verdict::kShutdown);
    }
  }
}

// Whoever is inside a submit saw the runtime open; its word is in the ring once it has left.
void Scheduler::Impl::AwaitSubmitters() {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    while (flow.tables.app_slot(slot).submitters.load() != 0) std::this_thread::yield();
  }
}

// --- construction
// ---------------------------------------------------------------------------------

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const SchedulerOptions& options,
                                                             std::unique_ptr<Device> device,
                                                             std::unique_ptr<CostModel> model,
                                                             std::unique_ptr<Policy> policy) {
  if (device == nullptr || model == nullptr || policy == nullptr) {
    return absl::InvalidArgumentError("A scheduler needs a device, a cost model and a policy.");
  }
  auto impl =
      std::make_unique<Impl>(options, std::move(device), std::move(model), std::move(policy));
  if (absl::Status status = impl->flow.lanes.Create(*impl->flow.device, options.splits_max);
      !status.ok()) {
    return status;
  }
  impl->flow.bare.store(impl->flow.policy->name() == "bare");
  impl->flow.now_ns = impl->flow.device->NowNs();
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

Scheduler::~Scheduler() {
  // Whoever wants a longer goodbye calls Shutdown first.
  constexpr int64_t kGoodbyeNs = int64_t{1000} * 1000 * 1000;
  Shutdown(NowNs() + kGoodbyeNs).IgnoreError();
  StopThread();
}

// --- registration
// ---------------------------------------------------------------------------------

absl::StatusOr<AppId> Scheduler::CreateApp(const AppOptions& options) {
  Flow& flow = impl_->flow;
  MutexLock lock(&impl_->tick_mutex);
  absl::StatusOr<App*> app = flow.tables.CreateApp(options);
  if (!app.ok()) return app.status();
  flow.ledger.AddApp(static_cast<int>((*app)->slot), options.app_class);
  (*app)->load_updated_ns = (*app)->idle_since_ns = flow.device->NowNs();
  flow.dirty = true;
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kAppCreated);
  event.time_ns = flow.device->NowNs();
  event.id = event.app = (*app)->id.load();
  event.app_class = static_cast<uint8_t>(options.app_class);
  event.a = static_cast<int64_t>(options.app_class);
  event.b = options.target_ns;
  event.c = static_cast<int64_t>(options.p99_bound * 1e6);
  flow.Emit(event);
  return AppId{(*app)->id.load()};
}

absl::Status Scheduler::ReleaseApp(AppId id) {
  Flow& flow = impl_->flow;
  MutexLock lock(&impl_->tick_mutex);
  App* app = flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  if (absl::Status status = flow.tables.CloseApp(*app); !status.ok()) return status;
  const int64_t open = app->TasksOpen() + app->active_queries.load();
  if (open != 0) {
    flow.tables.ReopenApp(*app);
    return absl::FailedPreconditionError(absl::StrCat("App '", app->options.name, "' has ", open,
                                                      " tasks or queries that are not complete."));
  }
  flow.ledger.RemoveApp(static_cast<int>(app->slot));
  flow.tables.FreeApp(*app);
  flow.dirty = true;
  return absl::OkStatus();
}

absl::StatusOr<QueueId> Scheduler::CreateQueue(AppId id) {
  MutexLock lock(&impl_->tick_mutex);
  App* app = impl_->flow.tables.FindApp(id);
  if (app == nullptr || !app->open.load()) return NoApp(id);
  absl::StatusOr<Queue*> queue = impl_->flow.tables.CreateQueue(*app);
  if (!queue.ok()) return queue.status();
  return QueueId{(*queue)->id.load()};
}

absl::Status Scheduler::ReleaseQueue(QueueId id) {
  MutexLock lock(&impl_->tick_mutex);
  Queue* queue = impl_->flow.tables.FindQueue(id);
  if (queue == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Queue ", id.value, " does not exist or is released."));
  }
  return impl_->flow.tables.FreeQueue(*queue);
}

absl::StatusOr<KernelId> Scheduler::RegisterKernel(KernelDesc desc) {
  Flow& flow = impl_->flow;
  MutexLock lock(&impl_->tick_mutex);
  absl::StatusOr<KernelDesc*> kernel = flow.tables.AddKernel(std::move(desc));
  if (!kernel.ok()) return kernel.status();
  if (absl::Status status = flow.device->PrepareKernel(**kernel); !status.ok()) {
    flow.tables.ForgetNewestKernel();
    return status;
  }
  flow.model->AddKernel(**kernel);
  return (*kernel)->id;
}

absl::StatusOr<KernelId> Scheduler::RegisterFusedKernel(FusedKernelDesc desc) {
  absl::StatusOr<FusedKernelDesc*> fused = impl_->flow.tables.AddFusedKernel(std::move(desc));
  if (!fused.ok()) return fused.status();
  return (*fused)->id;
}

absl::Status Scheduler::ReserveCapSm(const ReservationOptions& options) {
  Flow& flow = impl_->flow;
  MutexLock lock(&impl_->tick_mutex);
  App* app = flow.tables.FindApp(options.app);
  if (app == nullptr) return NoApp(options.app);
  const int slot = static_cast<int>(app->slot);
  absl::Status status =
      flow.ledger.Reserve(slot, app->options.name, options.capsms, options.packed);
  if (!status.ok()) return status;
  app->reserved_capsms = flow.ledger.ReservationOf(slot);
  app->packed = options.packed;
  flow.dirty = true;
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kQuotaChanged);
  event.time_ns = flow.device->NowNs();
  event.id = event.app = options.app.value;
  event.app_class = static_cast<uint8_t>(app->options.app_class);
  event.a = app->reserved_capsms;
  event.b = options.packed;
  flow.Emit(event);
  return absl::OkStatus();
}

// --- submit
// ---------------------------------------------------------------------------------------

absl::StatusOr<QueryId> Scheduler::BeginQuery(QueueId queue, TimeNs arrival_ns) {
  absl::StatusOr<QueryId> query = SubmitQueryBegin(impl_->flow, queue, arrival_ns);
  impl_->Wake();
  return query;
}

absl::Status Scheduler::EndQuery(QueryId query) {
  absl::Status status = SubmitQueryEnd(impl_->flow, query);
  impl_->Wake();
  return status;
}

absl::StatusOr<TicketId> Scheduler::SubmitLc(const TaskSpec& spec) {
  absl::StatusOr<TicketId> ticket = SubmitTask(impl_->flow, spec, AppClass::kLatencyCritical);
  impl_->Wake();
  return ticket;
}

absl::StatusOr<TicketId> Scheduler::SubmitBe(const TaskSpec& spec) {
  absl::StatusOr<TicketId> ticket = SubmitTask(impl_->flow, spec, AppClass::kBestEffort);
  impl_->Wake();
  return ticket;
}

absl::StatusOr<TicketId> Scheduler::RegionBegin(QueueId queue, int64_t bound_ns, void** stream) {
  return SubmitRegionBegin(impl_->flow, queue, bound_ns, stream);
}

absl::Status Scheduler::RegionEnd(TicketId region) {
  absl::Status status = SubmitRegionEnd(impl_->flow, region);
  impl_->Wake();
  return status;
}

// --- tickets
// --------------------------------------------------------------------------------------

absl::Status Scheduler::Wait(TicketId ticket, TimeNs deadline_ns) {
  const Task* task = impl_->flow.tables.FindTask(ticket);
  if (task == nullptr) return NoTicket(ticket);
  const auto done = [&] {
    return task->complete.load(std::memory_order_acquire) ||
           impl_->flow.tables.FindTask(ticket) == nullptr;
  };
  return impl_->DriveUntil(done, deadline_ns, "ticket wait");
}

absl::StatusOr<bool> Scheduler::IsComplete(TicketId ticket) const {
  const Task* task = impl_->flow.tables.FindTask(ticket);
  if (task == nullptr) return NoTicket(ticket);
  return task->complete.load(std::memory_order_acquire);
}

absl::StatusOr<CompletionRecord> Scheduler::Record(TicketId ticket) const {
  const Task* task = impl_->flow.tables.FindTask(ticket);
  if (task == nullptr) return NoTicket(ticket);
  if (!task->complete.load(std::memory_order_acquire)) {
    return absl::FailedPreconditionError(
        absl::StrCat("Ticket ", ticket.value, " is not complete and has no record yet."));
  }
  return task->record;
}

absl::Status Scheduler::Cancel(TicketId ticket) {
  Flow& flow = impl_->flow;
  absl::Status status;
  {
    MutexLock lock(&impl_->tick_mutex);
    flow.now_ns = flow.device->NowNs();
    Task* task = flow.tables.FindTask(ticket);
    if (task == nullptr) return NoTicket(ticket);
    switch (task->state.load(std::memory_order_acquire)) {
      case TaskState::kSubmitted:
        if (task->region.load() == RegionPhase::kNone) {
          task->cancel_requested.store(true);  // admission completes it
        } else {
          status = absl::FailedPreconditionError("A region cannot be cancelled; end it.");
        }
        break;
      case TaskState::kWaiting:
      case TaskState::kReady:
        Unlink(flow, *task);
        FinishTask(flow, *task, Verdict::kCancelled);
        break;
      case TaskState::kRunning:
      case TaskState::kEvicting: {
        bool evictable = task->adopted && task->part_count > 0;
        for (int i = 0; i < task->part_count; ++i) {
          evictable = evictable && task->parts[static_cast<size_t>(i)].epoch != 0;
        }
        if (!evictable) {
          status = absl::FailedPreconditionError(absl::StrCat(
              "Ticket ", ticket.value, " is on the device and its work cannot leave it."));
          break;
        }
        task->cancel_requested.store(true);
        for (int i = 0; i < task->part_count; ++i) {
          EvictLane(flow, task->parts[static_cast<size_t>(i)].lane, 0, ticket, Reason::kNone);
        }
        break;
      }
      default:
        status = absl::FailedPreconditionError(
            absl::StrCat("Ticket ", ticket.value, " is complete already."));
    }
  }
  impl_->Wake();
  impl_->NotifyWaiters();
  return status;
}

absl::Status Scheduler::SetCallback(TicketId ticket, CompletionCallback callback, void* user) {
  CompletionRecord record;
  {
    MutexLock lock(&impl_->tick_mutex);  // tasks complete under it
    Task* task = impl_->flow.tables.FindTask(ticket);
    if (task == nullptr) return NoTicket(ticket);
    if (task->callback != nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("Ticket ", ticket.value, " has a callback already."));
    }
    task->callback = callback;
    task->callback_user = user;
    if (!task->complete.load(std::memory_order_acquire)) return absl::OkStatus();
    record = task->record;
  }
  ++callback_depth;
  callback(user, record);
  --callback_depth;
  return absl::OkStatus();
}

absl::Status Scheduler::ReleaseTicket(TicketId ticket) {
  Task* task = impl_->flow.tables.FindTask(ticket);
  if (task == nullptr || (task->holders.load() & kHeldByCaller) == 0) return NoTicket(ticket);
  impl_->flow.tables.DropTask(*task, kHeldByCaller);
  return absl::OkStatus();
}

// --- driving
// --------------------------------------------------------------------------------------

bool Scheduler::Tick() { return impl_->Tick(); }

absl::StatusOr<bool> Scheduler::Poll() {
  if (impl_->threaded()) {
    return absl::FailedPreconditionError("The scheduler's own thread runs; it needs no Poll.");
  }
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not poll: Poll is what runs it.");
  }
  if (impl_->Tick()) return true;
  return impl_->virtual_time() && impl_->StepVirtualTime(kNever);
}

absl::Status Scheduler::PollUntil(TimeNs time_ns) {
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not poll: Poll is what runs it.");
  }
  if (impl_->threaded()) {
    // The scheduler's own thread does the work; just let the time come.
    const auto never = [] { return false; };
    const absl::Status status = impl_->DriveUntil(never, time_ns, "poll until");
    return absl::IsDeadlineExceeded(status) ? absl::OkStatus() : status;
  }
  Device& device = *impl_->flow.device;
  for (;;) {
    const bool worked = impl_->Tick();
    // Virtual time ends at time_ns with all that is due then; real time goes on by itself.
    if (worked && impl_->virtual_time()) continue;
    if (device.NowNs() >= time_ns) return absl::OkStatus();
    if (impl_->virtual_time()) impl_->StepVirtualTime(time_ns);
  }
}

absl::Status Scheduler::StartThread() {
  if (impl_->shut_down.load()) {
    return absl::FailedPreconditionError("The runtime is shut down.");
  }
  if (impl_->thread_running.exchange(true)) {
    return absl::FailedPreconditionError("The scheduler's thread runs already.");
  }
  impl_->stop.store(false);
  impl_->thread = std::thread([impl = impl_.get()] { impl->ThreadMain(); });
  return absl::OkStatus();
}

void Scheduler::StopThread() {
  if (!impl_->thread_running.load()) return;
  impl_->stop.store(true);
  {
    MutexLock lock(&impl_->wake_mutex);
    impl_->wake.SignalAll();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->thread_running.store(false);
}

// --- whole runtime
// --------------------------------------------------------------------------------

absl::Status Scheduler::Drain(TimeNs deadline_ns) {
  const auto done = [&] { return impl_->flow.counters.pending.load() == 0; };
  return impl_->DriveUntil(done, deadline_ns, "drain");
}

absl::Status Scheduler::Quiesce(TimeNs deadline_ns) {
  Flow& flow = impl_->flow;
  {
    MutexLock lock(&impl_->tick_mutex);
    flow.quiesced.store(true);
    flow.fast_path.store(false, std::memory_order_seq_cst);
    impl_->EvictAllBe();
  }
  const auto idle = [&] {
    MutexLock lock(&impl_->tick_mutex);
    return flow.running_be_count + flow.running_lc_count == 0 && flow.gate.InFlight() == 0 &&
           flow.open_regions.load() == 0;
  };
  return impl_->DriveUntil(idle, deadline_ns, "quiesce");
}

absl::Status Scheduler::Resume() {
  Flow& flow = impl_->flow;
  {
    MutexLock lock(&impl_->tick_mutex);
    if (!flow.quiesced.exchange(false)) {
      return absl::FailedPreconditionError("The runtime is not quiesced.");
    }
    flow.fast_path.store(flow.accepting.load(), std::memory_order_seq_cst);
    flow.dirty = true;
  }
  impl_->Wake();
  return absl::OkStatus();
}

absl::Status Scheduler::Shutdown(TimeNs deadline_ns) {
  Flow& flow = impl_->flow;
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not shut the runtime down.");
  }
  MutexLock one_at_a_time(&impl_->shutdown_mutex);
  if (impl_->shut_down.load()) return absl::OkStatus();
  flow.accepting.store(false);
  flow.fast_path.store(false, std::memory_order_seq_cst);
  impl_->AwaitSubmitters();
  {
    MutexLock lock(&impl_->tick_mutex);
    flow.now_ns = flow.device->NowNs();
    FinishBacklog(flow, Verdict::kShutdown);
    impl_->FinishOpenRegions();
    impl_->EvictAllBe();
  }
  const auto done = [&] { return flow.counters.pending.load() == 0; };
  absl::Status status = impl_->DriveUntil(done, deadline_ns, "shutdown");
  if (!status.ok()) {
    MutexLock lock(&impl_->tick_mutex);
    flow.now_ns = flow.device->NowNs();
    // What is still in the ring: launched by its submitter, or not at all.
    do {
      Collect(flow);
      Admit(flow);
    } while (flow.inbox_count > 0);
    const auto give_up = [&](auto& list, const int& count) {
      while (count > 0) {
        Task& task = *list[0];
        for (int p = 0; p < task.part_count; ++p) {
          flow.device->AbandonLane(task.parts[static_cast<size_t>(p)].lane);
        }
        ForgetParts(flow, task);
        FinishTask(flow, task, Verdict::kTimedOut);
      }
    };
    give_up(flow.running_be, flow.running_be_count);
    give_up(flow.running_lc, flow.running_lc_count);
    FinishBacklog(flow, Verdict::kShutdown);
  }
  impl_->Tick();  // the callbacks of what was given up
  impl_->shut_down.store(true);
  StopThread();
  return status;
}

absl::Status Scheduler::SetPolicy(std::unique_ptr<Policy> policy) {
  if (policy == nullptr) return absl::InvalidArgumentError("There is no policy to set.");
  MutexLock lock(&impl_->tick_mutex);
  impl_->flow.policy.swap(policy);
  impl_->flow.bare.store(impl_->flow.policy->name() == "bare");
  impl_->flow.dirty = true;
  return absl::OkStatus();
}

// --- observation
// ----------------------------------------------------------------------------------

TimeNs Scheduler::NowNs() const { return impl_->flow.device->NowNs(); }

const DeviceCapabilities& Scheduler::capabilities() const {
  return impl_->flow.device->capabilities();
}

SchedulerStats Scheduler::Stats() const {
  const Flow& flow = impl_->flow;
  SchedulerStats stats;
  stats.ticks = flow.counters.ticks.load();
  stats.plans = flow.counters.plans.load();
  stats.launches = flow.counters.launches.load();
  stats.fast_path_launches = flow.counters.fast_path_launches.load();
  stats.evictions = flow.counters.evictions.load();
  stats.evictions_blocked = flow.counters.evictions_blocked.load();
  stats.hung = flow.counters.hung.load();
  stats.busy_sm_ns = flow.device->BusySmNs();
  stats.eviction_latency = Summarise(flow.counters.eviction_latency);
  stats.plan_time = Summarise(flow.counters.plan_time);
  stats.tasks_pending = flow.counters.pending.load();
  stats.device_lost = flow.device_lost.load();
  stats.stray_completions = flow.counters.strays.load();
  MutexLock lock(&impl_->tick_mutex);
  stats.capsms_used = CapSmsOf(flow.ledger.UsedUnits());
  stats.capsms_reserved = flow.ledger.ReservedCapSms();
  stats.prediction_error = flow.model->MeanRelativeError(&stats.prediction_samples);
  return stats;
}

absl::StatusOr<AppStats> Scheduler::StatsOf(AppId id) const {
  MutexLock lock(&impl_->tick_mutex);  // the app is not replaced meanwhile
  const App* app = impl_->flow.tables.FindApp(id);
  if (app == nullptr) return NoApp(id);
  AppStats stats;
  stats.app = id;
  stats.name = app->options.name;
  stats.app_class = app->options.app_class;
  stats.submitted = app->submitted.load();
  stats.completed = app->completed.load();
  stats.failed = app->failed.load();
  stats.dropped = app->dropped.load();
  stats.cancelled = app->cancelled.load();
  stats.rejected = app->rejected.load();
  stats.evictions = app->evictions.load();
  stats.queue_depth = app->TasksOpen();
  stats.device_ns = app->device_ns.load();
  stats.work_ns = app->work_ns.load();
  stats.block_tasks = app->block_tasks.load();
  stats.latency = Summarise(app->latency);
  return stats;
}

std::vector<AppId> Scheduler::Apps() const {
  std::vector<AppId> apps;
  for (int slot = 0; slot < impl_->flow.tables.app_slots(); ++slot) {
    const uint32_t id = impl_->flow.tables.app_slot(slot).id.load();
    if (id != 0) apps.push_back(AppId{id});
  }
  return apps;
}

int Scheduler::AppCount() const { return static_cast<int>(Apps().size()); }

std::string Scheduler::OpenMetrics() const {
  std::vector<AppStats> apps;
  for (AppId id : Apps()) {
    if (absl::StatusOr<AppStats> stats = StatsOf(id); stats.ok()) apps.push_back(*std::move(stats));
  }
  MetricsSource source;
  source.device_name = capabilities().profile.name;
  source.simulated = capabilities().simulated;
  source.scheduler = Stats();
  source.apps = apps;
  MutexLock lock(&impl_->tick_mutex);
  source.policy_name = impl_->flow.policy->name();
  return FormatOpenMetrics(source);
}

absl::Status Scheduler::CheckInvariants() const {
  MutexLock lock(&impl_->tick_mutex);
  return CheckFlow(impl_->flow);
}

std::string Scheduler::SaveModel() const {
  MutexLock lock(&impl_->tick_mutex);
  return impl_->flow.model->Save();
}

absl::Status Scheduler::LoadModel(const std::string& text) {
  MutexLock lock(&impl_->tick_mutex);
  return impl_->flow.model->Load(text);
}

}  // namespace gpushare::core
