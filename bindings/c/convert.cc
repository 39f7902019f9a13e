// Conversions from the core's types to the ABI's; see convert.h.

#include "bindings/c/convert.h"

#include <algorithm>

namespace gpushare::abi {
namespace {

using core::CopyDirection;
using core::Form;
using core::Reason;
using core::Verdict;

// Enumerations with equal numbers on both sides: values are passed as they are.
static_assert(core::kHoldReasons == GPUSHARE_HOLD_REASONS);
static_assert(static_cast<int>(Form::kSegments) == GPUSHARE_FORM_SEGMENTS);
static_assert(static_cast<int>(CopyDirection::kPeer) == GPUSHARE_COPY_PEER);
static_assert(static_cast<int>(Verdict::kShutdown) == GPUSHARE_VERDICT_SHUTDOWN);
static_assert(static_cast<int>(Reason::kFillsGap) == GPUSHARE_REASON_FILLS_GAP);
static_assert(static_cast<int>(Reason::kTailCredit) == GPUSHARE_REASON_TAIL_CREDIT);
static_assert(static_cast<int>(Reason::kCoResident) == GPUSHARE_REASON_CO_RESIDENT);
static_assert(static_cast<int>(Reason::kHoldHeadroom) == GPUSHARE_REASON_HOLD_HEADROOM);
static_assert(static_cast<int>(Reason::kHoldLaunches) == GPUSHARE_REASON_HOLD_LAUNCHES);
static_assert(static_cast<int>(Reason::kHoldPlan) == GPUSHARE_REASON_HOLD_PLAN);
static_assert(static_cast<int>(Reason::kHoldTailCredit) == GPUSHARE_REASON_HOLD_TAIL_CREDIT);
static_assert(static_cast<int>(Reason::kHoldDuty) == GPUSHARE_REASON_HOLD_DUTY);
static_assert(static_cast<int>(Reason::kHoldLcPriority) == GPUSHARE_REASON_HOLD_LC_PRIORITY);
static_assert(static_cast<int>(Reason::kEvictForLc) == GPUSHARE_REASON_EVICT_FOR_LC);
static_assert(static_cast<int>(Reason::kEvictForQuota) == GPUSHARE_REASON_EVICT_FOR_QUOTA);
static_assert(static_cast<int>(Reason::kEvictForLcPriority) ==
              GPUSHARE_REASON_EVICT_FOR_LC_PRIORITY);
static_assert(static_cast<int>(Reason::kUserPolicy) == GPUSHARE_REASON_USER_POLICY);
static_assert(static_cast<int>(Reason::kDependencyFailed) == GPUSHARE_REASON_DEPENDENCY_FAILED);
static_assert(static_cast<int>(core::kLastEventType) == GPUSHARE_EVENT_NEXT_STATED);
static_assert(ToC(core::TaskKind::kOpaque) == GPUSHARE_TASK_OPAQUE);
static_assert(ToC(core::AppClass::kBestEffort) == GPUSHARE_CLASS_BEST_EFFORT);

gpushare_resource_demand ToC(const core::ResourceDemand& demand) {
  return {demand.issue, demand.tensor, demand.special, demand.dram, demand.l2};
}

void AddRefusals(const core::PtxCode& ptx, gpushare_kernel_info& out) {
  if (!ptx.worker.refusal.empty()) out.worker_refusal = ptx.worker.refusal.c_str();
  if (!ptx.slice.refusal.empty()) out.slice_refusal = ptx.slice.refusal.c_str();
  out.worker_refusal_line = ptx.worker.line;
  out.slice_refusal_line = ptx.slice.line;
}

}  // namespace

gpushare_completion_record ToC(const core::CompletionRecord& record) {
  gpushare_completion_record out = GPUSHARE_COMPLETION_RECORD_INIT;
  out.verdict = static_cast<int32_t>(record.verdict);
  out.ticket.value = record.ticket.value;
  out.query.value = record.query.value;
  out.app_id = record.app.value;
  out.queue_id = record.queue.value;
  out.kernel_id = record.kernel.value;
  out.kind = ToC(record.kind);
  out.submit_ns = record.submit_ns;
  out.admit_ns = record.admit_ns;
  out.launch_ns = record.launch_ns;
  out.start_ns = record.start_ns;
  out.end_ns = record.end_ns;
  out.complete_ns = record.complete_ns;
  out.predicted_ns = record.predicted_ns;
  out.predicted_error_ns = record.predicted_error_ns;
  out.measured_ns = record.measured_ns;
  out.evicted_ns = record.evicted_ns;
  out.block_tasks = record.block_tasks;
  out.evictions = record.evictions;
  out.launches = record.launches;
  out.form = static_cast<int32_t>(record.form);
  out.place = record.place;
  out.launch_reason = static_cast<int32_t>(record.launch_reason);
  out.hold_reason = static_cast<int32_t>(record.hold_reason);
  out.beside_kernel_id = record.beside.value;
  out.error_code = record.error_code;
  out.failed_dependency.value = record.failed_dependency.value;
  out.failed_dependency_verdict = static_cast<int32_t>(record.failed_dependency_verdict);
  return out;
}

gpushare_latency_summary ToC(const core::LatencySummary& summary) {
  return {summary.count, summary.p50_ns, summary.p99_ns, summary.max_ns};
}

gpushare_runtime_stats ToC(const core::SchedulerStats& stats, bool simulated, int app_count) {
  gpushare_runtime_stats out = GPUSHARE_RUNTIME_STATS_INIT;
  out.simulated = simulated ? 1 : 0;
  out.ticks = stats.ticks;
  out.plans = stats.plans;
  out.launches = stats.launches;
  out.fast_path_launches = stats.fast_path_launches;
  out.evictions = stats.evictions;
  out.evictions_blocked = stats.evictions_blocked;
  out.hung = stats.hung;
  out.busy_sm_ns = stats.busy_sm_ns;
  out.tasks_pending = stats.tasks_pending;
  out.prediction_samples = stats.prediction_samples;
  out.prediction_error = stats.prediction_error;
  out.eviction_latency = ToC(stats.eviction_latency);
  out.plan_time = ToC(stats.plan_time);
  out.device_lost = stats.device_lost ? 1 : 0;
  out.app_count = app_count;
  return out;
}

gpushare_app_stats ToC(const core::AppStats& stats) {
  gpushare_app_stats out = GPUSHARE_APP_STATS_INIT;
  out.app_class = ToC(stats.app_class);
  out.submitted = stats.submitted;
  out.completed = stats.completed;
  out.failed = stats.failed;
  out.dropped = stats.dropped;
  out.cancelled = stats.cancelled;
  out.rejected = stats.rejected;
  out.evictions = stats.evictions;
  out.queue_depth = stats.queue_depth;
  out.device_ns = stats.device_ns;
  out.work_ns = stats.work_ns;
  out.block_tasks = stats.block_tasks;
  out.latency = ToC(stats.latency);
  out.queries_open = stats.queries_open;
  out.queries_idle = stats.queries_idle;
  out.regions_open = stats.regions_open;
  out.regions_overdue = stats.regions_overdue;
  return out;
}

gpushare_app_guarantee ToC(const core::AppGuarantee& guarantee) {
  gpushare_app_guarantee out = GPUSHARE_APP_GUARANTEE_INIT;
  out.app_class = ToC(guarantee.app_class);
  out.target_ns = guarantee.promise.target_ns;
  out.p99_bound = guarantee.promise.p99_bound;
  out.p50_bound = guarantee.promise.p50_bound;
  out.queries = guarantee.queries;
  out.p50_ns = guarantee.p50_ns;
  out.p99_ns = guarantee.p99_ns;
  out.p99_over_alone = guarantee.p99_over_alone.value_or(0);
  out.late_share = guarantee.late_share.value_or(0);
  out.p99_alone_ns = guarantee.promise.p99_alone_ns;
  out.p99_over_alone_known = guarantee.p99_over_alone ? 1 : 0;
  out.late_share_known = guarantee.late_share ? 1 : 0;
  out.p99_alone_estimate_ns = guarantee.shadow_p99_ns;
  out.p99_alone_error = guarantee.shadow_p99_error;
  out.bound_lost = guarantee.bound_lost ? 1 : 0;
  out.target_lost = guarantee.target_lost ? 1 : 0;
  out.yielded_ns = guarantee.yielded_ns;
  out.next_lapsed = guarantee.next_lapsed;
  out.token_streams = guarantee.token_streams;
  out.first_tokens = guarantee.first_tokens;
  out.ttft_p50_ns = guarantee.ttft_p50_ns;
  out.ttft_p99_ns = guarantee.ttft_p99_ns;
  out.token_distances = guarantee.token_distances;
  out.tbt_p50_ns = guarantee.tbt_p50_ns;
  out.tbt_p99_ns = guarantee.tbt_p99_ns;
  out.partition_sms = guarantee.partition_sms;
  out.response_bound_ns = guarantee.response_bound_ns;
  out.response_ns_max = guarantee.response_ns_max;
  out.jobs = guarantee.jobs;
  out.deadlines_missed = guarantee.deadlines_missed;
  out.overruns = guarantee.overruns;
  out.tail_credit = guarantee.tail_credit;
  out.queries_late_for_be = guarantee.queries_late_for_be;
  std::copy(guarantee.held_ns.begin(), guarantee.held_ns.end(), out.held_ns);
  return out;
}

gpushare_event ToC(const core::EventRecord& record) {
  gpushare_event out = GPUSHARE_EVENT_INIT;
  out.type = record.type;
  out.time_ns = record.time_ns;
  out.id = record.id;
  out.a = record.a;
  out.b = record.b;
  out.c = record.c;
  out.d = record.d;
  out.app_id = record.app;
  out.kernel_id = record.kernel;
  out.place = record.place;
  out.reason = record.reason;
  out.detail = record.detail;
  out.app_class = record.app_class + 1;
  return out;
}

gpushare_kernel_info ToC(const core::KernelDesc& kernel) {
  const core::SimulationRecord& record = kernel.simulation;
  gpushare_kernel_info out = GPUSHARE_KERNEL_INFO_INIT;
  out.kind = ToC(kernel.kind());
  out.threads_per_block = kernel.resources.threads_per_block;
  out.registers_per_thread = kernel.resources.registers_per_thread;
  out.shared_memory_bytes = kernel.resources.shared_memory_bytes;
  out.workers_per_sm_max = kernel.resources.workers_per_sm_max;
  out.evictable = kernel.evictable ? 1 : 0;
  out.confinable = kernel.confinable ? 1 : 0;
  out.roomy = kernel.resources.roomy ? 1 : 0;
  out.block_task_ns = record.block_task_ns;
  out.yield_interval_ns = kernel.yield_interval_ns;
  out.demand = ToC(record.demand);
  int64_t chain_ns = 0;
  for (const core::GraphNode& node : record.nodes) {
    out.node_count += node.repeat;
    chain_ns += (node.duration_ns + record.node_gap_ns) * node.repeat;
  }
  if (out.node_count > 0) chain_ns -= record.node_gap_ns;  // no gap after the last
  out.solo_ns = kernel.solo_hint_ns > 0 ? kernel.solo_hint_ns : chain_ns;
  if (const core::PtxCode* const ptx = kernel.ptx(); ptx != nullptr) AddRefusals(*ptx, out);
  const core::GraphCode* const graph = kernel.graph();
  if (graph == nullptr || !kernel.id) return out;
  const core::GraphCut& cut = graph->cut;
  out.segment_count = cut.segments;
  out.evictable_segments = cut.evictable_segments;
  out.longest_segment_ns = cut.longest_ns;
  if (!cut.whole_reason.empty()) out.whole_reason = cut.whole_reason.c_str();
  return out;
}

}  // namespace gpushare::abi
