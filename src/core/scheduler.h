// The scheduler: one device, one flow.
//
// submit -> admit -> predict -> plan -> launch -> complete -> learn; Tick() calls the seven stages
// and does nothing else. Threads: registration, submit, waits and ticket calls from any thread;
// Tick from one thread at a time (the scheduler's own thread, or whoever calls Poll).

#ifndef GPUSHARE_SRC_CORE_SCHEDULER_H_
#define GPUSHARE_SRC_CORE_SCHEDULER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/core/cost_model.h"
#include "src/core/device.h"
#include "src/core/policy.h"
#include "src/core/types.h"

namespace gpushare::core {

class EventSink;  // event_log.h

struct SchedulerOptions {
  // Deadline after which a launch that was predicted to take d is reported hung:
  // max(hang_floor_ns, hang_factor x d).
  int64_t hang_floor_ns = int64_t{10} * 1000 * 1000 * 1000;
  double hang_factor = 20;
  // BE returns so long after the last LC query ended.
  int64_t be_return_hysteresis_ns = 2000;
  int32_t splits_max = kMaxSplits;  // split candidates to create; 0: no partitions
  EventSink* events = nullptr;      // null: no event log; must outlive the scheduler
};

struct AppOptions {
  std::string name;
  AppClass app_class = AppClass::kBestEffort;
  int64_t target_ns = 0;     // LC: absolute latency, 0 none
  double p99_bound = 0;      // LC: p99 over p99 alone, 0 none
  int64_t p99_alone_ns = 0;  // LC: hint
  int64_t solo_ns = 0;       // LC: hint for one query's duration alone
  bool drop_late = false;    // LC: a query that is late at admission is dropped
  double weight = 1;         // BE
  int32_t tasks_max = kDefaultTasksPerApp;
};

struct ReservationOptions {
  AppId app;
  int32_t capsms = 0;   // LC: reserved; BE: quota. 0 removes it
  bool packed = false;  // whole SMs that nobody else uses
};

struct CompletionRecord {
  TicketId ticket;
  Verdict verdict = Verdict::kPending;
  AppId app;
  QueueId queue;
  QueryId query;
  KernelId kernel;
  TaskKind kind = TaskKind::kKernel;
  TimeNs submit_ns = 0;
  TimeNs admit_ns = 0;
  TimeNs launch_ns = 0;    // first launch call
  TimeNs start_ns = 0;     // first block, device's view; 0 where the device has no timestamps
  TimeNs end_ns = 0;       // last block, device's view
  TimeNs complete_ns = 0;  // seen by the host
  int64_t predicted_ns = 0;
  int64_t predicted_error_ns = 0;
  int64_t measured_ns = 0;  // time on the device, evicted spells left out
  int64_t evicted_ns = 0;   // between an eviction and the next launch
  int32_t evictions = 0;
  int32_t launches = 0;
  int64_t block_tasks = 0;      // executed; equals what was asked when verdict is kOk
  Form form = Form::kOriginal;  // of the last launch
  PlaceIndex place = kWholeDevice;
  Reason launch_reason = Reason::kNone;
  Reason hold_reason = Reason::kNone;  // the last reason to wait, kNone if it never did
  KernelId beside;                     // the first kernel that ran beside it, 0 none
  int32_t error_code = 0;              // native code when it failed
};

// Runs once, on the thread that completes the task (the scheduler's, or Poll's caller), with no
// lock held. It may submit; it must not wait.
using CompletionCallback = void (*)(void* user, const CompletionRecord& record);

struct TaskSpec {
  QueueId queue;
  QueryId query;  // 0: a query of its own (LC), none (BE)
  TaskKind kind = TaskKind::kKernel;
  KernelId kernel;
  int64_t block_tasks = 0;  // kKernel: blocks of the original grid
  // kKernel: its dimensions, whose product is block_tasks; zeros: one dimension.
  std::array<int32_t, 3> grid{};
  const void* arguments = nullptr;
  size_t arguments_bytes = 0;
  CopyRequest copy;                      // kMemcpy
  HostFunction host_function = nullptr;  // kOpaque
  void* host_user = nullptr;
  int64_t declared_ns = 0;  // kOpaque, kLibrary: the caller's bound, 0 unknown
  TimeNs arrival_ns = 0;    // intended arrival of an implicit query; 0: now
  absl::Span<const TicketId> wait_tickets;
  absl::Span<void* const> wait_events;
  void* signal_event = nullptr;
  CompletionCallback callback = nullptr;
  void* callback_user = nullptr;
  bool detached = false;  // the ticket is released by itself once the task is complete
};

struct LatencySummary {
  int64_t count = 0;
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
  int64_t max_ns = 0;
};

struct AppStats {
  AppId app;
  std::string name;
  AppClass app_class = AppClass::kBestEffort;
  int64_t submitted = 0;
  int64_t completed = 0;
  int64_t failed = 0;
  int64_t dropped = 0;
  int64_t cancelled = 0;
  int64_t rejected = 0;  // refused at submit: app full, bad arguments
  int64_t evictions = 0;
  int64_t queue_depth = 0;
  int64_t device_ns = 0;    // time of its tasks on the device
  int64_t work_ns = 0;      // predicted whole-device time of what it completed
  int64_t block_tasks = 0;  // executed (bytes for copies), those of unfinished tasks included
  LatencySummary latency;   // submit (arrival for queries) to complete
};

struct SchedulerStats {
  int64_t ticks = 0;
  int64_t plans = 0;
  int64_t launches = 0;
  int64_t fast_path_launches = 0;
  int64_t evictions = 0;
  int64_t evictions_blocked = 0;  // the write did not take effect in time
  int64_t hung = 0;
  int64_t busy_sm_ns = 0;
  int64_t prediction_samples = 0;
  double prediction_error = 0;  // mean absolute relative error, solo tasks
  LatencySummary eviction_latency;
  LatencySummary plan_time;  // host time of the plan stage; 0 in virtual time
  int64_t tasks_pending = 0;
  double capsms_used = 0;         // by launches on the device
  int32_t capsms_reserved = 0;    // for LC apps
  int64_t stray_completions = 0;  // of launches that were not in flight: told twice, or too late
  bool device_lost = false;
};

class Scheduler {
 public:
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const SchedulerOptions& options,
                                                           std::unique_ptr<Device> device,
                                                           std::unique_ptr<CostModel> model,
                                                           std::unique_ptr<Policy> policy);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // --- registration: any thread, takes the registry's lock, may allocate -------------------------
  absl::StatusOr<AppId> CreateApp(const AppOptions& options);
  // FAILED_PRECONDITION while it has tasks that are not complete.
  absl::Status ReleaseApp(AppId app);
  absl::StatusOr<QueueId> CreateQueue(AppId app);
  absl::Status ReleaseQueue(QueueId queue);
  // The device fills what `desc` leaves unknown (KernelDesc), prepares and keeps it.
  absl::StatusOr<KernelId> RegisterKernel(KernelDesc desc);
  // As it is registered, for the scheduler's life; null: unknown.
  const KernelDesc* FindKernel(KernelId kernel) const;
  absl::StatusOr<KernelId> RegisterFusedKernel(FusedKernelDesc desc);
  absl::Status ReserveCapSm(const ReservationOptions& options);
  // Lanes so far on which the device found evictions blocked, a bit each: for EventLogHeader.
  uint64_t BlockedLanes() const;

  // --- queries: any thread -----------------------------------------------------------------------
  // arrival_ns 0: now. Its tasks are submitted with TaskSpec.query. It is done when it was ended
  // and all of its tasks are complete.
  absl::StatusOr<QueryId> BeginQuery(QueueId queue, TimeNs arrival_ns);
  absl::Status EndQuery(QueryId query);

  // --- submit: any thread, never blocks, does not allocate unless it fails -----------------------
  absl::StatusOr<TicketId> SubmitLc(const TaskSpec& spec);
  absl::StatusOr<TicketId> SubmitBe(const TaskSpec& spec);
  // A stream on which the caller enqueues work until RegionEnd. `bound_ns` is the time on the
  // device that it will take at most.
  absl::StatusOr<TicketId> RegionBegin(QueueId queue, int64_t bound_ns, void** stream);
  absl::Status RegionEnd(TicketId region);

  // --- tickets: any thread -----------------------------------------------------------------------
  // DEADLINE_EXCEEDED at `deadline_ns` (device clock). FAILED_PRECONDITION from a callback. Drives
  // the flow itself when no scheduler thread runs.
  absl::Status Wait(TicketId ticket, TimeNs deadline_ns);
  absl::StatusOr<bool> IsComplete(TicketId ticket) const;
  absl::StatusOr<CompletionRecord> Record(TicketId ticket) const;
  // OK: it will complete with kCancelled, or kOk if its last block tasks were under way.
  // FAILED_PRECONDITION: it is on the device and cannot
  // leave, or is complete. BE worker tasks on the device are evicted and cancelled.
  absl::Status Cancel(TicketId ticket);
  // Adds a callback to a ticket that was submitted without one; it runs once, and at once on the
  // calling thread when the task is complete already. FAILED_PRECONDITION when it has one.
  absl::Status SetCallback(TicketId ticket, CompletionCallback callback, void* user);
  absl::Status ReleaseTicket(TicketId ticket);

  // --- driving -----------------------------------------------------------------------------------
  // One Tick; with nothing due on a virtual-time device, moves to the next event. Returns whether
  // anything happened. FAILED_PRECONDITION when the scheduler's own thread runs.
  absl::StatusOr<bool> Poll();
  // Polls until the device clock reaches time_ns; in virtual time it ends there exactly.
  absl::Status PollUntil(TimeNs time_ns);
  absl::Status StartThread();
  void StopThread();
  bool Tick();  // the seven stages, once

  // --- whole runtime -----------------------------------------------------------------------------
  absl::Status Drain(TimeNs deadline_ns);  // until no task is pending
  absl::Status Quiesce(
      TimeNs deadline_ns);  // holds new launches, evicts BE, until the device is idle
  absl::Status Resume();
  // Refuses new work, completes every accepted task exactly once by the deadline (kShutdown for
  // what did not run). Idempotent.
  absl::Status Shutdown(TimeNs deadline_ns);
  absl::Status SetPolicy(std::unique_ptr<Policy> policy);  // between two plans

  TimeNs NowNs() const;
  const DeviceCapabilities& capabilities() const;
  SchedulerStats Stats() const;
  absl::StatusOr<AppStats> StatsOf(AppId app) const;
  int AppCount() const;
  std::vector<AppId> Apps() const;
  std::string OpenMetrics() const;
  // INTERNAL with a sentence when the tables contradict each other: a bug of ours. For tests.
  absl::Status CheckInvariants() const;
  std::string SaveModel() const;
  absl::Status LoadModel(const std::string& text);

 private:
  class Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SCHEDULER_H_
