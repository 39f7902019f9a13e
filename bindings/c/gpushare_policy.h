// A policy of the application's own: a function from a snapshot to a plan, in a versioned table.
//
// Installed as <gpushare/gpushare_policy.h>; compiles as C99 to C23 and as C++17 to C++23.
//
// Call sequence
// - Fill a gpushare_policy_table, made with its _INIT macro, and call gpushare_set_user_policy.
// - The library calls make_plan whenever something changed: a submit, a completion, a wake-up
//   time. make_plan reads the snapshot and writes launches, evictions and holds into the plan.
// - The library calls destroy once, when the policy is replaced or the runtime ends.
//   examples/user_policy.c is a complete policy; examples/user_policy_fused.cc launches fused
//   kernels.
//
// Rules for make_plan
// - It is pure: the plan depends on the snapshot only. It keeps no state that changes its answers
//   and reads no clock.
// - It calls no function of gpushare. It does not allocate, block or throw.
// - Snapshot and plan live for one call.
//
// Units and indices
// - Times are nanoseconds on the device's clock. Speeds are relative to the kernel alone on the
//   whole device. Indices are dense; -1 is none.
// - Elements of the snapshot's arrays may grow at their end in later versions. Step through an
//   array by the stride that the snapshot gives, as GPUSHARE_AT does. gpushare_snapshot and
//   gpushare_plan grow at their end too. gpushare_part_view, gpushare_copy_state,
//   gpushare_arrangement, gpushare_planned_choice and the entries of a plan never change in one
//   version of the table.
#ifndef GPUSHARE_GPUSHARE_POLICY_H_
#define GPUSHARE_GPUSHARE_POLICY_H_

#include <gpushare/gpushare.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSHARE_POLICY_VERSION 1

// Capacity of each array of a plan (launches, evictions, holds), in entries.
#define GPUSHARE_PLAN_ACTIONS_MAX 128
// Most parts of one task. A part is one launch of the task on the device.
#define GPUSHARE_PARTS_MAX 4

// The kind of stream of the library that a launch goes to.
typedef int32_t gpushare_lane_class;
enum gpushare_lane_class_value {
  GPUSHARE_LANE_PLAIN = 0,  // ordinary priority
  GPUSHARE_LANE_LC = 1,     // highest priority; never evicted
  GPUSHARE_LANE_BE = 2,     // lowest priority; its launches can be evicted
  GPUSHARE_LANE_COPY = 3
};

// --- the snapshot --------------------------------------------------------------------------------

// A place: a set of SMs that a launch can be confined to.
typedef struct gpushare_place_view {
  int32_t sms;
  int32_t reserved;
  uint64_t overlaps;  // one bit for each place that shares an SM with this one, itself included
} gpushare_place_view;

// One split of the device into an LC side and a BE side, as indices of places. Splits ascend by
// lc_sms.
typedef struct gpushare_split_view {
  int32_t lc_place;
  int32_t be_place;
  int32_t lc_sms;
  int32_t be_sms;
} gpushare_split_view;

// The copies in flight in one direction.
typedef struct gpushare_copy_state {
  int32_t be_active;  // BE copies in flight
  int32_t lc_active;
  int32_t be_limit;  // most BE copies at once: N_tr of Baymax eq. 5
  int32_t reserved;
} gpushare_copy_state;

// An LC app with its targets and its present load.
typedef struct gpushare_lc_app_view {
  uint32_t app_id;
  int32_t reserved_capsms;
  int64_t target_ns;     // latency target; 0: none
  double p99_bound;      // bound on p99 over p99 alone; 0: none
  int64_t p99_alone_ns;  // p99 alone; 0: unknown
  int64_t solo_ns;       // one query alone on the device
  double load;           // share of time that its queries would take alone
  // Longest time that a launch may keep this app's next query waiting; GPUSHARE_NEVER: no limit.
  int64_t blocking_budget_ns;
  int32_t active_queries;  // without those that only wait for tickets
  int32_t tasks_in_flight;
  int64_t idle_since_ns;    // when active_queries last became 0
  uint32_t main_kernel_id;  // the kernel that takes most of its time; 0 before its first
  int32_t reserved;
  // What the promise leaves to BE work. A plan spends a part of each bound; the rest is for errors.
  double p50_bound;          // bound on the median over the median alone; 0: none
  int64_t latency_limit_ns;  // a query above it is late; GPUSHARE_NEVER: unknown
  int64_t p99_slack_ns;      // how far BE work may move the p99; GPUSHARE_NEVER: no p99_bound
  int64_t p50_slack_ns;      // how far it may move the median; GPUSHARE_NEVER: no p50_bound
  double split_p99_bound;    // bound on p99 over p99 alone to plan with on a split; 0: none
  int64_t split_target_ns;   // target to plan with on a split; 0: none
  // What its queries have shown of the load.
  double load_error;   // standard deviation of load; large while little has been seen
  double peak_load;    // highest load of late; 0 without a target
  double target_tail;  // measured p99 over the p99 that its load gives; 0 without a target
  // Longest launch that nothing evicts. A query meets half of it on average, so it may be longer
  // than blocking_budget_ns; never below that. GPUSHARE_NEVER: no limit.
  int64_t uncuttable_budget_ns;
  // The latencies' tail decays as exp(-rate x latency), where p99_bound is what limits BE work. 0:
  // unknown, or another bound limits it.
  double tail_rate_per_ns;
  // Of the queries that BE work delays by more than this, half or more are late; GPUSHARE_NEVER:
  // unknown.
  int64_t late_delay_ns;
  // How many more queries BE work may make late, and how many of them one nanosecond of blocking is
  // likely to. BE work beyond a budget may start while no query is active, where the credit is for
  // its blocking time x need, and for one query at least. A need of 0: no account.
  double tail_credit;
  double tail_need_per_ns;
  // Beside the queue that the app would have alone on the same arrivals: how much later it ends the
  // queries that it has if it gets the whole device from now on, 0: it is not behind, or nothing is
  // known; and the p99 in that queue, 0: unknown.
  int64_t lag_ns;
  int64_t shadow_p99_ns;
  // How long its oldest active query has been the oldest, which the lag counts as its service so
  // far; 0: no active query. And how large the lag may become on a split by the promise;
  // GPUSHARE_NEVER: no limit.
  int64_t service_age_ns;
  int64_t lag_slack_ns;
  // Factor on its speed while BE copies run. Index, as bits: 1 to the device, 2 from the device.
  float speed_beside_copies[4];
  gpushare_bool packed;  // its reservation is on whole SMs that no other app uses
  int32_t reserved2;
  int32_t priority;  // among LC apps; the heads of a higher one come first
  int32_t reserved3;
  // While the last few queries came rarely: a delay by BE work that makes hardly any query late,
  // above the budgets or not; 0: none is known.
  int64_t lull_delay_ns;
  // It works in steps, and its next query is expected until then: BE work that delays it by more
  // than a part of blocking_budget_ns, 0.8 in adaptive, should not start. 0: none is expected
  // (docs/engines.md).
  int64_t expected_by_ns;
  // Share of its queries behind a silence that BE work may make late, beyond the budgets; 0: it
  // shows no steps, or its p99_bound is not what limits BE work.
  double first_late_max;
  // A launch that nothing evicts, longer than the budgets, which may begin now: the idle time of
  // late has saved for one of so long, where its p99_bound is what limits BE work; 0: for none.
  int64_t saved_vacation_ns;
} gpushare_lc_app_view;

// A BE app with its quota and what it got so far.
typedef struct gpushare_be_app_view {
  uint32_t app_id;
  int32_t quota_capsms;  // 0: no quota
  double weight;
  // Whole-device time of its work that is done or on the device, divided by its weight, or by the
  // smaller one that gives it its quota where its weight gives more. The app with the smallest is
  // next by weight; one without work keeps up with the others.
  int64_t attained_ns;
  double used_capsms;
  gpushare_bool packed;  // its quota is on whole SMs that no other app uses
  int32_t reserved;
  double fair_weight;  // weight, or the smaller one that gives it its quota; attained_ns is over it
  int64_t served_ns;   // when it last had a task on the device; 0: never
  // The same of its copies, by their direction (gpushare_copy_direction). The three fields above
  // are of all other work.
  int64_t copies_attained_ns[4];
  int64_t copies_served_ns[4];
} gpushare_be_app_view;

// An active query. The array is in order of arrival, over all LC apps, without the queries that
// only wait for tickets. Where apps have many, each shows as many of its oldest as every other.
typedef struct gpushare_query_view {
  gpushare_query query;
  int32_t lc_app;  // index into lc_apps
  int32_t reserved;
  int64_t arrival_ns;
  int64_t deadline_ns;  // arrival_ns + target; GPUSHARE_NEVER without a target
  int64_t solo_ns;      // predicted duration of all its tasks
  int64_t issued_ns;    // predicted duration of its tasks on the device
  int64_t done_ns;      // processing time of its completed tasks
  // What it can still give away (Baymax eq. 3 and 4); GPUSHARE_NEVER without a target.
  int64_t headroom_ns;
} gpushare_query_view;

// A task that the policy may launch: the first of its queue, or the rest of an evicted task.
typedef struct gpushare_head_view {
  gpushare_ticket task;
  gpushare_app_class app_class;
  int32_t app;  // index into lc_apps or be_apps, by app_class
  uint32_t queue_id;
  gpushare_task_kind kind;
  gpushare_query query;
  uint32_t kernel_id;    // 0: none
  int32_t kernel_index;  // row of the pair table; -1: none
  uint64_t sequence;     // order of submission, over all queues
  int64_t ready_ns;      // when it became ready
  // Tasks of this queue that may be launched in a row, this one included.
  int32_t ready_count;
  int32_t workers_per_sm_max;
  int64_t blocks_left;    // block tasks not yet done; for a copy, bytes
  gpushare_bool resumed;  // it ran before and was evicted
  gpushare_bool evictable;
  gpushare_bool confinable;
  gpushare_bool pinned;  // MEMCPY: the host memory is pinned
  gpushare_copy_direction direction;
  gpushare_bool trained;       // the prediction comes from measurements of this kernel
  int64_t remaining_ns;        // predicted duration of what is left, alone on the whole device
  int64_t remaining_error_ns;  // error bar of remaining_ns
  // Delay that its eviction adds to an LC query; GPUSHARE_NEVER: not evictable.
  int64_t eviction_ns;
  int32_t overlap_index;  // row of the co-schedule table; -1: none
  int32_t reserved;
  int64_t eviction_p99_ns;       // after which an eviction has ended; GPUSHARE_NEVER: not evictable
  gpushare_bool eviction_known;  // the two are predictions; 0: nobody knows, and they are low
  gpushare_bool runs_alone;      // BE: launch it while nothing else runs, to measure its duration
  gpushare_bool followed;  // BE: its queue has a next task, which waits for nothing but this one
  gpushare_bool keeps_l1;  // KERNEL: its workers leave an SM's memory that they do not need to L1
  gpushare_bool draining;  // of a running task: none of its block tasks is left to claim
  int32_t reserved2;
  // BE, a graph that can run in segments, measured: the BE work that is done beside LC queries less
  // what it slows them by, as a share of the queries' time alone. On the whole device; 0 else.
  double segment_gain;
  // The same on a split, and how much it counts beside a prediction: 0, nothing, to 1.
  double split_gain;
  double split_gain_known;
  // BE: LC work waits for it or for a task behind it, through other tasks or not. Launch it while
  // no query is active, whatever the LC apps' bounds say: else that LC work waits for ever.
  gpushare_bool awaited_by_lc;
  int32_t reserved3;
} gpushare_head_view;

// One launch of a task that is on the device.
typedef struct gpushare_part_view {
  int32_t place;
  int32_t lane;
  int32_t workers;
  gpushare_bool evicting;  // its eviction is requested and it has not ended
  gpushare_form form;
  int32_t reserved;
  int64_t launched_ns;
} gpushare_part_view;

// A task with at least one launch on the device.
typedef struct gpushare_running_view {
  gpushare_part_view parts[GPUSHARE_PARTS_MAX];
  int32_t part_count;
  int32_t reserved;
  uint64_t places;          // one bit for each place with a part that is not being evicted
  gpushare_head_view task;  // its remaining_ns counts from now. Last, because it may grow.
} gpushare_running_view;

// Relative speeds when LC app a runs on the LC side of split s and BE kernel k on the BE side.
// gpushare_pair_at finds the option of (a, k, s).
typedef struct gpushare_pair_option {
  float lc_speed;          // a, while k runs on the BE side
  float lc_speed_alone;    // a, while the BE side is empty
  float be_speed_be_side;  // k on the BE side, while a runs on the LC side
  float be_speed_lc_side;  // k on the LC side, while no query is active
} gpushare_pair_option;

// A registered fused kernel. Its duration over that of its TC part alone, where r is the load
// ratio, the CD part's duration alone over the TC part's (Tacker VI):
//   intercept + slope r + bend max(0, r - inflection)
// gpushare_fused_ratio computes it.
typedef struct gpushare_fused_view {
  uint32_t kernel_id;
  uint32_t tensor_kernel_id;
  uint32_t cuda_kernel_id;
  int32_t tensor_blocks;  // of the TC part in a fused block
  int32_t cuda_blocks;    // of the CD part in a fused block
  int32_t blocks_per_sm;  // fused blocks that an SM holds
  gpushare_bool trained;  // 0: from its registration; 1: from measurements
  int32_t reserved;
  double intercept;
  double slope;
  double bend;
  double inflection;  // the opportune load ratio, where both parts end together
  double error;       // one standard deviation of the relative error
} gpushare_fused_view;

// Two kernels whose workers share every SM, with so many workers each. gpushare_co_schedule_at
// finds the option of two rows. Workers of 0, both: they do not fit. Speeds of 0: nothing is known.
typedef struct gpushare_co_schedule_option {
  int32_t workers_per_sm[2];  // of the kernel with the larger row, of the other
  float speed[2];             // relative to alone on the whole device with all workers
  float speed_error;          // one standard deviation of the relative error of a speed
  float profit;               // CP of Kernelet eq. 1: above 0, sharing beats one after the other
} gpushare_co_schedule_option;

// Options for each pair of rows: the second kernel takes a quarter, half, three quarters of the SM.
#define GPUSHARE_CO_SCHEDULE_RATIOS 3

// How graphs in segments run while queries are active, where both ways are compared.
typedef int32_t gpushare_segments_run;
enum gpushare_segments_run_value {
  GPUSHARE_SEGMENTS_NONE = 0,  // no graph runs in segments, or the policy does not compare
  GPUSHARE_SEGMENTS_BESIDE_QUERIES = 1,
  GPUSHARE_SEGMENTS_ON_SPLIT = 2
};

// Which arrangement runs. A plan states it with the routes that it publishes, and the next snapshot
// repeats it. What is stated is measured: segments by segment_gain and split_gain of their heads,
// a trial by the pair table. A policy that uses no splits and compares nothing leaves the defaults.
typedef struct gpushare_arrangement {
  int32_t split;  // LC is routed to the LC side of this split, an index; -1: to the whole device
  // The split is on trial beside the BE kernel of this row of the pair table, because nobody
  // measured how fast LC apps are there; -1: it is not. Only while trials_open.
  int32_t trial_kernel;
  gpushare_segments_run segments;
  int32_t reserved;  // must be 0
} gpushare_arrangement;

// The state that a plan is made from. Everything in it is read-only.
typedef struct gpushare_snapshot {
  uint32_t struct_size;
  int32_t sm_count;
  int64_t now_ns;
  uint64_t plan_sequence;  // number of this plan
  double capsms_free;      // CapSMs neither reserved nor in use
  int64_t queued_ns;       // T_q: predicted time of launched work; for segments, of their eviction
  gpushare_bool quiesced;  // the caller quiesced the runtime: launch nothing
  gpushare_bool partitions_available;
  gpushare_bool eviction_available;
  int32_t reserved;
  gpushare_copy_state copies[4];      // index: gpushare_copy_direction
  const gpushare_place_view* places;  // [0] is the whole device
  const gpushare_split_view* splits;
  const gpushare_lc_app_view* lc_apps;
  const gpushare_be_app_view* be_apps;
  const gpushare_query_view* queries;
  // LC heads first, by priority, then BE heads; else in order of submission. Heads of LC apps that
  // yield are left out.
  const gpushare_head_view* heads;
  const gpushare_running_view* running;
  const gpushare_pair_option* pairs;  // see gpushare_pair_at
  uint32_t place_count, place_stride;
  uint32_t split_count, split_stride;
  uint32_t lc_app_count, lc_app_stride;
  uint32_t be_app_count, be_app_stride;
  uint32_t query_count, query_stride;
  uint32_t head_count, head_stride;
  uint32_t running_count, running_stride;
  uint32_t pair_kernels;  // rows of `pairs` for one LC app
  uint32_t pair_stride;
  uint64_t pair_version;                            // changes when any option changed
  const gpushare_fused_view* fused;                 // in the order of registration
  const gpushare_co_schedule_option* co_schedules;  // see gpushare_co_schedule_at
  uint32_t fused_count, fused_stride;
  uint32_t co_schedule_kernels;  // rows of `co_schedules`
  uint32_t co_schedule_stride;
  uint64_t fused_version;        // changes when any fused kernel changed
  uint64_t co_schedule_version;  // changes when any co-schedule changed
  // Time from the end of the last LC query until BE work should return: a client that submits its
  // next query at once then pays for no eviction.
  int64_t return_hysteresis_ns;
  // BE work on the whole device gets a share of time, where queries take longer after it. It pauses
  // until the first (0: it does not pause now), and again at the second (GPUSHARE_NEVER: it need
  // not).
  int64_t be_paused_until_ns;
  int64_t be_pauses_at_ns;
  const float* hoped;               // see gpushare_hoped_at; null: every pair is known
  gpushare_bool copies_lc_uses[4];  // an LC app copied in this direction before; as `copies`
  // What the last plan stated. A trial in it ends when enough of its queries have ended.
  gpushare_arrangement in_force;
  // A split may be used beside kernels that nobody measured there: the one on trial, else any.
  gpushare_bool trials_open;
  int32_t reserved2;
  // An app has more queries than are shown; `queries` has its oldest.
  gpushare_bool queries_left_out;
  int32_t reserved3;
} gpushare_snapshot;

// Element `index` of an array of the snapshot, by its stride:
//   const gpushare_head_view* head = GPUSHARE_AT(gpushare_head_view, s->heads, s->head_stride, i);
#define GPUSHARE_AT(type, array, stride, index)                   \
  ((const type*)(const void*)((const char*)(const void*)(array) + \
                              (size_t)(stride) * (size_t)(index)))

// The option of LC app `lc_app` beside kernel row `kernel_index` on split `split`. Null where
// nothing is known.
static inline const gpushare_pair_option* gpushare_pair_at(const gpushare_snapshot* snapshot,
                                                           int32_t lc_app, int32_t kernel_index,
                                                           int32_t split) {
  if (snapshot->pairs == NULL || lc_app < 0 || kernel_index < 0 || split < 0) return NULL;
  if ((uint32_t)lc_app >= snapshot->lc_app_count) return NULL;
  if ((uint32_t)kernel_index >= snapshot->pair_kernels) return NULL;
  if ((uint32_t)split >= snapshot->split_count) return NULL;
  return GPUSHARE_AT(
      gpushare_pair_option, snapshot->pairs, snapshot->pair_stride,
      ((size_t)lc_app * snapshot->pair_kernels + (size_t)kernel_index) * snapshot->split_count +
          (size_t)split);
}

// For a pair that nobody measured, whose lc_speed is a pessimistic guess: the LC speed that a trial
// may find. 0: the pair is known, or there is none.
static inline float gpushare_hoped_at(const gpushare_snapshot* snapshot, int32_t lc_app,
                                      int32_t kernel_index, int32_t split) {
  if (snapshot->hoped == NULL) return 0;
  if (gpushare_pair_at(snapshot, lc_app, kernel_index, split) == NULL) return 0;
  return snapshot->hoped[((size_t)lc_app * snapshot->pair_kernels + (size_t)kernel_index) *
                             snapshot->split_count +
                         (size_t)split];
}

// The predicted duration of a fused kernel over that of its TC part alone.
static inline double gpushare_fused_ratio(const gpushare_fused_view* fused, double load_ratio) {
  const double beyond = load_ratio > fused->inflection ? load_ratio - fused->inflection : 0;
  return fused->intercept + fused->slope * load_ratio + fused->bend * beyond;
}

// Option `ratio`, below GPUSHARE_CO_SCHEDULE_RATIOS, of two rows (overlap_index of two heads) in
// any order. Null where there is none.
static inline const gpushare_co_schedule_option* gpushare_co_schedule_at(
    const gpushare_snapshot* snapshot, int32_t one, int32_t other, int32_t ratio) {
  const int32_t row = one > other ? one : other;
  const int32_t column = one > other ? other : one;
  if (snapshot->co_schedules == NULL || column < 0 || ratio < 0) return NULL;
  if ((uint32_t)row >= snapshot->co_schedule_kernels) return NULL;
  if (ratio >= GPUSHARE_CO_SCHEDULE_RATIOS) return NULL;
  return GPUSHARE_AT(
      gpushare_co_schedule_option, snapshot->co_schedules, snapshot->co_schedule_stride,
      ((size_t)row * ((size_t)row + 1) / 2 + (size_t)column) * GPUSHARE_CO_SCHEDULE_RATIOS +
          (size_t)ratio);
}

// --- the plan ------------------------------------------------------------------------------------

// One launch that the policy decides. It is dropped, and the task waits for the next plan, if
// - `task` is neither a head nor a running BE task that gets one more part. A part is a launch of
//   WORKERS beside workers, or a SLICE that waits on the lane of slices, which is left out where no
//   block task is left for it. An LC task has one part, because its lane keeps its queue's order;
// - the task has no such form: a task that is not a kernel has the form of its kind, an evictable
//   graph also SEGMENTS; a kernel has ORIGINAL, with a worker function (evictable) WORKERS, with a
//   worker or slice function SLICE;
// - the place does not exist or has no lane of the class (the sides of a split have LC and BE
//   lanes), or the kernel is not confinable and the place is not the whole device;
// - a number is negative, or a reserved field is not 0.
// Legal, and read so: more workers than the place holds are as many as it holds. WORKERS on a lane
// that cannot be evicted are ORIGINAL, and SEGMENTS are GRAPH there. An ORIGINAL grid cut by
// blocks_max is a SLICE; only kernels and copies are cut. The rest of a task continues in the form
// that skips what is done, and that of a graph on a BE lane. FUSED without a pair launches the task
// alone. A count above ready_count is ready_count.
typedef struct gpushare_planned_launch {
  gpushare_ticket task;        // a head, or a running BE task that gets one more part
  gpushare_ticket fused_with;  // FUSED: the other task
  int64_t blocks_max;  // 0: all; else a slice of at most this many block tasks (copies: bytes)
  int32_t count;       // tasks of its queue to launch in a row, at most ready_count; 0: 1
  gpushare_form form;
  int32_t place;
  gpushare_lane_class lane_class;
  int32_t workers;         // WORKERS: number of workers; 0: as many as the place holds
  gpushare_reason reason;  // NONE is recorded as USER_POLICY
  int32_t reserved[2];     // must be 0
} gpushare_planned_launch;

// One eviction: every part of `task` on `place` shrinks to workers_to_keep workers; 0: it leaves.
typedef struct gpushare_planned_eviction {
  gpushare_ticket task;
  int32_t place;
  int32_t workers_to_keep;
  gpushare_reason reason;
  int32_t reserved;  // must be 0
} gpushare_planned_eviction;

// Why a head waits. For the event log only: it changes nothing else.
typedef struct gpushare_planned_hold {
  gpushare_ticket task;
  int64_t value_ns;  // the duration that was too long
  int64_t limit_ns;  // the limit that it exceeded
  gpushare_reason reason;
  int32_t reserved;  // must be 0
} gpushare_planned_hold;

// Where the next task of an LC app goes when the submitting thread launches it (the LC fast path).
typedef struct gpushare_lc_route {
  int32_t place;
  gpushare_lane_class lane_class;
  gpushare_bool fast_path;  // submitting threads may launch
  // Such a launch evicts evictable BE launches on overlapping places.
  gpushare_bool evict_overlapping;
} gpushare_lc_route;

// What `chosen`, `runner_up` and the values of a choice are (docs/abi.md, CHOICE).
typedef int32_t gpushare_choice_kind;
enum gpushare_choice_kind_value {
  GPUSHARE_CHOICE_NONE = 0,         // the plan does not say
  GPUSHARE_CHOICE_LAYOUT = 1,       // SMs for LC; predicted BE throughput in millionths
  GPUSHARE_CHOICE_CO_SCHEDULE = 2,  // kernel of one task << 32, of the other; CP in millionths
  GPUSHARE_CHOICE_OVERLAP = 3       // ticket of the BE task; T_gain in ns
};

// What a plan chose, and what was next best. For the event log and `gpushare explain` only.
typedef struct gpushare_planned_choice {
  gpushare_ticket tasks[2];  // that it is about; 0: the device, or no second one
  int64_t chosen;
  int64_t runner_up;  // -1: there was none
  int64_t value;
  int64_t runner_up_value;
  // By how much BE work would move the latency of the LC app that is brought closest to a limit,
  // and how far it may; -1: unknown.
  int64_t shift_ns;
  int64_t shift_limit_ns;
  int64_t runner_up_shift_ns;
  int64_t runner_up_shift_limit_ns;
  gpushare_choice_kind kind;
  int32_t reserved;  // must be 0
} gpushare_planned_choice;

// The decisions of one call of make_plan. The library gives it with counts 0, entries zero, routes
// at their defaults (whole device, LC lane, fast path off) and replan_at_ns GPUSHARE_NEVER.
//
// An entry that asks for what cannot be done is dropped and harms nobody: no task fails by it. The
// metric gpushare_plan_entries_dropped counts them. If a launch of a head was dropped, a HELD event
// and the task's hold_reason say HOLD_PLAN, until another reason holds it.
typedef struct gpushare_plan {
  uint32_t struct_size;
  uint32_t launch_count;
  uint32_t eviction_count;
  uint32_t hold_count;
  gpushare_planned_launch* launches;     // room for GPUSHARE_PLAN_ACTIONS_MAX entries
  gpushare_planned_eviction* evictions;  // room for GPUSHARE_PLAN_ACTIONS_MAX entries
  gpushare_planned_hold* holds;          // room for GPUSHARE_PLAN_ACTIONS_MAX entries
  gpushare_lc_route* routes;             // one entry for each of lc_apps
  // When to call make_plan again even if nothing happens, with or without work. The library waits
  // at least 1 us; a time that is not after now_ns asks for nothing.
  int64_t replan_at_ns;
  // In force from this plan on. Given as the whole device, no trial, no segments; what is not valid
  // is that too.
  gpushare_arrangement arrangement;
  // One entry for each of lc_apps, given as 0. 1: nothing stays on the SMs after an eviction by the
  // app's route (evict_overlapping), and a grid of the app may wait until they are empty.
  gpushare_bool* waits_for_empty_sms;
  gpushare_planned_choice choice;  // given as NONE, without a runner-up and with unknown shifts
  // How long the segments of BE graphs on the whole device may be from this plan on: a query may
  // wait for two of them. Given as 0, the graph's own segment_ns; GPUSHARE_NEVER: the whole graph.
  // What is below 0 is 0, and more than an hour is the whole graph.
  int64_t longest_segment_ns;
} gpushare_plan;

// --- the table -----------------------------------------------------------------------------------

// The policy. Make it with GPUSHARE_POLICY_TABLE_INIT.
typedef struct gpushare_policy_table {
  uint32_t struct_size;
  uint32_t version;  // GPUSHARE_POLICY_VERSION; the _INIT macro sets it
  const char* name;  // copied; at most 63 bytes; must be given
  // Fills `plan`. Must be given.
  // Threads: the one that plans (the scheduler's, or the one that polls); one call at a time.
  void (*make_plan)(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan);
  // Runs once, when the policy is replaced or the runtime ends: the place to free `user`. May be
  // null.
  void (*destroy)(void* user);
  void* user;  // passed to both functions
} gpushare_policy_table;
#ifdef __cplusplus
extern "C++" {
template <>
constexpr gpushare_policy_table gpushare_detail_init<gpushare_policy_table>() noexcept {
  gpushare_policy_table value{};
  value.struct_size = static_cast<uint32_t>(sizeof(value));
  value.version = GPUSHARE_POLICY_VERSION;
  return value;
}
}
#define GPUSHARE_POLICY_TABLE_INIT GPUSHARE_STRUCT_INIT(gpushare_policy_table)
#else
#define GPUSHARE_POLICY_TABLE_INIT \
  { .struct_size = (uint32_t)sizeof(gpushare_policy_table), .version = GPUSHARE_POLICY_VERSION }
#endif

// Replaces the policy by the caller's own, between two plans.
// Threads: any. Owns: the table is copied. If the call succeeds, `user` must live until destroy
// runs; if it fails, destroy never runs. Blocks: until the current pass of the flow ends.
// Errors: INVALID_ARGUMENT no name or no make_plan; UNIMPLEMENTED another version.
GPUSHARE_API gpushare_status gpushare_set_user_policy(
    gpushare_runtime* runtime, const gpushare_policy_table* table) GPUSHARE_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GPUSHARE_GPUSHARE_POLICY_H_
