// A policy of the application's own: a function from a snapshot to a plan, as a versioned C vtable.
//
// Installed as <gpushare/gpushare_policy.h>; C99 to C23, C++17 to C++23. Everything here is plain
// data that lives for one call. A policy is pure: it keeps no state that changes its answers, reads
// no clock, calls no function of gpushare and must not allocate, block or throw. Times are
// nanoseconds on the device's clock, speeds are relative to the kernel alone on the whole device,
// indices are dense and -1 is none. Elements of the snapshot's arrays may grow at their end: step
// through them by the strides that the snapshot gives (GPUSHARE_AT does). What the policy writes
// never changes in one version of the table, and neither do parts and copy states.
#ifndef GPUSHARE_GPUSHARE_POLICY_H_
#define GPUSHARE_GPUSHARE_POLICY_H_

#include <gpushare/gpushare.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSHARE_POLICY_VERSION 1

// Most entries of each array of a plan.
#define GPUSHARE_PLAN_ACTIONS_MAX 128
// Most parts (live launches) of one task.
#define GPUSHARE_PARTS_MAX 4

typedef int32_t gpushare_lane_class;
enum gpushare_lane_class_value {
  GPUSHARE_LANE_PLAIN = 0,  // ordinary priority
  GPUSHARE_LANE_LC = 1,     // highest priority, never evicted
  GPUSHARE_LANE_BE = 2,     // lowest priority, has an eviction word
  GPUSHARE_LANE_COPY = 3
};

// --- the snapshot --------------------------------------------------------------------------------

typedef struct gpushare_place_view {
  int32_t sms;
  int32_t reserved;
  uint64_t overlaps;  // places (bit per index) that share an SM with this one, itself included
} gpushare_place_view;

// One way to cut the device in two; ascending lc_sms.
typedef struct gpushare_split_view {
  int32_t lc_place;
  int32_t be_place;
  int32_t lc_sms;
  int32_t be_sms;
} gpushare_split_view;

typedef struct gpushare_copy_state {
  int32_t be_active;  // BE copies in flight in this direction
  int32_t lc_active;
  int32_t be_limit;  // N_tr (Baymax eq. 5)
  int32_t reserved;
} gpushare_copy_state;

typedef struct gpushare_lc_app_view {
  uint32_t app_id;
  int32_t reserved_capsms;
  int64_t target_ns;     // 0: none
  double p99_bound;      // 0: none
  int64_t p99_alone_ns;  // 0: unknown
  int64_t solo_ns;       // one query alone
  double load;           // share of time that its queries would take alone
  // Longest blocking that a launch may cause to this app's next query; GPUSHARE_NEVER: no limit.
  int64_t blocking_budget_ns;
  int32_t active_queries;
  int32_t tasks_in_flight;
  int64_t idle_since_ns;
  uint32_t main_kernel_id;  // the kernel that most of its time goes to, 0 before its first
  int32_t reserved;
} gpushare_lc_app_view;

typedef struct gpushare_be_app_view {
  uint32_t app_id;
  int32_t quota_capsms;  // 0: no quota
  double weight;
  int64_t attained_ns;  // whole-device time that it got so far, over its weight
  double used_capsms;
  gpushare_bool packed;
  int32_t reserved;
} gpushare_be_app_view;

// Active queries of all LC apps in order of arrival.
typedef struct gpushare_query_view {
  gpushare_query query;
  int32_t lc_app;  // index into lc_apps
  int32_t reserved;
  int64_t arrival_ns;
  int64_t deadline_ns;  // arrival + target, GPUSHARE_NEVER without one
  int64_t solo_ns;      // predicted duration of all its tasks
  int64_t issued_ns;    // predicted duration of its tasks that are on the device
  int64_t done_ns;      // processing time of its completed tasks
  int64_t headroom_ns;  // what it can still give away (Baymax eq. 3-4), GPUSHARE_NEVER: no target
} gpushare_query_view;

// The head of one queue, or the rest of an evicted task.
typedef struct gpushare_head_view {
  gpushare_ticket task;
  gpushare_app_class app_class;
  int32_t app;  // index into lc_apps or be_apps
  uint32_t queue_id;
  gpushare_task_kind kind;
  gpushare_query query;
  uint32_t kernel_id;    // 0: none
  int32_t kernel_index;  // row of the pair table, -1: none
  uint64_t sequence;     // order of submission
  int64_t ready_ns;
  int32_t ready_count;  // tasks of this queue that may be launched in a row, this one included
  int32_t workers_per_sm_max;
  int64_t blocks_left;  // block tasks not yet done; bytes for a copy
  gpushare_bool resumed;
  gpushare_bool evictable;
  gpushare_bool confinable;
  gpushare_bool pinned;
  gpushare_copy_direction direction;
  gpushare_bool trained;  // the prediction comes from measurements
  int64_t remaining_ns;   // of what is left, alone on the whole device
  int64_t remaining_error_ns;
  int64_t eviction_ns;  // what its eviction adds to an LC query; GPUSHARE_NEVER: not evictable
} gpushare_head_view;

typedef struct gpushare_part_view {
  int32_t place;
  int32_t lane;
  int32_t workers;
  gpushare_bool evicting;
  gpushare_form form;
  int32_t reserved;
  int64_t launched_ns;
} gpushare_part_view;

// A task with at least one launch on the device.
typedef struct gpushare_running_view {
  gpushare_part_view parts[GPUSHARE_PARTS_MAX];
  int32_t part_count;
  int32_t reserved;
  uint64_t places;          // bit per place with a live part that is not being evicted
  gpushare_head_view task;  // remaining is measured from now; last, as it may grow
} gpushare_running_view;

// LC app a beside BE kernel k on split s.
typedef struct gpushare_pair_option {
  float lc_speed;          // LC on the LC side, BE side busy with k
  float lc_speed_alone;    // same, BE side empty
  float be_speed_be_side;  // k on the BE side, LC side busy with a
  float be_speed_lc_side;  // k on the LC side when no query is active
} gpushare_pair_option;

typedef struct gpushare_snapshot {
  uint32_t struct_size;
  int32_t sm_count;
  int64_t now_ns;
  uint64_t plan_sequence;
  double capsms_free;  // unreserved and unused
  int64_t queued_ns;   // T_q: predicted duration of all that is issued and not done
  gpushare_bool quiesced;
  gpushare_bool partitions_available;
  gpushare_bool eviction_available;
  int32_t reserved;
  gpushare_copy_state copies[4];      // by gpushare_copy_direction
  const gpushare_place_view* places;  // [0] is the whole device
  const gpushare_split_view* splits;
  const gpushare_lc_app_view* lc_apps;
  const gpushare_be_app_view* be_apps;
  const gpushare_query_view* queries;
  const gpushare_head_view* heads;  // LC first, then BE; each in order of submission
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
  uint64_t pair_version;  // changes when any option changed
} gpushare_snapshot;

// Element `index` of an array of the snapshot, by its stride:
//   const gpushare_head_view* head = GPUSHARE_AT(gpushare_head_view, s->heads, s->head_stride, i);
#define GPUSHARE_AT(type, array, stride, index)                   \
  ((const type*)(const void*)((const char*)(const void*)(array) + \
                              (size_t)(stride) * (size_t)(index)))

// The option of LC app `lc_app` beside kernel row `kernel_index` on split `split`; null without
// one.
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

// --- the plan ------------------------------------------------------------------------------------

typedef struct gpushare_planned_launch {
  gpushare_ticket task;        // a head, or a running task that gets one more part
  gpushare_ticket fused_with;  // FUSED: the other task
  int64_t blocks_max;          // 0: all; else a slice of at most so many (bytes for copies)
  int32_t count;               // tasks of its queue in a row, at most ready_count; 0: 1
  gpushare_form form;
  int32_t place;
  gpushare_lane_class lane_class;
  int32_t workers;         // WORKERS: 0 means all that the place holds
  gpushare_reason reason;  // NONE becomes USER_POLICY
  int32_t reserved[2];     // must be 0
} gpushare_planned_launch;

// Every part of `task` on `place` leaves but for workers_to_keep workers.
typedef struct gpushare_planned_eviction {
  gpushare_ticket task;
  int32_t place;
  int32_t workers_to_keep;
  gpushare_reason reason;
  int32_t reserved;  // must be 0
} gpushare_planned_eviction;

// Why a head waits; for the event log only.
typedef struct gpushare_planned_hold {
  gpushare_ticket task;
  int64_t value_ns;  // what was too large
  int64_t limit_ns;  // and the bound that it met
  gpushare_reason reason;
  int32_t reserved;  // must be 0
} gpushare_planned_hold;

// Where an LC app's next task goes when its submitter launches it by itself (the LC fast path).
typedef struct gpushare_lc_route {
  int32_t place;
  gpushare_lane_class lane_class;
  gpushare_bool fast_path;          // submitters may launch by themselves
  gpushare_bool evict_overlapping;  // evictable BE launches on overlapping places leave at once
} gpushare_lc_route;

// Filled by the policy. The library gives it with counts 0, entries zero, routes at their defaults
// (whole device, LC lane, fast path off) and replan_at_ns GPUSHARE_NEVER. An entry that names no
// head or running task, or a place that does not exist, or whose reserved fields are not 0, is
// dropped; it never harms the runtime.
typedef struct gpushare_plan {
  uint32_t struct_size;
  uint32_t launch_count;
  uint32_t eviction_count;
  uint32_t hold_count;
  gpushare_planned_launch* launches;     // GPUSHARE_PLAN_ACTIONS_MAX entries of room
  gpushare_planned_eviction* evictions;  // GPUSHARE_PLAN_ACTIONS_MAX
  gpushare_planned_hold* holds;          // GPUSHARE_PLAN_ACTIONS_MAX
  gpushare_lc_route* routes;             // one for each of lc_apps
  int64_t replan_at_ns;  // ask for another plan at this time even if nothing happens
} gpushare_plan;

// --- the table -----------------------------------------------------------------------------------

typedef struct gpushare_policy_table {
  uint32_t struct_size;
  uint32_t version;  // GPUSHARE_POLICY_VERSION; the _INIT macro sets it
  const char* name;  // copied; at most 63 bytes; must be given
  // Fills `plan`. Threads: the one that plans (the scheduler's, or the one that polls), one call at
  // a time. Must be given.
  void (*make_plan)(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan);
  // The table is no longer used: called once, when the policy is replaced or the runtime ends; may
  // be null.
  void (*destroy)(void* user);
  void* user;
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

// Changes the policy to the caller's own, between two plans.
// Threads: any. Owns: the table is copied; `user` must live until destroy is called, which happens
// only if this call succeeds. Blocks: until the pass of the flow in progress is done. Errors:
// INVALID_ARGUMENT no name or make_plan; UNIMPLEMENTED another version.
GPUSHARE_API gpushare_status gpushare_set_user_policy(
    gpushare_runtime* runtime, const gpushare_policy_table* table) GPUSHARE_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GPUSHARE_GPUSHARE_POLICY_H_
