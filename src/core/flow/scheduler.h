// The scheduler: one device, one flow.
//
// submit -> admit -> predict -> plan -> launch -> complete -> learn; Tick() runs the seven stages
// (driver.h). Threads: registration, submit, waits and ticket calls from any thread. Tick runs on
// one thread at a time: the scheduler's own, or a caller of Poll, Wait or Drain without one.

#ifndef GPUSHARE_SRC_CORE_FLOW_SCHEDULER_H_
#define GPUSHARE_SRC_CORE_FLOW_SCHEDULER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/core/base/types.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/device.h"
#include "src/core/seams/partitions.h"
#include "src/core/seams/policy.h"
#include "src/core/state/options.h"
#include "src/core/state/records.h"
#include "src/core/state/token_streams.h"

namespace gpushare::core {

class Driver;  // driver.h

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
  // The app states another promise or weight, for plans from now on and for queries that end from
  // now on. INVALID_ARGUMENT changes nothing.
  absl::Status UpdateApp(AppId app, const AppUpdate& update);
  // FAILED_PRECONDITION while it has tasks that are not complete.
  absl::Status ReleaseApp(AppId app);
  absl::StatusOr<QueueId> CreateQueue(AppId app);
  absl::Status ReleaseQueue(QueueId queue);
  // The device fills what `desc` leaves unknown (KernelDesc), prepares and keeps it.
  absl::StatusOr<KernelId> RegisterKernel(KernelDesc desc);
  // A graph takes no more tasks. Once the last one is complete, the next registration of a graph
  // gives back what the device made of this one. Other kernels stay as they are. Never blocks.
  void RetireKernel(KernelId id);
  void RetireFusedKernel(KernelId id);
  // The registered kernel, valid for the scheduler's life. Null: unknown.
  const KernelDesc* FindKernel(KernelId kernel) const;
  absl::StatusOr<KernelId> RegisterFusedKernel(FusedKernelDesc desc);
  absl::Status ReserveCapSm(const ReservationOptions& options);
  // A bit for each lane on which the device has found evictions blocked: for EventLogHeader.
  uint64_t BlockedLanes() const;

  // --- queries: any thread -----------------------------------------------------------------------
  // arrival_ns 0: now. Its tasks are submitted with TaskSpec.query. It is done when it was ended
  // and all of its tasks are complete.
  absl::StatusOr<QueryId> BeginQuery(QueueId queue, TimeNs arrival_ns, double input_size = 0);
  absl::Status EndQuery(QueryId query);
  // Ends the app's open queries that have had no work for `idle_ns`; 0: all of them. Returns how
  // many. They are in no statistics.
  absl::StatusOr<int32_t> AbandonQueries(AppId app, int64_t idle_ns);

  // --- token streams: any thread, not in a policy (state/token_streams.h) ------------------------
  // arrival_ns 0: now.
  absl::StatusOr<TokenStreamId> BeginTokenStream(AppId app, TimeNs arrival_ns);
  // The task gives each of the streams a token when it has ended well.
  absl::Status MarkTokens(absl::Span<const TokenStreamId> streams, TicketId ticket);
  absl::Status EndTokenStream(TokenStreamId stream);

  // --- submit: any thread, never blocks, does not allocate unless it fails -----------------------
  absl::StatusOr<TicketId> SubmitLc(const TaskSpec& spec);
  absl::StatusOr<TicketId> SubmitBe(const TaskSpec& spec);
  // Counts a submit that the caller refused by itself (AppStats::rejected).
  void CountRejected(QueueId queue);
  // A stream on which the caller enqueues work until RegionEnd. `bound_ns` is the time on the
  // device that it will take at most.
  absl::StatusOr<TicketId> RegionBegin(QueueId queue, int64_t bound_ns, void** stream) {
    return RegionBegin(queue, RegionSpec{.bound_ns = bound_ns}, stream, 0);
  }
  // Tries again until the device's clock is `wait_ns` further, where it may not begin at once.
  absl::StatusOr<TicketId> RegionBegin(QueueId queue, const RegionSpec& region, void** stream,
                                       int64_t wait_ns);
  absl::Status RegionEnd(TicketId region);
  // How much BE work may be on the device now, in front of the next LC query. 0: none. Fails after
  // a shutdown and on a lost device.
  absl::StatusOr<int64_t> RegionRoomNs() const;

  // --- tickets: any thread -----------------------------------------------------------------------
  // DEADLINE_EXCEEDED at `deadline_ns` (device clock). FAILED_PRECONDITION from a callback. Drives
  // the flow itself when no scheduler thread runs.
  absl::Status Wait(TicketId ticket, TimeNs deadline_ns);
  absl::StatusOr<bool> IsComplete(TicketId ticket) const;
  absl::StatusOr<CompletionRecord> Record(TicketId ticket) const;
  absl::StatusOr<Verdict> VerdictOf(TicketId ticket) const;  // that of Record
  // OK: it will complete with kCancelled, or kOk if its last block tasks were under way. BE worker
  // tasks on the device are evicted and cancelled. FAILED_PRECONDITION: it is complete, or on the
  // device and not evictable.
  absl::Status Cancel(TicketId ticket);
  // Adds a callback to a ticket that was submitted without one. The callback runs once; if the task
  // is complete already, in this call and on its thread. FAILED_PRECONDITION: it has one.
  absl::Status SetCallback(TicketId ticket, CompletionCallback callback, void* user);
  absl::Status ReleaseTicket(TicketId ticket);

  // --- driving -----------------------------------------------------------------------------------
  // One Tick. If it finds no work on a virtual-time device, moves the time to the next event.
  // Returns whether anything happened. FAILED_PRECONDITION when the scheduler's own thread runs.
  absl::StatusOr<bool> Poll();
  // Polls until the device clock reaches time_ns; in virtual time it ends there exactly.
  absl::Status PollUntil(TimeNs time_ns);
  absl::Status StartThread();
  void StopThread();
  bool Tick();  // the seven stages, once

  // --- whole runtime -----------------------------------------------------------------------------
  absl::Status Drain(TimeNs deadline_ns);  // until no task is pending
  // Holds new launches and evicts BE, until the device is idle. A query in pieces that has begun
  // goes on to its end.
  absl::Status Quiesce(TimeNs deadline_ns);
  absl::Status Resume();
  // Refuses new work and runs what was accepted. Near the deadline, what waits ends with kShutdown
  // and BE is evicted. Every callback has ended when it returns. DEADLINE_EXCEEDED: some work was
  // cut off. Idempotent.
  absl::Status Shutdown(TimeNs deadline_ns);
  // Plans a partition for each periodic app, and puts the plan into force in the place of the one
  // before. Without a periodic app no plan is in force. RESOURCE_EXHAUSTED: the apps do not fit,
  // and the message says why; FAILED_PRECONDITION: the policy uses no partitions, or the device has
  // none. After any error the plan before stays in force.
  absl::StatusOr<PartitionSummary> PlanPartitions(const PartitionPlanner& planner,
                                                  const PartitionOptions& options);
  absl::Status SetPolicy(std::unique_ptr<Policy> policy);  // between two plans
  // Runs `change` between two passes of the flow: the one moment at which something other than the
  // flow may change the cost model. It must change the model's version(), and must not throw.
  void ChangeModel(absl::FunctionRef<void()> change);
  // Runs `read` between two passes of the flow, with the model and the splits as they are then. The
  // flow waits for it. It must not throw.
  void ReadModel(absl::FunctionRef<void(const CostModel&, absl::Span<const SplitView>)> read);

  TimeNs NowNs() const;
  const DeviceCapabilities& capabilities() const;
  SchedulerStats Stats() const;
  absl::StatusOr<AppStats> StatsOf(AppId app) const;
  absl::StatusOr<AppGuarantee> GuaranteeOf(AppId app) const;
  int AppCount() const;
  std::vector<AppId> Apps() const;
  std::string OpenMetrics() const;
  // INTERNAL with a sentence when the tables contradict each other: a bug of ours. For tests.
  absl::Status CheckInvariants() const;
  std::string SaveModel() const;
  absl::Status LoadModel(const std::string& text);

 private:
  explicit Scheduler(std::unique_ptr<Driver> driver);
  // Gives the model the staged kernel, then shows it to look-ups.
  absl::Status PublishStaged(const KernelDesc& kernel);
  // Prepares the described kernel and publishes it.
  absl::StatusOr<KernelId> AddKernel(KernelDesc desc);
  // Registers the parts of a graph that may be cut at kernel nodes. After an error none of them is
  // registered, and the graph runs whole. Errors: those of the device that cuts it or prepares a
  // part, and RESOURCE_EXHAUSTED. RegisterKernel fails only with those after which the graph cannot
  // run either: the device is lost, or does not end what it measures (DEADLINE_EXCEEDED).
  absl::Status CutAtNodes(KernelId graph);
  void RetireParts(absl::Span<const GraphPiece> pieces);
  std::unique_ptr<Driver> driver_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_SCHEDULER_H_
