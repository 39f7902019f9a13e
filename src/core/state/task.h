// The records of the flow: task, query, queue and app.
//
// Who writes: a submitter fills a task, and on the fast path or in a region prepares its launch in
// `progress`, until it publishes the task: by Device::Launch, or by the submit ring. After a failed
// launch it still owns the task until the ring. From then on only the thread that runs Tick writes
// it. Fields that other threads read are atomics. Records live in
// arrays that are allocated at registration and are reused, never freed, while the scheduler lives,
// so a stale handle finds a newer generation and not freed memory.

#ifndef GPUSHARE_SRC_CORE_STATE_TASK_H_
#define GPUSHARE_SRC_CORE_STATE_TASK_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/containers/paged_array.h"
#include "src/core/base/containers/slot_stack.h"
#include "src/core/base/latency_histogram.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/evidence/app_evidence.h"
#include "src/core/evidence/serial_headroom.h"
#include "src/core/evidence/shadow.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/snapshot.h"
#include "src/core/state/options.h"
#include "src/core/state/records.h"
#include "src/core/state/shared/slot_word.h"

namespace gpushare::core {

struct App;
struct Queue;
struct QuerySlot;
struct Task;

// One LC request. Tasks submitted without a query carry one of their own.
struct QueryState {
  QueryId id;
  App* app = nullptr;
  Queue* queue = nullptr;  // all of its tasks go there
  TimeNs arrival_ns = 0;
  TimeNs deadline_ns = kNever;
  int32_t tasks_finished = 0;
  int32_t tasks_listed = 0;    // in the list of its queue (query_waits.h)
  int32_t tasks_running = 0;   // on the device
  bool ended = false;          // no more tasks will come
  bool began = false;          // it was in the list of active queries
  bool active = false;         // in the list
  bool idle = false;           // it counts as no load (flow/verbs/queries/idle.h)
  bool was_idle = false;       // its latency is the application's doing, and teaches nothing
  bool abandoned = false;      // the same; it is in no statistics either
  bool disturbed = false;      // a task of it did not run alone on the whole device, or failed
  bool dropped = false;        // too late before a task of it began (flow/verbs/late_queries.h)
  int64_t distance_ns = 0;     // the longest one between two tokens that its tasks end; 0: none
  double input_size = 0;       // as the application stated it; 0: it did not
  int64_t next_within_ns = 0;  // as its last task stated that stated something (TaskSpec)
  // Of the whole, predicted from input_size, with its error bar, or from the kernel of its one task
  // (LearnPrediction); 0: unknown.
  int64_t sized_ns = 0;
  int64_t solo_ns = 0;          // predicted, all tasks admitted so far
  int64_t issued_ns = 0;        // predicted, on the device
  int64_t done_ns = 0;          // measured, complete
  TimeNs ended_ns = 0;          // the last one that is complete, on the device; 0: none ran
  bool waited = false;          // it began behind another one of its app
  bool overran = false;         // a job that ran beyond its worst case: counted
  uint64_t partition_plan = 0;  // Flow::partition_plan at its begin
  QuerySlot* slot = nullptr;    // of an explicit query
  // How long its tasks have waited for queries of higher priority, as of then (yields.cc).
  int64_t yielded_ns = 0;
  TimeNs yielded_until_ns = 0;
  TimeNs quiet_since_ns = 0;  // explicit: its begin, or when a task of it was last complete
  SerialBudget serial_budget;
  ShadowQuery shadow;
  QueryState* next = nullptr;  // active queries in order of arrival
  QueryState* previous = nullptr;
  QueryState* next_of_app = nullptr;  // the same, of its app
  QueryState* previous_of_app = nullptr;
};

// An explicit query's slot. Submitters count on its first line, the flow writes the state.
struct alignas(64) QuerySlot {
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> open{false};
  std::atomic<int32_t> tasks_submitted{0};
  Queue* queue = nullptr;
  alignas(64) QueryState state;
};

// One launch of a task: live, or prepared by its submitter.
struct Part {
  LaunchId launch;
  PlaceIndex place = kNoPlace;
  LaneIndex lane = kNoLane;
  Form form = Form::kOriginal;
  int32_t workers = 0;  // as charged to the CapSM ledger
  int32_t workers_per_sm = 1;
  uint64_t epoch = 0;  // 0: not evictable
  // The lane's word at which all of the launch leaves: its epoch, or a later one after a partial
  // eviction.
  uint64_t leave_epoch = 0;
  // Second part of a fused launch: the first part's lane, which gives the order and stays busy.
  LaneIndex order_lane = kNoLane;
  // LC work that leaves its queue's lane: the lane whose earlier launches it comes after.
  LaneIndex after_lane = kNoLane;
  int64_t blocks_asked = 0;
  uint32_t stream = 0;  // of a region: Lane::streams at its begin
  TimeNs launched_ns = 0;
  int64_t hang_limit_ns = kNever;
  TimeNs alive_ns = 0;            // when the flow last found, at its limit, that it does not hang
  TimeNs eviction_seen_ns = 0;    // when the flow first saw it evicted; 0: it is not
  bool blocked_eviction = false;  // the eviction took too long, and was counted as blocked
  bool had_co_residents = false;  // before it was evicted: other work ran on another lane
  bool co_run_seen = true;        // what CoRuns::Begin returned
};

// The part of each SM's room that the part has: workers may be fewer than an SM holds, and than the
// block tasks, by a quota or beside another kernel.
inline double RoomShare(const Part& part, int32_t sms) {
  const double holds = static_cast<double>(sms) * part.workers_per_sm;
  const bool fewer =
      part.form == Form::kWorkers && part.blocks_asked > part.workers && part.workers < holds;
  return fewer && part.workers > 0 ? part.workers / holds : 1;
}

// One wait of a task for another one's end, from its admission on. It stands in the task that
// waits, so a task may be awaited by any number of others and holds nothing for them once it is
// complete.
struct Wait {
  Task* on = nullptr;  // null: that task is complete, and ended as the next two say
  Verdict verdict = Verdict::kPending;
  int32_t error_code = 0;
  Wait* next = nullptr;  // other waits for the same task
  Wait* previous = nullptr;
};

// On what a BE region began that LC queries may wait for.
enum class RegionLeave : uint8_t {
  kRoom = 0,  // every LC app tolerates it
  kSaved,     // on the vacation accounts of those that do not
  kCredit,    // on their tail accounts
};
enum class RegionPhase : uint8_t { kNone = 0, kOpen = 1, kEnded = 2 };

// The end of a BE task's last slice, and the slices that ran beside it then.
struct SliceMark {
  TimeNs end_ns = 0;   // 0: none has ended
  int32_t row = -1;    // of the neighbour's kernel, in `co_schedules`; -1: it had none, or several
  int64_t blocks = 0;  // of a slice of the neighbour
};

// Progress of a task. Submit resets it by assignment when a slot takes a new task.
struct Progress {
  bool adopted = false;        // in the flow's tables
  bool waits_linked = false;   // its waits stand in Task::waits, and it holds no slots for them
  bool started_early = false;  // launched by the fast path
  bool entered_gate = false;
  bool is_region = false;            // counts in its queue's in_flight from its begin
  bool region_watched = false;       // in Flow::first_region, linked as queues are
  bool region_overdue = false;       // open for longer than it may hold others
  bool evicts = false;               // LC: it evicted the evictable work on its SMs
  bool waits_for_empty_sms = false;  // LC: as its launch says (LaunchRequest)
  bool on_credit = false;            // BE: it runs on credit of the tail accounts
  bool launch_failed = false;  // one of its launches failed; the task fails when all have ended
  bool draining = false;       // no block task is left to claim, and a part still runs
  bool runs_alone = false;     // BE: it began alone, to be measured by itself
  // It had co-residents, so it trains no solo model.
  bool had_co_residents = false;
  RegionLeave region_leave = RegionLeave::kRoom;
  // BE work that ran when this task was launched: its SMs (0: none, or several kernels), and
  // whether some of it was on this task's SMs.
  int32_t beside_sms = 0;
  LinkUse copies_beside = 0;  // LC: at its launch BE copies ran in these directions, and no BE work
  bool beside_overlaps = false;
  int32_t counter = -1;  // claim counter of its block tasks, -1: none
  bool counter_fresh = true;
  bool enqueue_failed = false;  // the application's enqueue function failed: so does the task
  int32_t running_index = -1;   // in Flow::running_lc or running_be
  uint64_t sequence = 0;        // order of admission
  TimeNs ready_ns = 0;
  int64_t blocks_done = 0;
  SliceMark slice_mark;
  double whole_device_ns = 0;  // BE: what its launches would have taken alone on the whole device
  int64_t claims_seen = 0;     // what ReadClaims last answered
  int32_t claims_looks = 0;    // at ReadClaims without an answer, in a row
  TimeNs claims_asked_ns = 0;  // of the first of these
  int64_t issued_ns = 0;       // predicted duration of what is launched
  int64_t uncommitted_ns = 0;  // the part of it that an eviction leaves undone: not in T_q
  TimeNs evicted_since_ns = 0;
  TimeNs held_since_ns = 0;        // for record.hold_reason; 0: it is not held
  TimeNs yield_wait_since_ns = 0;  // LC: it waits for queries of higher priority; 0: it does not
  Prediction predicted;
  int64_t eviction_p99_ns = kNever;  // kNever: not evictable
  bool eviction_known = false;       // that is a prediction
  bool eviction_learned = false;  // a graph: its segments are measured, or were seen often enough
  int64_t blocking_ns = kNever;   // what its eviction adds to an LC query; kNever: not evictable
  int64_t blocking_mean_ns = 0;   // a graph: the mean wait that queries showed; 0: none yet
  double shift_rate = -1;         // the tail that shift_ns is for; -1: none yet
  int64_t shift_ns = 0;           // how far a graph in segments moves a p99 of that tail
  Task* next = nullptr;           // queue order
  Task* previous = nullptr;       // the same; the head's is not kept
  BoundedList<Part, kMaxPartsPerTask> parts;  // last: its unused storage keeps the rest together
};

// Of a task that is one piece of a query's graph (GraphPiece). Submit resets it by assignment.
// Pieces complete in their order, so both neighbours exist for as long as they are named here.
struct PieceOfGraph {
  const KernelDesc* graph = nullptr;  // null: the task is no piece
  bool first = false;
  Task* before = nullptr;  // until that one is complete; null: none, or it is
  Task* next = nullptr;    // null: it is the last one
  // How it has ended itself, while it is not complete because one before it is not.
  Verdict ended = Verdict::kPending;
  // What the pieces before it sum up to, once the one before it is complete.
  Verdict verdict = Verdict::kPending;  // of the first one that did not succeed
  Verdict failed_dependency_verdict = Verdict::kPending;
  bool hangs = false;  // a part of the graph may still be on the device
  int32_t error_code = 0;
  int32_t launches = 0;
  int32_t evictions = 0;
  TicketId failed_dependency;
  TimeNs submit_ns = 0;  // of the first one, as what follows up to `place`
  TimeNs admit_ns = 0;
  TimeNs launch_ns = 0;  // 0: none is launched
  Reason launch_reason = Reason::kNone;
  PlaceIndex place = kWholeDevice;
  KernelId beside;  // the first that ran beside one of them; 0: none
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
  int64_t predicted_ns = 0;
  int64_t predicted_error_ns = 0;
  int64_t measured_ns = 0;
  int64_t evicted_ns = 0;
};

// In a PagedArray: a slot that no task ever had is all zero bytes, which is a free slot of
// generation 0. AllocateTask gives it its index, app and first generation.
struct alignas(64) Task {
  // Shared between threads.
  std::atomic<uint64_t> slot_word{0};  // generation and holders, see slot_word.h
  std::atomic<TaskState> state{TaskState::kFree};
  std::atomic<bool> complete{false};
  std::atomic<bool> awaited{false};  // a caller waits for its end (flow/waiting/waiters.h)
  std::atomic<bool> cancel_requested{false};
  std::atomic<RegionPhase> region{RegionPhase::kNone};
  // LC: when a caller that waits looks at `complete` without sleeping (flow/verbs/spin_window.h).
  // spin_until_ns 0: nobody knows yet. It is stored last and loaded first.
  std::atomic<TimeNs> spin_from_ns{0};
  std::atomic<TimeNs> spin_until_ns{0};

  // Written by the submitter before the task is posted.
  uint32_t slot = 0;
  App* app = nullptr;
  Queue* queue = nullptr;
  QueryState* query = nullptr;
  QuerySlot* explicit_query = nullptr;
  QueryState own_query;
  Work work;
  BoundedList<TicketId, kMaxWaitsPerTask> wait_tickets;  // until its admission it holds their slots
  BoundedList<void*, kMaxWaitsPerTask> wait_events;
  void* signal_event = nullptr;
  CompletionCallback callback = nullptr;
  void* callback_user = nullptr;
  int64_t next_within_ns = 0;    // as TaskSpec says
  int32_t token_mark = 0;        // the first of its marks (token_streams.h); 0: none
  int32_t large_arguments = -1;  // slot in the app's pool
  bool behind_pieces = false;    // it waits while its graph is in pieces (GraphUse)
  PieceOfGraph piece;

  // The flow's own, once the task is published.
  Progress progress;
  CompletionRecord record;
  Wait* awaited_by = nullptr;                // waits of other tasks for this one's end
  std::array<Wait, kMaxWaitsPerTask> waits;  // one for each of wait_tickets

  alignas(kArgumentAlignment) std::array<std::byte, kInlineArgumentBytes> arguments;

  // A graph that runs in segments, as BE graphs do that the device cut.
  bool IsSegmented() const { return work.kind == TaskKind::kGraph && work.block_tasks > 1; }
  bool IsEvictable() const {
    return IsSegmented() || (work.kind == TaskKind::kKernel && work.kernel->evictable);
  }
};

// A stream-like FIFO. Only its head is ever ready.
struct alignas(64) Queue {
  std::atomic<uint32_t> id{0};
  std::atomic<bool> open{false};
  // Submitted and not launched: the fast path needs 0, so that it does not overtake.
  std::atomic<int32_t> unlaunched{0};
  // In Flow::deferred: launched for the flow, and not yet on the device. What stands behind such a
  // task waits, so that it does not overtake.
  std::atomic<int32_t> deferred{0};
  // Tasks that are not complete and explicit queries that are not done. A submitter raises it
  // before it looks whether the queue is open; a release closes the queue before it looks at it.
  std::atomic<int32_t> tasks_open{0};
  // Launched and not complete. While LC tasks are in flight the queue stays on their lane, so that
  // stream order is its order.
  std::atomic<int32_t> in_flight{0};
  std::atomic<int32_t> regions_open{0};  // and those whose end is not complete
  // The longest that a region of it took on the device, of late; 0: none has ended.
  std::atomic<int64_t> region_ns{0};
  std::atomic<LaneIndex> lane{kNoLane};
  App* app = nullptr;
  uint32_t generation = 0;

  // The flow's own, on a line of its own: it changes with every task. `head` is the first task that
  // is not launched, or whose rest waits for another launch.
  alignas(64) Task* head = nullptr;
  Task* tail = nullptr;
  int32_t backlog_index = -1;  // position in Flow::backlog, -1: not there
  bool in_plan_order = false;  // in Flow::plan_order
  // As of the last plan: the head waits for tickets. Nothing behind it can be launched.
  bool head_waits = false;
  // BE, as of the last plan: LC work waits for a task of it, through other tasks or not
  // (flow/planning/awaited.h).
  bool awaited_by_lc = false;
  // LC: queries with a task in this list and none on the device. While the head waits, these
  // queries wait.
  int32_t queries_listed = 0;
  // `view` is what the next snapshot has for the head, which is ready (flow/planning/head_views.h).
  bool view_is_current = false;
  // While the view is current: the head is held for this reason, as its record says, so that a hold
  // for the same changes nothing. kNone: look at the head.
  Reason held = Reason::kNone;
  // The head and the tasks behind it of which the plan stage has seen that they wait for no ticket:
  // so many, up to `ready_last`. 0: none yet.
  int32_t ready_run = 0;
  Task* ready_last = nullptr;
  HeadView view;
};

// What an LC app has on the device. Its queues share one lane of a place (Lanes::Pick), so that
// work of one comes behind that of the others.
struct LcOnDevice {
  int32_t queries = 0;        // with a task there
  int64_t issued_ns = 0;      // predicted time of the tasks there
  TimeNs first_since_ns = 0;  // since when the first of these tasks is the first
};

// What an app has of a resource that BE apps share by weight: the SMs, or the copies of a
// direction.
struct ResourceUse {
  int32_t queues = 0;  // its queues whose head needs it
  int32_t tasks = 0;   // on the device
  // BE: predicted duration of its work that is done, over its fair weight; and of its tasks that
  // are on the device, not divided.
  double attained_ns = 0;
  int64_t on_device_ns = 0;
  TimeNs served_ns = 0;  // BE: when a task of it last left the device
};

// The last region of a BE app that could not begin, or that was on credit and has ended: the next
// one will ask again.
struct RegionWish {
  std::atomic<TimeNs> asked_ns{kNever};  // kNever: none
  std::atomic<int64_t> bound_ns{0};

  void Note(TimeNs now_ns, int64_t region_bound_ns) {
    bound_ns.store(region_bound_ns, std::memory_order_relaxed);
    asked_ns.store(now_ns, std::memory_order_relaxed);
  }
  void Clear() { asked_ns.store(kNever, std::memory_order_relaxed); }
  bool IsOpen(TimeNs now_ns) const {
    const TimeNs asked = asked_ns.load(std::memory_order_relaxed);
    return asked != kNever && now_ns - asked <= kRegionWantedNs;
  }
};

// What a periodic app has of the plan of partitions in force, and how its jobs went since.
struct RealTimeShare {
  int32_t partition = -1;   // index into Flow::partitions; -1: it has none
  int64_t worst_ns = 0;     // the budget of a job
  int64_t response_ns = 0;  // the bound of its response
  int64_t response_ns_max = 0;
  int64_t jobs = 0;
  int64_t deadlines_missed = 0;
  int64_t overruns = 0;
};

struct alignas(64) App {
  static constexpr int kNoIndex = -1;
  uint32_t slot = 0;
  std::atomic<uint32_t> id{0};  // 0: slot is free
  std::atomic<bool> open{false};
  uint32_t generation = 0;
  AppOptions options;

  // Any thread may look up a stale ticket while the next app is made on this slot: the array is
  // stored before its size, read after it, and never freed before the App.
  std::atomic<Task*> tasks{nullptr};
  std::atomic<int32_t> task_capacity{0};
  // Slots of the array that a task ever had, the first ones; the rest has taken no memory yet.
  std::atomic<int32_t> task_slots_used{0};
  uint64_t first_generation = 1;              // of a slot's first task
  std::vector<PagedArray<Task>> task_arrays;  // the last is in use
  Task& TaskAt(size_t index) const { return tasks.load(std::memory_order_acquire)[index]; }
  std::unique_ptr<SlotStack> free_tasks;
  struct alignas(kArgumentAlignment) LargeArguments {
    std::array<std::byte, kMaxArgumentBytes> bytes;
  };
  PagedArray<LargeArguments> large;
  std::unique_ptr<SlotStack> free_large;

  std::atomic<int32_t> queues{0};  // open ones; written under the tables' mutex

  // The fast path's route: place + 1 in the low byte, then flags (route.h); 0: none published.
  std::atomic<uint32_t> route{0};
  // LC: where its regions may run under a plan of partitions, which is a partition of its own
  // without BE work. kNoPlace: nowhere.
  std::atomic<PlaceIndex> region_place{kNoPlace};

  // What submitters write, on one line that the flow only reads, queries without an end aside.
  alignas(64) std::atomic<int32_t> submitters{0};  // threads inside a submit, for a safe release
  std::atomic<int32_t> active_queries{0};
  std::atomic<int32_t> queries_open{0};  // explicit ones that are begun and not done
  std::atomic<int64_t> submitted{0};
  std::atomic<int64_t> rejected{0};
  RegionWish region_wish;  // BE

  // The flow's own.
  alignas(64) int32_t plan_index = kNoIndex;  // row in the snapshot's lc_apps or be_apps
  int32_t tasks_in_flight = 0;
  std::atomic<int32_t> reserved_capsms{0};
  std::atomic<bool> packed{false};
  double fair_weight = 1;  // BE: its weight, as far as its quota lets it count (fair_weight.h)
  std::array<ResourceUse, kSharedResources> uses;  // by ResourceOf
  QueryState* first_query = nullptr;               // LC: its active queries by arrival
  QueryState* last_query = nullptr;
  LcOnDevice on_device;
  // LC: active queries that only wait, as of the last plan: each of their tasks waits for tickets,
  // or stands behind one that does. They do not hold BE work, because the tickets may be of BE
  // work.
  int32_t queries_waiting = 0;
  int32_t queries_idle = 0;   // active ones that count as no load
  int32_t token_streams = 0;  // open ones
  // LC, as of the last plan (flow/planning/yields.h): whether an app of higher priority has a query
  // that it yields to, how many of its tasks wait for that, and since when the first of them waits,
  // or one that has stopped.
  bool must_yield = false;
  int32_t tasks_yielding = 0;
  TimeNs yield_wait_from_ns = kNever;
  int32_t regions_overdue = 0;                  // open ones that hold nobody back any more
  std::array<int64_t, kHoldReasons> held_ns{};  // BE: time that its heads were held, by reason
  int64_t depth_logged = -1;                    // in the event log
  AppEvidence evidence;                         // LC: what its queries have shown
  bool bound_lost_said = false;                 // by the log (AppEvidence::bound_lost)
  bool target_lost_said = false;                // likewise
  RealTimeShare real_time;                      // LC, of the plan of partitions in force

  std::atomic<int64_t> completed{0};
  std::atomic<int64_t> failed{0};
  std::atomic<int64_t> dropped{0};
  std::atomic<int64_t> cancelled{0};
  std::atomic<int64_t> evictions{0};
  std::atomic<int64_t> device_ns{0};
  std::atomic<int64_t> work_ns{0};
  std::atomic<int64_t> block_tasks{0};
  LatencyHistogram latency;

  // Active queries that count as load.
  int32_t LoadingQueries() const {
    return active_queries.load(std::memory_order_acquire) - queries_idle;
  }

  // Accepted and not complete.
  int64_t TasksOpen() const {
    const int64_t ended =
        completed.load(std::memory_order_acquire) + failed.load(std::memory_order_acquire) +
        dropped.load(std::memory_order_acquire) + cancelled.load(std::memory_order_acquire);
    return submitted.load(std::memory_order_acquire) - ended;
  }
};

inline size_t ResourceOf(const Task& task) {
  return ResourceOf(task.work.kind, task.work.copy.direction);
}

// Start tag of the BE app's next task on the resource in start-time fair queueing: what it has got
// and what it has on the device, over its fair weight.
inline double StartTag(const App& app, size_t resource) {
  const ResourceUse& use = app.uses[resource];
  return use.attained_ns + static_cast<double>(use.on_device_ns) / app.fair_weight;
}

inline bool IsLc(const Task& task) {
  return task.app->options.app_class == AppClass::kLatencyCritical;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_TASK_H_
