// The state of one scheduler, which its stages share.
//
// Submitters touch the members of the first half too: these are atomics, or immutable after
// creation. The second half belongs to the thread that runs Tick. Stages pass data on through the
// lists here (inbox, fresh, samples, the plan); they also read and change the tasks, lanes and
// counters of the whole flow.

#ifndef GPUSHARE_SRC_CORE_STATE_FLOW_H_
#define GPUSHARE_SRC_CORE_STATE_FLOW_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/core/base/containers/bounded_fifo.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/containers/handoff_queue.h"
#include "src/core/base/latency_histogram.h"
#include "src/core/evidence/evidence.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/device.h"
#include "src/core/seams/event_sink.h"
#include "src/core/seams/policy.h"
#include "src/core/seams/snapshot.h"
#include "src/core/state/capsm_ledger.h"
#include "src/core/state/lanes.h"
#include "src/core/state/launches/co_runs.h"
#include "src/core/state/launches/fused_runs.h"
#include "src/core/state/launches/kernel_rows.h"
#include "src/core/state/launches/launch_table.h"
#include "src/core/state/options.h"
#include "src/core/state/shared/lc_gate.h"
#include "src/core/state/shared/region_room.h"
#include "src/core/state/tables.h"
#include "src/core/state/task.h"
#include "src/core/state/token_streams.h"

namespace gpushare::core {

// A finished task whose callback is still to be run, without any lock.
struct Notice {
  CompletionCallback callback = nullptr;
  void* user = nullptr;
  CompletionRecord record;
};

// An opaque launch that is made without any lock, because it calls the application.
struct DeferredLaunch {
  LaunchRequest request;
  Queue* queue = nullptr;  // Queue::deferred counts it
};

// Tasks that completed while a caller waits for them (flow/waiting/waiters.h).
struct AwaitedEnds {
  BoundedList<Task*, kBatch> tasks;
  bool more = false;  // there were more than these
};

// One measurement for the cost model.
struct Sample {
  Observation observation;
  CoResident beside;
  bool has_beside = false;
  FusedFeatures fused;  // of a fused launch; without a kernel: it was none
  CoRun co_run;         // likewise
};

// A query that ran alone.
struct QuerySample {
  QueryFeatures query;
  int64_t measured_ns = 0;
};

// An entry of the order of heads.
struct OrderedHead {
  uint64_t sequence = 0;  // of its head
  Queue* queue = nullptr;
};

// The rows of the snapshot, allocated once, and the plan that answers it.
// The table of fused kernels is to be made anew. No model has this version.
inline constexpr uint64_t kNoFusedVersion = 0;

struct PlanBuffers {
  PlanBuffers() {
    pairs.reserve(size_t{kMaxApps} * kMaxPairKernels * kMaxSplits);
    hoped.reserve(size_t{kMaxApps} * kMaxPairKernels * kMaxSplits);
    fused.reserve(kMaxKernels);
    co_schedules.reserve(CoScheduleTable::IndexOf(kMaxOverlapKernels, 0));
    sliced.reserve(CoScheduleTable::IndexOf(kMaxOverlapKernels, 0));
  }

  BoundedList<LcAppView, kMaxApps> lc_apps;
  BoundedList<BeAppView, kMaxApps> be_apps;
  BoundedList<QueryView, kMaxActiveQueries> queries;
  BoundedList<QueryState*, kMaxActiveQueries> query_states;  // of the views, in their order
  BoundedList<const HeadView*, kMaxHeads> heads;             // each is its queue's
  BoundedList<Queue*, kMaxHeads> be_heads;                   // of the BE heads, in their order
  BoundedList<RunningView, kMaxRunning> running;
  std::vector<PairOption> pairs;
  std::vector<float> hoped;  // PairTable::hoped
  std::vector<FusedView> fused;
  std::vector<CoScheduleOption> co_schedules;
  std::vector<SlicedPair> sliced;  // of each of them (flow/learn/slices.h)
  Snapshot snapshot;
  Plan plan;
};

struct Counters {
  // Submitters write these two; the line is not shared with `ticks`, which changes all the time.
  alignas(64) std::atomic<int64_t> pending{0};  // tasks accepted and not complete
  std::atomic<int64_t> fast_path_launches{0};
  alignas(64) std::atomic<int64_t> ticks{0};
  std::atomic<int64_t> plans{0};
  std::atomic<int64_t> launches{0};
  std::atomic<int64_t> evictions{0};
  std::atomic<int64_t> evictions_blocked{0};
  std::atomic<int64_t> hung{0};
  std::atomic<int64_t> plan_entries_dropped{0};
  std::atomic<int64_t> strays{0};  // completions of launches that are not in flight
  LatencyHistogram eviction_latency;
  LatencyHistogram plan_time;
};

// Whether the lane's word evicts the whole launch.
inline bool IsLeaving(const LcGate& gate, const Part& part) {
  return part.epoch != 0 && static_cast<int64_t>(gate.Epoch(part.lane) - part.leave_epoch) >= 0;
}

// Whether the tasks of its kernel run one after another: those of a BE graph, and of one in
// segments, which share the buffers of its capture.
inline bool IsExclusive(const Task& task) {
  return task.work.kind == TaskKind::kGraph && (!IsLc(task) || task.IsSegmented());
}

struct Flow {
  Flow(const SchedulerOptions& scheduler_options, std::unique_ptr<Device> flow_device,
       std::unique_ptr<CostModel> flow_model, std::unique_ptr<Policy> flow_policy)
      : options(scheduler_options),
        device(std::move(flow_device)),
        ring(kRingWords),
        model(std::move(flow_model)),
        policy(std::move(flow_policy)),
        ledger(device->capabilities().profile.sm_count,
               device->capabilities().profile.sm_granularity,
               device->capabilities().profile.Remainder(),
               device->capabilities().profile.remainder_for_lc) {}

  const SchedulerOptions options;
  const std::unique_ptr<Device> device;
  Tables tables;
  Lanes lanes;
  LaunchTable launches;
  LcGate gate;
  HandoffQueue<uint64_t> ring;
  Counters counters;
  // Read at every submit, so on a cache line that is rarely written.
  alignas(64) std::atomic<bool> accepting{true};
  std::atomic<bool> quiesced{false};
  std::atomic<bool> device_lost{false};
  std::atomic<int32_t> loss_code{0};  // native code of the loss, set before device_lost
  // LC callers may launch by themselves: off while quiesced, closed or lost.
  std::atomic<int32_t> lc_reserved_capsms{0};  // of all LC apps
  std::atomic<bool> fast_path{true};
  std::atomic<bool> learns{true};          // PolicyProperties::learns
  std::atomic<bool> lets_lc_yield{true};   // PolicyProperties::lets_lc_yield
  std::atomic<bool> plan_in_force{false};  // PlanInForce
  std::atomic<bool> places_asked{false};   // plan -> whoever runs Tick: wake the maker of places
  alignas(64) std::atomic<int32_t> open_regions{0};
  // BE regions that were too long for region_rooms since the last plan: the next one may have more.
  std::atomic<int64_t> regions_refused{0};

  // From here on: the thread that runs Tick.
  std::unique_ptr<CostModel> model;
  std::unique_ptr<Policy> policy;
  CapSmLedger ledger;
  TimeNs now_ns = 0;  // read once a Tick

  BoundedList<uint64_t, kBatch> inbox;  // submit -> admit
  // admit -> predict; a word may bring all pieces of a graph
  BoundedList<Task*, kBatch * kMaxPieces> fresh;
  BoundedList<Sample, kBatch> samples;             // complete -> learn
  BoundedList<QuerySample, kBatch> query_samples;  // likewise
  BoundedList<DelayedQuery, kBatch> delayed_queries;

  BoundedList<Queue*, kMaxQueues> backlog;  // queues with a head
  // These queues, and some that no longer have one, by the sequence of their heads as of the last
  // plan; behind them, those that got a head since.
  BoundedList<OrderedHead, kMaxQueues> plan_order;
  BoundedList<Queue*, kMaxQueues> awaited_queues;  // those with Queue::awaited_by_lc
  BoundedList<Task*, kMaxRunning> running_be;
  BoundedList<Task*, kMaxInFlightLaunches> running_lc;
  int lanes_busy = 0;
  FusedRuns fused_runs;
  CoRuns co_runs;

  QueryState* first_query = nullptr;  // active queries by arrival
  QueryState* last_query = nullptr;
  Task* first_region = nullptr;   // open regions
  int32_t regions_overdue = 0;    // of them, those that hold nobody back any more
  int32_t regions_on_credit = 0;  // BE, begun and not complete
  TokenStreams token_streams;
  TimeNs idle_check_ns = kNever;  // when a query or region may be idle for too long
  int64_t queued_ns = 0;          // predicted duration of all that is launched and not done
  int64_t uncommitted_ns = 0;     // the part of it that evictions leave undone: not in T_q
  // By resource, the largest start tag of a BE task that was launched: the virtual time of
  // start-time fair queueing (Goyal, Vin and Cheng 1996).
  std::array<double, kSharedResources> virtual_time_ns{};
  Evidence evidence;
  uint64_t next_sequence = 1;
  std::array<CopyState, 4> copies{};

  BoundedList<int32_t, kMaxCounters> free_counters;  // claim counters that no task holds

  bool loss_handled = false;  // LoseDevice ran: the loss is in the log
  bool cut_off = false;       // a shutdown's deadline is near: nothing more is launched
  bool policy_threw = false;  // the log has it
  bool plan_stalled =
      false;             // at a shutdown: nothing runs, and no launch of the plan could be done
  bool dirty = true;     // something changed since the last plan
  bool planned = false;  // this Tick made a plan
  TimeNs replan_at_ns = kNever;
  TimeNs planned_ns = 0;              // the last plan
  int64_t longest_segment_ns = 0;     // as of the last plan
  TimeNs long_segments_until_ns = 0;  // segments of an earlier, longer limit may be on the device
  bool drops_late = false;            // an LC app drops late queries
  bool lc_ranked = false;             // LC apps have different priorities
  bool lc_may_yield = false;          // an LC app yields where the policy lets it
  TimeNs yields_until_ns = kNever;  // as of the last plan: when a head that yields goes on at last
  PlannedChoice choice_logged;      // the last one in the log, and when
  TimeNs choice_logged_ns = 0;
  TimeNs hang_check_ns = kNever;

  uint64_t tables_version = 0;  // of the dense indices below
  uint64_t model_version = 0;
  BoundedList<App*, kMaxApps> lc_apps;  // App::plan_index is the position
  BoundedList<App*, kMaxApps> be_apps;
  KernelRows<kMaxPairKernels> pair_kernels;  // BE
  // By KernelId of a graph: the BE task of it that has begun and is not complete.
  std::array<const Task*, kMaxKernels + 1> graph_tasks{};
  bool pairs_stale = true;
  // Of the pair table: the LC apps that have rows, and the main kernels that these were made for.
  int32_t pair_apps = 0;
  std::array<const KernelDesc*, kMaxApps> pair_lc_kernels{};
  PairChanges pair_changes;
  // Of the model, when the table of fused kernels was made.
  uint64_t fused_version = kNoFusedVersion;
  uint64_t co_schedule_version = 0;
  // Taken from the model, and not in the table yet.
  PairChanges co_schedule_changes = {.all = false, .pairs = {}};
  KernelRows<kMaxOverlapKernels> overlap_kernels;
  PlanBuffers buffers;
  // The last plan of partitions (flow/places/partitioning.h). It is in force while the policy uses
  // partitions: ask PlanInForce.
  bool has_partitions = false;
  // Goes up whenever a plan comes into force or ends (FollowPlan). Jobs of an older one count for
  // none.
  uint64_t partition_plan = 0;
  PartitionsView partitions;  // `apps` is filled for each snapshot
  int64_t partition_overhead_ns = 0;

  std::array<DeviceCompletion, kBatch> completions;
  // launch -> whoever runs Tick: opaque work calls the caller's function, with no lock held.
  BoundedFifo<DeferredLaunch> deferred{kMaxInFlightLaunches};
  // Back again, when the device refused it.
  BoundedList<DeviceCompletion, kMaxInFlightLaunches> refused;
  // complete -> whoever runs Tick. The C ABI has one callback slot for each of kMaxTasks.
  BoundedFifo<Notice> notices{kMaxTasks};
  AwaitedEnds awaited_ends;  // complete -> whoever runs Tick
  BoundedList<LaneIndex, kMaxLanes>
      lost_lanes;  // lanes that were given up; replaced after the Tick
  // Sentences for the application's log, written with no lock held. -> whoever runs Tick
  std::vector<std::string> reports;
  // Ticks that have not run what was in `deferred`, `notices` and `reports` when they ended. Raised
  // under the lock of Tick.
  std::atomic<int> calls_running{0};
  // The last plan's, on a line of its own: the gate of an eager loop reads it before each launch.
  alignas(64) RegionRooms region_rooms;

  // Whether a plan of partitions binds LC and BE work: there is one, and the policy carries it out.
  // Any thread.
  bool PlanInForce() const { return plan_in_force.load(); }

  // Whether another task of this graph has begun and is not complete.
  bool GraphIsTaken(const Task& task) const {
    if (!IsExclusive(task)) return false;
    const Task* const begun = graph_tasks[task.work.kernel->id.value];
    return begun != nullptr && begun != &task;
  }
  // Whether queries of another queue are in pieces of this graph, which no stream orders with it.
  bool WaitsForPieces(const Task& task) const {
    return task.behind_pieces && tables.UseOf(task.work.kernel->id).InPieces();
  }
  // Whether the task waits because of its graph's buffers.
  bool WaitsForGraph(const Task& task) const { return GraphIsTaken(task) || WaitsForPieces(task); }

  // Writes a sentence to the application's log. Threads: any, with no lock held.
  void Report(const std::string& sentence) const {
    if (options.report) options.report(sentence);
  }

  // Whether events are recorded. Check it before building an event on a hot path: Emit's argument
  // is built even when nobody records. Unchecked, a task took 3 % longer (host_benchmark, Flow).
  bool HasEvents() const { return options.events != nullptr; }
  // Appends one typed event (log/events.h), now by the Tick's clock.
  template <class Event>
  void Emit(const Event& event) const {
    EmitAt(now_ns, event);
  }
  template <class Event>
  void EmitAt(TimeNs time_ns, const Event& event) const {
    if (options.events != nullptr) options.events->Append(Encode(time_ns, event));
  }
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_FLOW_H_
