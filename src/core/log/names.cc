// One table for each enumeration; see names.h. The compiler checks that each enumerator has exactly
// one row and that rows stand in the order of their values.

#include "src/core/log/names.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "src/core/base/types.h"
#include "src/core/log/event_log.h"
#include "src/core/seams/device.h"

namespace gpushare::core {
namespace {

template <class Value>
struct NameRow {
  Value value;
  const char* name;  // the word of the C ABI
};

struct ReasonRow {
  Reason value;
  const char* name;    // the word of the C ABI
  const char* phrase;  // for traces
};

constexpr NameRow<AppClass> kAppClasses[] = {
    {AppClass::kLatencyCritical, "latency_critical"},
    {AppClass::kBestEffort, "best_effort"},
};

constexpr NameRow<TaskKind> kTaskKinds[] = {
    {TaskKind::kKernel, "kernel"}, {TaskKind::kGraph, "graph"},   {TaskKind::kLibrary, "library"},
    {TaskKind::kMemcpy, "memcpy"}, {TaskKind::kOpaque, "opaque"},
};

constexpr NameRow<Form> kForms[] = {
    {Form::kOriginal, "original"}, {Form::kWorkers, "workers"}, {Form::kSlice, "slice"},
    {Form::kFused, "fused"},       {Form::kGraph, "graph"},     {Form::kLibrary, "library"},
    {Form::kMemcpy, "memcpy"},     {Form::kOpaque, "opaque"},   {Form::kSegments, "segments"},
};

constexpr NameRow<Verdict> kVerdicts[] = {
    {Verdict::kPending, "pending"},        {Verdict::kOk, "ok"},
    {Verdict::kFailed, "failed"},          {Verdict::kCancelled, "cancelled"},
    {Verdict::kDropped, "dropped"},        {Verdict::kTimedOut, "timed_out"},
    {Verdict::kDeviceLost, "device_lost"}, {Verdict::kShutdown, "shutdown"},
};

constexpr NameRow<Outcome> kOutcomes[] = {
    {Outcome::kFinished, "finished"},
    {Outcome::kEvicted, "evicted"},
    {Outcome::kFailed, "failed"},
    {Outcome::kDeviceLost, "device lost"},
};

constexpr NameRow<EventType> kEventTypes[] = {
    {EventType::kNone, "none"},
    {EventType::kAppCreated, "app_created"},
    {EventType::kSubmitted, "submitted"},
    {EventType::kAdmitted, "admitted"},
    {EventType::kRejected, "rejected"},
    {EventType::kLaunched, "launched"},
    {EventType::kFastPathLaunched, "fast_path_launched"},
    {EventType::kEvicted, "evicted"},
    {EventType::kPartDone, "part_done"},
    {EventType::kCompleted, "completed"},
    {EventType::kHeld, "held"},
    {EventType::kQueryBegun, "query_begun"},
    {EventType::kQueryEnded, "query_ended"},
    {EventType::kQueueDepth, "queue_depth"},
    {EventType::kQuotaChanged, "quota_changed"},
    {EventType::kDeviceLost, "device_lost"},
    {EventType::kLaneAbandoned, "lane_abandoned"},
    {EventType::kWaits, "waits"},
    {EventType::kQueryBeginCalled, "query_begin_called"},
    {EventType::kQueryEndCalled, "query_end_called"},
    {EventType::kChoice, "choice"},
    {EventType::kChoiceShift, "choice_shift"},
    {EventType::kAppUpdated, "app_updated"},
    {EventType::kNextStated, "next_stated"},
};

constexpr ReasonRow kReasons[] = {
    {Reason::kNone, "none", "none"},
    {Reason::kLcFirst, "lc_first", "LC first"},
    {Reason::kFastPath, "fast_path", "fast path"},
    {Reason::kBaseline, "baseline", "baseline"},
    {Reason::kIdleDevice, "idle_device", "idle device"},
    {Reason::kFitsHeadroom, "fits_headroom", "fits every headroom"},
    {Reason::kFitsBlockingBudget, "fits_blocking_budget", "fits every blocking budget"},
    {Reason::kBesidePartition, "beside_partition", "beside the LC partition"},
    {Reason::kElasticReturn, "elastic_return", "back on the LC side"},
    {Reason::kResume, "resume", "resumed"},
    {Reason::kQuota, "quota", "within its quota"},
    {Reason::kFillsGap, "fills_gap", "cut to fill a gap"},
    {Reason::kTailCredit, "tail_credit", "on credit of the tail accounts"},
    {Reason::kCoResident, "co_resident", "shares SMs with a kernel that suits it"},
    {Reason::kHoldHeadroom, "hold_headroom", "held: longer than a headroom"},
    {Reason::kHoldBlocking, "hold_blocking", "held: blocks longer than a budget"},
    {Reason::kHoldLcActive, "hold_lc_active", "held: LC work is on its SMs"},
    {Reason::kHoldQueuedTime, "hold_queued_time", "held: too much time is queued"},
    {Reason::kHoldCopies, "hold_copies", "held: enough copies run"},
    {Reason::kHoldWindow, "hold_window", "held: the window is full"},
    {Reason::kHoldCapSm, "hold_capsm", "held: no CapSM is left"},
    {Reason::kHoldHysteresis, "hold_hysteresis", "held: LC drained only just now"},
    {Reason::kHoldQuiesced, "hold_quiesced", "held: quiesced"},
    {Reason::kHoldLane, "hold_lane", "held: no lane can take it"},
    {Reason::kHoldParts, "hold_parts", "held: it has enough launches"},
    {Reason::kHoldRunning, "hold_running", "held: enough BE tasks run"},
    {Reason::kHoldCounters, "hold_counters", "held: no claim counter is free"},
    {Reason::kHoldLaunches, "hold_launches", "held: enough launches are in flight"},
    {Reason::kHoldPlan, "hold_plan", "held: its plan entry was dropped"},
    {Reason::kHoldTailCredit, "hold_tail_credit", "held: a tail account lacks credit"},
    {Reason::kHoldDuty, "hold_duty", "held: BE work has had its share of time"},
    {Reason::kHoldLcPriority, "hold_lc_priority", "held: yields to a higher priority"},
    {Reason::kEvictForLc, "evict_for_lc", "evicted for LC"},
    {Reason::kEvictForReservation, "evict_for_reservation", "evicted for a reservation"},
    {Reason::kEvictForLayout, "evict_for_layout", "evicted for another layout"},
    {Reason::kEvictForQuota, "evict_for_quota", "evicted: its quota shrank"},
    {Reason::kEvictForLcPriority, "evict_for_lc_priority", "evicted for a higher priority"},
    {Reason::kUserPolicy, "user_policy", "user policy"},
    {Reason::kDependencyFailed, "dependency_failed", "failed: what it waited for did not end OK"},
};

// The row of `number`, or null. Linear: the longest table has 35 rows.
template <class Row, size_t count>
constexpr const Row* FindRow(const Row (&rows)[count], int64_t number) {
  for (const Row& row : rows) {
    if (static_cast<int64_t>(row.value) == number) return &row;
  }
  return nullptr;
}

template <class Row, size_t count>
const char* NameIn(const Row (&rows)[count], int64_t number) {
  const Row* row = FindRow(rows, number);
  return row == nullptr ? "unknown" : row->name;
}

// Whether `value` is an enumerator. GCC and Clang write any other value as a cast, "(Form)9", after
// the "value = " of the function's signature.
template <auto value>
constexpr bool IsEnumerator() {
  constexpr std::string_view signature = __PRETTY_FUNCTION__;
  constexpr std::string_view key = "value = ";
  return signature[signature.find(key) + key.size()] != '(';
}
static_assert(IsEnumerator<Form::kOpaque>() && !IsEnumerator<static_cast<Form>(9)>(),
              "the compiler writes signatures in another way");

// Whether exactly the enumerators from 0 to `last` have a row.
template <class Value, int last, class Row, size_t count>
constexpr bool HasRowForEach(const Row (&rows)[count]) {
  return [&]<size_t... number>(std::index_sequence<number...>) {
    return ((IsEnumerator<static_cast<Value>(number)>() ==
             (FindRow(rows, static_cast<int64_t>(number)) != nullptr)) &&
            ...);
  }
  (std::make_index_sequence<static_cast<size_t>(last) + 1>());
}

template <class Row, size_t count>
constexpr bool IsAscending(const Row (&rows)[count]) {
  for (size_t i = 1; i < count; ++i) {
    if (rows[i - 1].value >= rows[i].value) return false;
  }
  return true;
}

constexpr int kByteMax = 255;  // the enumerations are bytes
static_assert(HasRowForEach<AppClass, kByteMax>(kAppClasses) && IsAscending(kAppClasses));
static_assert(HasRowForEach<TaskKind, kByteMax>(kTaskKinds) && IsAscending(kTaskKinds));
static_assert(HasRowForEach<Form, kByteMax>(kForms) && IsAscending(kForms));
static_assert(HasRowForEach<Verdict, kByteMax>(kVerdicts) && IsAscending(kVerdicts));
static_assert(HasRowForEach<Outcome, kByteMax>(kOutcomes) && IsAscending(kOutcomes));
static_assert(HasRowForEach<Reason, kByteMax>(kReasons) && IsAscending(kReasons));
static_assert(HasRowForEach<EventType, kByteMax>(kEventTypes) && IsAscending(kEventTypes));

}  // namespace

const char* AppClassName(int64_t app_class) { return NameIn(kAppClasses, app_class); }
const char* TaskKindName(int64_t kind) { return NameIn(kTaskKinds, kind); }
const char* FormName(int64_t form) { return NameIn(kForms, form); }
const char* VerdictName(int64_t verdict) { return NameIn(kVerdicts, verdict); }
const char* ReasonName(int64_t reason) { return NameIn(kReasons, reason); }
const char* EventTypeName(int64_t type) { return NameIn(kEventTypes, type); }

const char* ReasonPhrase(int64_t reason) {
  const ReasonRow* row = FindRow(kReasons, reason);
  return row == nullptr ? "unknown" : row->phrase;
}

const char* OutcomePhrase(int64_t outcome) { return NameIn(kOutcomes, outcome); }

}  // namespace gpushare::core
