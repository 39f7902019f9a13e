// See reservations_rig.h.

#include "tests/cuda/reservations_rig.h"

#include <chrono>
#include <thread>
#include <utility>

namespace gpushare::cuda {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000 * kUs;
constexpr int64_t kPatienceNs = 3'000 * kMs;  // for one wait

// 96 MB of records: 132 SMs x 0.6 s of block tasks of 50 us are 1.6 million.
constexpr uint32_t kRecordsMax = 4'000'000;

// A block task of a worker ends, and two segments of two nodes end, well within 300 us.
constexpr uint32_t kBlockTaskNs = 100'000;
constexpr uint32_t kNodeNs = 50'000;
constexpr int kNodes = 20;
constexpr int kRounds = 10;  // block tasks of a BE task, a worker of the whole GPU
// Of a fused one, a worker of so many SMs: with a quota of them it takes less than an LC kernel, so
// that the next one finds another task.
constexpr int kFusedTaskSms = 16;
constexpr int kFusedRounds = 8;

// Few blocks, so that a query takes as long on few SMs as on all. A fused kernel fills the device:
// its blocks take ten turns, and its leader has an SM.
constexpr int kLcBlocks = 64;
constexpr int kLcTurns = 10;
constexpr uint32_t kLcBlockTaskNs = kFusedQueryNs / kKernelsPerQuery / kLcTurns;
constexpr int kQueriesAlone = 30;
constexpr int kQuietQueries = 4;  // before each burst

// Of the pair: the BE part takes no time from the LC part, as both only spin.
constexpr double kDurationRatio = 1.02;

int WorkersPerSm(Work work) {
  if (work == Work::kDenseFused) return kDenseFusedWorkersPerSm;
  return work == Work::kWorkers || work == Work::kFused ? 1 : kDenseWorkersPerSm;
}

void SetFunctions(const gpushare_kernel_variants& made, gpushare_kernel_options& options) {
  options.original_function = made.original_function;
  options.worker_function = made.worker_function;
  options.slice_function = made.slice_function;
  options.threads_per_block = static_cast<int32_t>(made.threads_per_block);
  options.dynamic_shared_memory_bytes = static_cast<int32_t>(made.dynamic_shared_bytes);
}

}  // namespace

const char* NameOf(Work work) {
  constexpr std::array<const char*, 6> kNames = {"workers", "dense workers", "segments",
                                                 "fixed",   "fused",         "dense fused"};
  return kNames[static_cast<size_t>(work)];
}

bool IsFusedWork(Work work) { return work == Work::kFused || work == Work::kDenseFused; }

Rig::Rig(const char* policy, Work work, const char* device)
    : work_(work), simulated_(std::string(device) == "sim") {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = device;
  options.policy = policy;
  options.drive = simulated_ ? GPUSHARE_DRIVE_POLL : GPUSHARE_DRIVE_THREAD;
  options.shutdown_timeout_ns = kPatienceNs;
  options.splits_max = IsFusedWork(work) ? -1 : 0;
  if (!Check(gpushare_runtime_create(&options, &runtime_))) return;
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  if (!Check(gpushare_device_info_get(runtime_, &info))) return;
  sms_ = info.sm_count;
  if (!simulated_ && !MakeLog(kRecordsMax, &log_)) {
    Fail(GPUSHARE_RESOURCE_EXHAUSTED, "The log finds no device memory.");
    return;
  }
  MakeApps();
  if (ok()) MakeKernels();
  for (int query = 0; ok() && query < kQueriesAlone; ++query) {
    alone_ns_.push_back(RunQuery(1, false));
    IdleFor(kMs, false);
  }
  run_ = {};
}

Rig::~Rig() {
  if (runtime_ != nullptr) gpushare_runtime_shutdown(runtime_, NowNs() + kPatienceNs);
  for (const gpushare_ticket ticket : be_tickets_) {
    if (ticket.value != 0) gpushare_ticket_release(runtime_, ticket);
  }
  gpushare_fused_kernel_release(pair_);
  gpushare_kernel_release(be_kernel_);
  gpushare_kernel_release(lc_kernel_);
  for (gpushare_queue* queue : be_queues_) gpushare_queue_release(queue);
  gpushare_queue_release(lc_queue_);
  gpushare_app_release(be_app_);
  gpushare_app_release(lc_app_);
  gpushare_runtime_release(runtime_);
  DestroyRecordingChain(graph_);
  if (!simulated_) FreeLog(log_);
}

bool Rig::Check(gpushare_status status) {
  if (status != GPUSHARE_OK) Fail(status, gpushare_last_error_message());
  return ok();
}

void Rig::Fail(gpushare_status status, const std::string& reason) {
  if (!ok()) return;  // the first reason is the cause
  status_ = status;
  reason_ = reason;
}

void Rig::MakeApps() {
  gpushare_app_options lc = GPUSHARE_APP_OPTIONS_INIT;
  lc.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  lc.name = "service";
  if (IsFusedWork(work_)) {
    lc.target_ns = kFusedTargetNs;
  } else {
    lc.p99_bound = 1.5;
  }
  lc.solo_ns = query_ns();
  lc.p99_alone_ns = query_ns() + 100 * kUs;
  gpushare_app_options be = GPUSHARE_APP_OPTIONS_INIT;
  be.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  be.name = "batch";
  if (!Check(gpushare_app_create(runtime_, &lc, &lc_app_)) ||
      !Check(gpushare_app_create(runtime_, &be, &be_app_)) ||
      !Check(gpushare_queue_create(lc_app_, &lc_queue_))) {
    return;
  }
  for (gpushare_queue*& queue : be_queues_) {
    if (!Check(gpushare_queue_create(be_app_, &queue))) return;
  }
}

void Rig::MakeKernels() {
  gpushare_kernel_variants made = {};
  gpushare_kernel_variants large = {};
  if (!simulated_ && (gpushare_test_record_variants(&made) != 0 ||
                      gpushare_test_record_large_variants(&large) != 0)) {
    return Fail(GPUSHARE_INTERNAL, "The recording kernels do not load.");
  }
  RegisterLc(IsFusedWork(work_) ? large : made);
  if (ok()) RegisterBe(made);
  if (ok() && IsFusedWork(work_)) RegisterPair();
}

void Rig::RegisterLc(const gpushare_kernel_variants& made) {
  lc_blocks_ = IsFusedWork(work_) ? (sms_ - 1) * kLcTurns : kLcBlocks;
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  gpushare_kernel_options lc = GPUSHARE_KERNEL_OPTIONS_INIT;
  lc.name = "query_kernel";
  lc.solo_ns = query_ns() / kKernelsPerQuery;
  SetFunctions(made, lc);
  lc.evictable = GPUSHARE_CHOICE_NO;
  if (IsFusedWork(work_)) {
    record.demand.tensor = 0.9;
    record.block_task_ns = kLcBlockTaskNs;
    lc.simulation = &record;
    lc.workers_per_sm_max = 1;
    lc.evictable = GPUSHARE_CHOICE_YES;
    lc.dynamic_shared_memory_bytes = kLargeSharedBytes;
  }
  Check(gpushare_kernel_register(runtime_, &lc, &lc_kernel_));
}

void Rig::RegisterBe(const gpushare_kernel_variants& made) {
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.demand.issue = 0.1;
  be_params_ = {log_, work_ == Work::kSegments ? kNodeNs : kBlockTaskNs, kBeTag};
  gpushare_kernel_options be = GPUSHARE_KERNEL_OPTIONS_INIT;
  be.name = "batch_work";
  if (work_ == Work::kSegments) {
    graph_ = MakeRecordingChain(kNodes, sms_, be_params_);
    if (graph_ == nullptr) return Fail(GPUSHARE_INTERNAL, "The graph cannot be captured.");
    be.kind = GPUSHARE_TASK_GRAPH;
    be.graph = graph_;
    be.solo_ns = int64_t{kNodes} * kNodeNs;
  } else {
    SetFunctions(made, be);
    record.block_task_ns = kBlockTaskNs;
    be.simulation = &record;
    be.workers_per_sm_max = WorkersPerSm(work_);
    be.evictable = work_ == Work::kFixed ? GPUSHARE_CHOICE_NO : GPUSHARE_CHOICE_YES;
    be.confinable = work_ == Work::kFixed ? GPUSHARE_CHOICE_NO : GPUSHARE_CHOICE_YES;
  }
  if (!Check(gpushare_kernel_register(runtime_, &be, &be_kernel_))) return;
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  if (!Check(gpushare_kernel_info_by_name(runtime_, be.name, &info))) return;
  if (work_ == Work::kSegments && info.segment_count < 2) {
    Fail(GPUSHARE_INTERNAL, std::string("The graph runs whole. ") +
                                (info.whole_reason == nullptr ? "" : info.whole_reason));
  }
}

// An SM has one fused block, with one LC worker and as many BE workers as an SM may have.
void Rig::RegisterPair() {
  const auto variants = work_ == Work::kFused ? &gpushare_test_record_pair_variants
                                              : &gpushare_test_record_dense_pair_variants;
  gpushare_fused_variants made = {};
  if (!simulated_ && (variants(&made) != 0 || made.blocks_per_sm == 0)) {
    return Fail(GPUSHARE_INTERNAL, "The fused kernel does not load.");
  }
  gpushare_fused_kernel_options pair = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  pair.name = "query_kernel_with_batch_work";
  pair.tensor_part = lc_kernel_;
  pair.cuda_part = be_kernel_;
  pair.cuda_blocks = WorkersPerSm(work_);
  pair.opportune_load_ratio = 1;
  pair.opportune_duration_ratio = kDurationRatio;
  pair.function = made.function;
  pair.threads_per_block = static_cast<int32_t>(made.threads_per_block);
  pair.dynamic_shared_memory_bytes = static_cast<int32_t>(made.dynamic_shared_bytes);
  pair.blocks_per_sm = 1;
  Check(gpushare_fused_kernel_register(runtime_, &pair, &pair_));
}

int64_t Rig::NowNs() {
  int64_t now_ns = 0;
  Check(gpushare_now_ns(runtime_, &now_ns));
  return now_ns;
}

void Rig::Pass(int64_t us) {
  if (simulated_) {
    Check(gpushare_poll_until(runtime_, NowNs() + us * kUs));
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
}

gpushare_status Rig::Ask(gpushare_app* app, int32_t capsms, bool packed) const {
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = capsms;
  options.packed = packed ? 1 : 0;
  return gpushare_reserve_capsm(app, &options);
}

int64_t Rig::BeBlockTasks() const {
  if (work_ == Work::kSegments) return int64_t{kNodes} * sms_;
  const int64_t turns = IsFusedWork(work_) ? kFusedTaskSms * kFusedRounds : sms_ * kRounds;
  return turns * WorkersPerSm(work_);
}

gpushare_status Rig::SubmitBe(size_t queue, gpushare_ticket* ticket) const {
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = be_kernel_;
  if (work_ != Work::kSegments) {
    task.block_tasks = BeBlockTasks();
    task.arguments = &be_params_;
    task.arguments_size_bytes = sizeof(be_params_);
  }
  return gpushare_submit_be(be_queues_[queue], &task, ticket);
}

Rig::Run Rig::RunQueries(int queries) {
  if (!simulated_ && !ClearLog(log_)) Fail(GPUSHARE_INTERNAL, "The log cannot be cleared.");
  const int64_t longer_ns = query_ns() - kQueryNs;  // so that the load is that of short queries
  std::uniform_int_distribution<int64_t> gap_ns(500 * kUs + longer_ns, 2 * kMs + longer_ns);
  for (int query = 0; ok() && query < queries; ++query) {
    IdleFor(gap_ns(random_), true);
    const auto first_tag = static_cast<uint32_t>(query * kKernelsPerQuery) + 1;
    run_.latencies_ns.push_back(RunQuery(first_tag, true));
  }
  return Finish();
}

Rig::Run Rig::RunAlone(int64_t duration_ns) {
  if (!simulated_ && !ClearLog(log_)) Fail(GPUSHARE_INTERNAL, "The log cannot be cleared.");
  IdleFor(duration_ns, true);
  return Finish();
}

Rig::Run Rig::RunBursts(int bursts) {
  if (!simulated_ && !ClearLog(log_)) Fail(GPUSHARE_INTERNAL, "The log cannot be cleared.");
  uint32_t tag = 1;
  for (int burst = 0; ok() && burst < bursts; ++burst) {
    // Some queries without others, so that the policy sees no overload for ever.
    for (int query = 0; ok() && query < kQuietQueries; ++query, tag += kKernelsPerQuery) {
      IdleFor(query_ns(), true);
      RunQuery(tag, true);
    }
    IdleFor(query_ns(), true);
    IdleUntilBeTaskEnds();  // adaptive expects no partner of a task that is nearly done
    run_.bursts.push_back(RunBurst(tag));
    tag += kKernelsPerQuery * (1 + kBurstQueries);
  }
  return Finish();
}

std::array<gpushare_ticket, kKernelsPerQuery> Rig::SubmitQuery(uint32_t first_tag) {
  std::array<gpushare_ticket, kKernelsPerQuery> tickets = {};
  const auto spin_ns = static_cast<uint32_t>(query_ns() / kKernelsPerQuery);
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = lc_kernel_;
  task.block_tasks = lc_blocks_;
  if (!Check(gpushare_query_begin(lc_queue_, 0, &task.query))) return tickets;
  for (uint32_t i = 0; i < tickets.size(); ++i) {
    const RecordParams params = {log_, IsFusedWork(work_) ? kLcBlockTaskNs : spin_ns,
                                 first_tag + i};
    task.arguments = &params;
    task.arguments_size_bytes = sizeof(params);
    if (!Check(gpushare_submit_lc(lc_queue_, &task, &tickets[i]))) return tickets;
    run_.lc_block_tasks += lc_blocks_;
  }
  Check(gpushare_query_end(runtime_, task.query));
  return tickets;
}

int64_t Rig::RunQuery(uint32_t first_tag, bool with_be) {
  const int64_t begin_ns = NowNs();
  const auto tickets = SubmitQuery(first_tag);
  if (!ok() || !WaitFor(tickets.back(), with_be)) return 0;
  gpushare_completion_record last = GPUSHARE_COMPLETION_RECORD_INIT;
  for (const gpushare_ticket ticket : tickets) last = TakeLc(ticket);
  return last.complete_ns - begin_ns;
}

Rig::Burst Rig::RunBurst(uint32_t first_tag) {
  Burst burst;
  burst.tag = first_tag + kKernelsPerQuery - 1;
  const auto tickets = SubmitQuery(first_tag);
  if (!ok() || !WaitFor(tickets[kKernelsPerQuery - 2], true)) return burst;
  // The last kernel has begun; an eighth of it passes.
  IdleFor(query_ns() / kKernelsPerQuery / 8, true);
  std::vector<gpushare_ticket> others;
  burst.before_ns = NowNs();
  for (uint32_t query = 1; ok() && query <= kBurstQueries; ++query) {
    const auto more = SubmitQuery(first_tag + query * kKernelsPerQuery);
    others.insert(others.end(), more.begin(), more.end());
  }
  burst.after_ns = NowNs();
  if (!ok() || !WaitFor(others.back(), true)) return burst;
  for (const gpushare_ticket ticket : others) TakeLc(ticket);
  gpushare_completion_record last = GPUSHARE_COMPLETION_RECORD_INIT;
  for (const gpushare_ticket ticket : tickets) last = TakeLc(ticket);
  burst.start_ns = last.start_ns;
  burst.fused = last.form == GPUSHARE_FORM_FUSED;
  return burst;
}

bool Rig::IsComplete(gpushare_ticket ticket) {
  gpushare_bool complete = 0;
  return Check(gpushare_ticket_poll(runtime_, ticket, &complete)) && complete != 0;
}

bool Rig::WaitFor(gpushare_ticket ticket, bool with_be) {
  const int64_t until_ns = NowNs() + kPatienceNs;
  while (ok() && !IsComplete(ticket)) {
    if (with_be) Feed();
    Pass(20);
    if (NowNs() > until_ns) Fail(GPUSHARE_DEADLINE_EXCEEDED, "A query does not complete.");
  }
  return ok();
}

gpushare_completion_record Rig::Take(gpushare_ticket ticket) {
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  if (!Check(gpushare_ticket_record(runtime_, ticket, &record)) ||
      !Check(gpushare_ticket_release(runtime_, ticket))) {
    return record;
  }
  if (record.verdict != GPUSHARE_VERDICT_OK) Fail(GPUSHARE_INTERNAL, "A task failed.");
  return record;
}

gpushare_completion_record Rig::TakeLc(gpushare_ticket ticket) {
  const gpushare_completion_record record = Take(ticket);
  run_.fused_kernels += record.form == GPUSHARE_FORM_FUSED ? 1 : 0;
  return record;
}

void Rig::Feed() {
  for (size_t i = 0; i < be_tickets_.size(); ++i) {
    if (!ok()) return;
    gpushare_ticket& ticket = be_tickets_[i];
    if (ticket.value != 0) {
      if (!IsComplete(ticket)) continue;
      if (!Check(gpushare_ticket_release(runtime_, ticket))) return;
      ticket = {0};
      ++run_.be_tasks;
    }
    if (Check(SubmitBe(i % be_queues_.size(), &ticket))) run_.be_block_tasks += BeBlockTasks();
  }
}

void Rig::IdleFor(int64_t duration_ns, bool with_be) {
  for (const int64_t end_ns = NowNs() + duration_ns; ok() && NowNs() < end_ns;) {
    if (with_be) Feed();
    Pass(20);
  }
}

void Rig::IdleUntilBeTaskEnds() {
  const int64_t tasks = run_.be_tasks;
  for (const int64_t end_ns = NowNs() + kPatienceNs; ok() && run_.be_tasks == tasks;) {
    IdleFor(20 * kUs, true);
    if (NowNs() > end_ns) Fail(GPUSHARE_DEADLINE_EXCEEDED, "A BE task does not complete.");
  }
}

Rig::Run Rig::Finish() {
  for (gpushare_ticket& ticket : be_tickets_) {
    if (ticket.value == 0) continue;
    if (!Check(gpushare_ticket_wait(runtime_, ticket, NowNs() + kPatienceNs))) return {};
    Take(std::exchange(ticket, {0}));
  }
  if (!ok()) return {};  // blocks may still be running
  if (simulated_) return std::exchange(run_, {});
  auto records = ReadLog(log_);
  if (!records.has_value()) {
    Fail(GPUSHARE_INTERNAL, "The log is full or cannot be read.");
    return {};
  }
  run_.records = std::move(*records);
  return std::exchange(run_, {});
}

}  // namespace gpushare::cuda
