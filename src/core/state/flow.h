// What the stages share: the state of one scheduler.
//
// Ownership: the members above the line are touched by submitters too and are atomics or immutable
// after creation; those below belong to the thread that runs Tick. A stage reads what the stage
// before it left here and nothing else; see the README for the order.

#ifndef GPUSHARE_SRC_CORE_STATE_FLOW_H_
#define GPUSHARE_SRC_CORE_STATE_FLOW_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/core/base/handoff_queue.h"
#include "src/core/base/latency_histogram.h"
#include "src/core/log/event_log.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/device.h"
#include "src/core/seams/policy.h"
#include "src/core/seams/snapshot.h"
#include "src/core/state/capsm_ledger.h"
#include "src/core/state/lanes.h"
#include "src/core/state/launch_table.h"
#include "src/core/state/lc_gate.h"
#include "src/core/state/options.h"
#include "src/core/state/tables.h"
#include "src/core/state/task.h"

namespace gpushare::core {

// Words of the submit ring that one Tick takes, and completions that it handles: bounds the time
// until an LC completion is seen while a flood comes in.
inline constexpr int kBatch = 256;
// A task has one word in the ring at a time, an explicit query two.
inline constexpr unsigned kRingWords = 1 << 18;
static_assert(kRingWords >= 2 * kMaxTasks + 2 * kMaxExplicitQueries);
// BE kernels with a row in the pair table; others are planned without pair knowledge.
inline constexpr int kMaxPairKernels = 64;

// A finished task whose callback is still to be run, without any lock.
struct Notice {
  CompletionCallback callback = nullptr;
  void* user = nullptr;
  CompletionRecord record;
};

// One measurement for the cost model.
struct Sample {
  Observation observation;
  CoResident beside;
  bool has_beside = false;
};

struct PlanBuffers {
  std::array<LcAppView, kMaxApps> lc_apps;
  std::array<BeAppView, kMaxApps> be_apps;
  std::array<App*, kMaxApps> lc_owner{};
  std::array<App*, kMaxApps> be_owner{};
  std::array<QueryView, kMaxActiveQueries> queries;
  std::array<HeadView, kMaxHeads> heads;
  std::array<RunningView, kMaxRunning> running;
  std::vector<PairOption> pairs;
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
  std::atomic<int64_t> strays{0};  // completions of launches that are not in flight
  LatencyHistogram eviction_latency;
  LatencyHistogram plan_time;
};

// Whether all of the launch was told to leave.
inline bool WasTold(const LcGate& gate, const Part& part) {
  return part.epoch != 0 && static_cast<int64_t>(gate.Epoch(part.lane) - part.leave_epoch) >= 0;
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
  // Read at every submit: on a line that is hardly ever written.
  alignas(64) std::atomic<bool> accepting{true};
  std::atomic<bool> quiesced{false};
  std::atomic<bool> device_lost{false};
  // LC callers may launch by themselves: off while quiesced, closed or lost.
  std::atomic<bool> fast_path{true};
  std::atomic<bool> bare{false};  // the policy is the reference 'bare'
  alignas(64) std::atomic<int32_t> open_regions{0};
  // Longest BE region that may begin now, from the last plan (0: none, LC work is active).
  std::atomic<int64_t> be_region_bound_ns{0};

  // ------------------------------------------------------------------ the thread that runs Tick
  // ---
  std::unique_ptr<CostModel> model;
  std::unique_ptr<Policy> policy;
  CapSmLedger ledger;
  TimeNs now_ns = 0;  // read once a Tick

  std::array<uint64_t, kBatch> inbox{};  // submit -> admit
  int inbox_count = 0;
  std::array<Task*, kBatch> fresh{};  // admit -> predict
  int fresh_count = 0;
  std::array<Sample, kBatch> samples;  // complete -> learn
  int sample_count = 0;

  std::array<Queue*, kMaxQueues> backlog{};  // queues with a head
  int backlog_count = 0;
  std::array<Task*, kMaxRunning> running_be{};
  int running_be_count = 0;
  std::array<Task*, kMaxInFlightLaunches> running_lc{};
  int running_lc_count = 0;
  int lanes_busy = 0;

  QueryState* first_query = nullptr;  // active queries by arrival
  QueryState* last_query = nullptr;
  int64_t queued_ns = 0;  // T_q
  // What BE apps had attained when they were last given a turn, as far as it has come (the start
  // tags of start-time fair queueing): no app is more than kFairCreditNs behind it.
  int64_t attained_floor_ns = 0;
  uint64_t next_sequence = 1;
  std::array<CopyState, 4> copies{};

  std::array<int32_t, kMaxCounters> free_counters{};
  int free_counter_count = 0;

  bool loss_told = false;  // the device's loss was handled
  bool dirty = true;       // something changed since the last plan
  bool planned = false;    // this Tick made a plan
  TimeNs replan_at_ns = kNever;
  TimeNs hang_check_ns = kNever;

  uint64_t tables_version = 0;  // of the dense indices below
  uint64_t model_version = 0;
  int lc_app_count = 0;
  int be_app_count = 0;
  std::array<const KernelDesc*, kMaxPairKernels> pair_kernels{};
  std::array<int16_t, kMaxKernels + 1> pair_row{};  // by KernelId, 0: none, else row + 1
  int pair_kernel_count = 0;
  bool pairs_stale = true;
  PlanBuffers buffers;

  std::array<DeviceCompletion, kBatch> completions;
  // launch -> whoever runs Tick: opaque work calls the caller's function, with no lock held.
  std::vector<LaunchRequest> deferred;
  // And back, where the device refused it.
  std::vector<DeviceCompletion> refused;
  std::vector<Notice> notices;  // complete -> whoever runs Tick

  void Emit(const EventRecord& record) const {
    if (options.events != nullptr) options.events->Append(record);
  }
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_FLOW_H_
