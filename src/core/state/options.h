// Requests of applications: the options of a scheduler, an app and a reservation, and the
// specification of a task.
//
// Plain data below the scheduler that takes it. Submit copies what a task needs; nothing here is
// kept by reference beyond the call. Threads: any.

#ifndef GPUSHARE_SRC_CORE_STATE_OPTIONS_H_
#define GPUSHARE_SRC_CORE_STATE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/partitions.h"
#include "src/core/seams/work.h"
#include "src/core/state/records.h"

namespace gpushare::core {

class EventSink;  // seams/event_sink.h

// How the scheduler's own thread waits on a device in real time.
enum class WaitMode : uint8_t {
  kBalanced = 0,  // sleeps until shortly before the predicted end of what runs, and parks when idle
  kSpin = 1,      // spins while anything is in flight, and for kSpinIdleNs after
};

// When the sides of splits are made.
enum class PlacesMode : uint8_t {
  kOnDemand = 0,  // when a plan first wants them; they end when none has for long
  kEager = 1,     // all at start, for good
};

struct SchedulerOptions {
  // Deadline after which a launch that was predicted to take d is reported hung:
  // max(hang_floor_ns, hang_factor x d).
  int64_t hang_floor_ns = int64_t{10} * 1000 * 1000 * 1000;
  double hang_factor = 20;
  // Time from the end of the last LC query until BE returns.
  int64_t be_return_hysteresis_ns = 2000;
  int32_t splits_max = kMaxSplits;  // split candidates to create; 0: no partitions
  PlacesMode places = PlacesMode::kOnDemand;
  int64_t place_idle_ns = kPlaceIdleNs;  // after which a place that no plan wanted ends
  WaitMode wait_mode = WaitMode::kBalanced;
  // Most time that one wait of a caller for an LC task spins, in real time. 0: by wait_mode, below
  // 0: it does not spin.
  int64_t caller_spin_ns = 0;
  EventSink* events = nullptr;  // null: no event log; must outlive the scheduler
  // Gets sentences about errors of the application's functions, on any thread, with no lock held.
  std::function<void(const std::string&)> report;
};

struct AppOptions {
  std::string name;
  AppClass app_class = AppClass::kBestEffort;
  Promise promise = {};    // LC
  int64_t solo_ns = 0;     // LC: hint for one query's duration alone
  bool drop_late = false;  // LC: a query too late to answer is dropped (verbs/late_queries.h)
  double weight = 1;       // BE
  int32_t tasks_max = kDefaultTasksPerApp;
  int64_t idle_timeout_ns = kDefaultIdleTimeoutNs;  // kNever: none
  int32_t priority = 0;                             // LC: among LC apps; higher goes first
  // LC: most time that a task at the head of its queue waits for queries of higher priority, and
  // then its graphs run in segments (docs/lc-priority.md). 0: it does not wait; kNever: no limit.
  int64_t yield_ns_max = 0;

  // LC: the p99 bound and the p99 alone are of the distances between tokens (token_streams.h).
  bool bounds_tokens = false;

  RealTimeOptions real_time = {};  // LC

  bool Yields() const { return yield_ns_max > 0; }
};

// What an app states anew; what is left out stays. Of an LC app the promise and the priority, of a
// BE app the weight.
struct AppUpdate {
  PromiseUpdate promise = {};
  std::optional<double> weight = {};
  std::optional<int32_t> priority = {};
};

struct ReservationOptions {
  AppId app;
  int32_t capsms = 0;   // LC: reserved; BE: quota. 0 removes it
  bool packed = false;  // whole SMs that nobody else uses
};

struct PartitionOptions {
  bool shares = false;  // apps may share a partition
  // BE work may use an idle partition if its eviction takes at most this long; 0: never.
  int64_t slack_eviction_ns = 0;
  int32_t reserved_sms = 0;  // of whole groups, that no partition gets
};

struct TaskSpec {
  QueueId queue;
  QueryId query;          // 0: a query of its own (LC), none (BE)
  KernelId kernel;        // kKernel, kGraph, kLibrary; submit resolves it into work.kernel
  Work work;              // `kernel` in it is ignored
  TimeNs arrival_ns = 0;  // intended arrival of an implicit query; 0: now
  // LC: the app's next query follows within this time of this one's end, kMaxNextWithinNs at most;
  // kNoNextQuery: none does; 0: nothing is stated. Of a query's tasks, the last one that states
  // something counts.
  int64_t next_within_ns = 0;
  double input_size = 0;  // LC, of an implicit query; 0: unknown
  absl::Span<const TicketId> wait_tickets;
  absl::Span<void* const> wait_events;
  void* signal_event = nullptr;
  CompletionCallback callback = nullptr;
  void* callback_user = nullptr;
  bool detached = false;  // the ticket is released by itself once the task is complete
};

struct RegionSpec {
  // Upper bound on its time on the device; 0: as earlier regions of the queue took
  // (Queue::region_ns), or kFirstRegionNs.
  int64_t bound_ns = 0;
  TimeNs arrival_ns = 0;       // LC: of its query; 0: called_ns
  TimeNs called_ns = 0;        // when the caller asked first; 0: now
  double input_size = 0;       // LC: of its query; 0: unknown
  int64_t next_within_ns = 0;  // LC: as of a task
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_OPTIONS_H_
