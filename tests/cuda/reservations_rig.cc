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

// Few blocks, so that a query takes as long on few SMs as on all.
constexpr int kKernelsPerQuery = 3;
constexpr int kLcBlocks = 64;
constexpr int kQueriesAlone = 30;

void SleepUs(int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

void SetFunctions(const gpushare_kernel_variants& made, gpushare_kernel_options& options) {
  options.original_function = made.original_function;
  options.worker_function = made.worker_function;
  options.slice_function = made.slice_function;
  options.threads_per_block = static_cast<int32_t>(made.threads_per_block);
  options.dynamic_shared_memory_bytes = static_cast<int32_t>(made.dynamic_shared_bytes);
}

}  // namespace

const char* NameOf(Work work) {
  constexpr std::array<const char*, 4> kNames = {"workers", "dense workers", "segments", "fixed"};
  return kNames[static_cast<size_t>(work)];
}

Rig::Rig(const char* policy, Work work) : work_(work) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "cuda";
  options.policy = policy;
  options.drive = GPUSHARE_DRIVE_THREAD;
  options.shutdown_timeout_ns = kPatienceNs;
  if (!Check(gpushare_runtime_create(&options, &runtime_))) return;
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  if (!Check(gpushare_device_info_get(runtime_, &info))) return;
  sms_ = info.sm_count;
  if (!MakeLog(kRecordsMax, &log_)) {
    Fail(GPUSHARE_RESOURCE_EXHAUSTED, "The log finds no device memory.");
    return;
  }
  MakeApps();
  if (ok()) MakeKernels();
  for (int query = 0; ok() && query < kQueriesAlone; ++query) {
    alone_ns_.push_back(RunQuery(1, false));
    IdleFor(kMs, false);
  }
}

Rig::~Rig() {
  if (runtime_ != nullptr) gpushare_runtime_shutdown(runtime_, NowNs() + kPatienceNs);
  for (const gpushare_ticket ticket : be_tickets_) {
    if (ticket.value != 0) gpushare_ticket_release(runtime_, ticket);
  }
  gpushare_kernel_release(be_kernel_);
  gpushare_kernel_release(lc_kernel_);
  for (gpushare_queue* queue : be_queues_) gpushare_queue_release(queue);
  gpushare_queue_release(lc_queue_);
  gpushare_app_release(be_app_);
  gpushare_app_release(lc_app_);
  gpushare_runtime_release(runtime_);
  DestroyRecordingChain(graph_);
  FreeLog(log_);
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
  lc.p99_bound = 1.5;
  lc.solo_ns = kQueryNs;
  lc.p99_alone_ns = kQueryNs + 100 * kUs;
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
  if (gpushare_test_record_variants(&made) != 0) {
    return Fail(GPUSHARE_INTERNAL, "The recording kernel does not load.");
  }
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.demand.issue = 0.1;
  gpushare_kernel_options lc = GPUSHARE_KERNEL_OPTIONS_INIT;
  lc.name = "query_kernel";
  lc.solo_ns = kQueryNs / kKernelsPerQuery;
  SetFunctions(made, lc);
  lc.evictable = GPUSHARE_CHOICE_NO;
  if (!Check(gpushare_kernel_register(runtime_, &lc, &lc_kernel_))) return;

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
    be.workers_per_sm_max = work_ == Work::kWorkers ? 1 : kDenseWorkersPerSm;
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

int64_t Rig::NowNs() {
  int64_t now_ns = 0;
  Check(gpushare_now_ns(runtime_, &now_ns));
  return now_ns;
}

gpushare_status Rig::Ask(gpushare_app* app, int32_t capsms, bool packed) const {
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = capsms;
  options.packed = packed ? 1 : 0;
  return gpushare_reserve_capsm(app, &options);
}

gpushare_status Rig::SubmitBe(size_t queue, gpushare_ticket* ticket) const {
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = be_kernel_;
  if (work_ != Work::kSegments) {
    const int workers = sms_ * (work_ == Work::kWorkers ? 1 : kDenseWorkersPerSm);
    task.block_tasks = int64_t{workers} * kRounds;
    task.arguments = &be_params_;
    task.arguments_size_bytes = sizeof(be_params_);
  }
  return gpushare_submit_be(be_queues_[queue], &task, ticket);
}

Rig::Run Rig::RunQueries(int queries) {
  if (!ClearLog(log_)) Fail(GPUSHARE_INTERNAL, "The log cannot be cleared.");
  std::uniform_int_distribution<int64_t> gap_ns(500 * kUs, 2 * kMs);
  std::vector<int64_t> latencies_ns;
  for (int query = 0; ok() && query < queries; ++query) {
    IdleFor(gap_ns(random_), true);
    latencies_ns.push_back(RunQuery(static_cast<uint32_t>(query) + 1, true));
  }
  return Finish(std::move(latencies_ns));
}

Rig::Run Rig::RunAlone(int64_t duration_ns) {
  if (!ClearLog(log_)) Fail(GPUSHARE_INTERNAL, "The log cannot be cleared.");
  IdleFor(duration_ns, true);
  return Finish({});
}

int64_t Rig::RunQuery(uint32_t tag, bool with_be) {
  const RecordParams params = {log_, static_cast<uint32_t>(kQueryNs / kKernelsPerQuery), tag};
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = lc_kernel_;
  task.block_tasks = kLcBlocks;
  task.arguments = &params;
  task.arguments_size_bytes = sizeof(params);
  gpushare_ticket last = {0};
  const int64_t begin_ns = NowNs();
  if (!Check(gpushare_query_begin(lc_queue_, 0, &task.query))) return 0;
  for (int i = 0; i < kKernelsPerQuery; ++i) {
    gpushare_ticket* const ticket = i + 1 == kKernelsPerQuery ? &last : nullptr;
    if (!Check(gpushare_submit_lc(lc_queue_, &task, ticket))) return 0;
  }
  if (!Check(gpushare_query_end(runtime_, task.query))) return 0;
  for (gpushare_bool complete = 0; complete == 0;) {
    if (with_be) Feed();
    SleepUs(20);
    if (!Check(gpushare_ticket_poll(runtime_, last, &complete))) return 0;
    if (complete == 0 && NowNs() - begin_ns > kPatienceNs) {
      Fail(GPUSHARE_DEADLINE_EXCEEDED, "A query does not complete.");
      return 0;
    }
  }
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  if (!Check(gpushare_ticket_record(runtime_, last, &record)) ||
      !Check(gpushare_ticket_release(runtime_, last))) {
    return 0;
  }
  if (record.verdict != GPUSHARE_VERDICT_OK) Fail(GPUSHARE_INTERNAL, "A query failed.");
  return record.complete_ns - begin_ns;
}

void Rig::Feed() {
  for (size_t i = 0; i < be_tickets_.size(); ++i) {
    if (!ok()) return;
    gpushare_ticket& ticket = be_tickets_[i];
    gpushare_bool complete = 1;
    if (ticket.value != 0) {
      if (!Check(gpushare_ticket_poll(runtime_, ticket, &complete)) || complete == 0) continue;
      if (!Check(gpushare_ticket_release(runtime_, ticket))) return;
      ticket = {0};
      ++be_tasks_;
    }
    Check(SubmitBe(i % be_queues_.size(), &ticket));
  }
}

void Rig::IdleFor(int64_t duration_ns, bool with_be) {
  for (const int64_t end_ns = NowNs() + duration_ns; ok() && NowNs() < end_ns;) {
    if (with_be) Feed();
    SleepUs(20);
  }
}

Rig::Run Rig::Finish(std::vector<int64_t> latencies_ns) {
  for (gpushare_ticket& ticket : be_tickets_) {
    if (ticket.value == 0) continue;
    Check(gpushare_ticket_wait(runtime_, ticket, NowNs() + kPatienceNs));
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    if (!Check(gpushare_ticket_record(runtime_, ticket, &record)) ||
        !Check(gpushare_ticket_release(runtime_, ticket))) {
      return {};
    }
    if (record.verdict != GPUSHARE_VERDICT_OK) Fail(GPUSHARE_INTERNAL, "A BE task failed.");
    ticket = {0};
  }
  if (!ok()) return {};  // blocks may still be running
  auto records = ReadLog(log_);
  if (!records.has_value()) {
    Fail(GPUSHARE_INTERNAL, "The log is full or cannot be read.");
    return {};
  }
  return {std::move(*records), std::move(latencies_ns), std::exchange(be_tasks_, 0)};
}

}  // namespace gpushare::cuda
