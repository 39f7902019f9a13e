// Answers to applications: a task's completion record, and the statistics of an app and of the
// scheduler.
//
// Plain data. The flow writes a completion record until the task is complete; a caller reads a
// copy. Statistics are copies made by Scheduler::Stats and StatsOf. Threads: any.

#ifndef GPUSHARE_SRC_CORE_STATE_RECORDS_H_
#define GPUSHARE_SRC_CORE_STATE_RECORDS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/promise/promise.h"

namespace gpushare::core {

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
  int64_t measured_ns = 0;  // time on the device, without the time while it was evicted
  int64_t evicted_ns = 0;   // between an eviction and the next launch
  int32_t evictions = 0;
  int32_t launches = 0;
  int64_t block_tasks = 0;      // executed; equals what was asked when verdict is kOk
  Form form = Form::kOriginal;  // of the last launch
  PlaceIndex place = kWholeDevice;
  Reason launch_reason = Reason::kNone;
  Reason hold_reason = Reason::kNone;  // the last reason to wait, kNone if it never did
  KernelId beside;                     // the first kernel that ran beside it, 0 none
  // Native code (CUresult) of the call that failed it, or what it waited for; 0: none did.
  int32_t error_code = 0;
  // kFailed: the first ticket that it waited for whose task did not end OK, and how that task
  // ended. 0: it failed by itself.
  TicketId failed_dependency;
  Verdict failed_dependency_verdict = Verdict::kPending;
};

// Runs once, on the thread that completes the task (the scheduler's, or Poll's caller), with no
// lock held. It may submit; it must not wait.
using CompletionCallback = void (*)(void* user, const CompletionRecord& record);

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
  // Of now. Idle and overdue ones are over the app's idle timeout and count as no load.
  int64_t queries_open = 0;  // begun explicitly and not done
  int64_t queries_idle = 0;
  int64_t regions_open = 0;
  int64_t regions_overdue = 0;
};

// What an app was promised, and what it got. Of an LC app over a window of its last 4,096 to 8,192
// queries; of a BE app since it was created.
struct AppGuarantee {
  AppId app;
  AppClass app_class = AppClass::kBestEffort;
  Promise promise;
  int64_t queries = 0;  // in the window
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
  std::optional<double> p99_over_alone;  // none: p99 alone is unknown, or no query has ended
  // Over one query on an idle device; 0: that is unknown. The median alone is at least that long,
  // so this is at least the median over the median alone.
  double p50_over_solo = 0;
  // Of the window: above the target or the bound; none: neither is known, or no query has ended.
  std::optional<double> late_share;
  double tail_credit = 0;           // queries that BE work may still make late
  int64_t queries_late_for_be = 0;  // since the app was created: late, and met a task on credit
  std::array<int64_t, kHoldReasons> held_ns{};  // BE: time that its queue heads were held
  // LC, beside the queue that it would have alone (evidence/shadow.h): how far it is behind, the
  // p99 there, and the queries since it was created that were late and are not late there.
  int64_t lag_ns = 0;
  int64_t shadow_p99_ns = 0;    // 0: no query has ended
  double shadow_p99_error = 0;  // standard error, as a share of it
  bool bound_lost = false;      // the p99 bound is missed even alone (Promise::BoundIsLost)
  bool target_lost = false;     // the target is (Promise::TargetIsLost)
  int64_t queries_late_not_alone = 0;
  // Statements of a next query (TaskSpec::next_within_ns) whose time passed without one.
  int64_t next_lapsed = 0;
  // Of its token streams: the open ones, and of the last tokens the times from an arrival to the
  // first one, and between two.
  int64_t token_streams = 0;
  int64_t first_tokens = 0;
  int64_t ttft_p50_ns = 0;
  int64_t ttft_p99_ns = 0;
  int64_t token_distances = 0;
  int64_t tbt_p50_ns = 0;
  int64_t tbt_p99_ns = 0;
  int64_t yielded_ns = 0;  // to LC apps of higher priority, since it was created
  // Of a periodic app: its partition in the plan in force (-1: it has none), and since that plan
  // the jobs that have ended, were late, and ran beyond their worst case.
  int32_t partition = -1;
  int32_t partition_sms = 0;
  int64_t response_bound_ns = 0;
  int64_t response_ns_max = 0;
  int64_t jobs = 0;
  int64_t deadlines_missed = 0;
  int64_t overruns = 0;
};

// The answer of a plan of partitions.
struct PartitionSummary {
  int32_t partitions = 0;
  int32_t partition_sms = 0;  // of all of them
  int32_t rest_sms = 0;       // that BE work and other LC apps have at all times
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
  double capsms_used = 0;            // by launches on the device
  int32_t capsms_reserved = 0;       // for LC apps
  int64_t plan_entries_dropped = 0;  // entries that asked for what cannot be done
  int64_t predictions_refused = 0;   // answers of a user cost model that were not used
  int64_t stray_completions = 0;     // of launches not in flight: reported twice, or too late
  bool device_lost = false;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_RECORDS_H_
