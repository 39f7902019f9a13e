#include "tests/faults/every_call.h"

#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>
#include <unistd.h>

#include <cstdio>

namespace gpushare_test {
namespace {

std::string TemporaryPath(const char* name) {
  return ::testing::TempDir() + "every_call_" + std::to_string(::getpid()) + "_" + name;
}

int64_t Now(const Handles& handles) {
  int64_t now_ns = 0;
  gpushare_now_ns(handles.runtime, &now_ns);
  return now_ns;
}

void NoCallback(void* /*user*/, const gpushare_completion_record* /*record*/) {}
void NoWork(void* /*stream*/, void* /*user*/) {}

// A reference more, so that the call under test does not take the last one.
template <class Handle>
gpushare_status ReleaseExtra(Handle* handle, gpushare_status (*retain)(Handle*),
                             gpushare_status (*release)(Handle*)) {
  static_cast<void>(retain(handle));
  return release(handle);
}

template <class Handle>
gpushare_status RetainOnce(Handle* handle, gpushare_status (*retain)(Handle*),
                           gpushare_status (*release)(Handle*)) {
  const gpushare_status status = retain(handle);
  if (status == GPUSHARE_OK) static_cast<void>(release(handle));
  return status;
}

// --- runtimes, apps, queues ---

gpushare_status CreateRuntime(const Handles&) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "null";
  options.drive = GPUSHARE_DRIVE_POLL;
  gpushare_runtime* runtime = nullptr;
  const gpushare_status status = gpushare_runtime_create(&options, &runtime);
  if (status == GPUSHARE_OK) gpushare_runtime_release(runtime);
  return status;
}

gpushare_status Quiesce(const Handles& handles) {
  const gpushare_status status =
      gpushare_runtime_quiesce(handles.runtime, Now(handles) + 1'000'000'000);
  if (status == GPUSHARE_OK) gpushare_runtime_resume(handles.runtime);
  return status;
}

// The policy launches nothing, so a built-in one follows it.
gpushare_status SetUserPolicy(const Handles& handles) {
  gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
  table.name = "mine";
  table.make_plan = [](void*, const gpushare_snapshot*, gpushare_plan*) {};
  const gpushare_status status = gpushare_set_user_policy(handles.runtime, &table);
  if (status == GPUSHARE_OK) gpushare_set_policy(handles.runtime, "fifo");
  return status;
}

// Without functions: the built-in model answers everything.
gpushare_status SetUserCostModel(const Handles& handles) {
  gpushare_cost_model_table table = GPUSHARE_COST_MODEL_TABLE_INIT;
  table.name = "mine";
  const gpushare_status status = gpushare_set_user_cost_model(handles.runtime, &table);
  if (status == GPUSHARE_OK) gpushare_set_user_cost_model(handles.runtime, nullptr);
  return status;
}

gpushare_status CreateApp(const Handles& handles) {
  const gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "another");
  gpushare_app* app = nullptr;
  const gpushare_status status = gpushare_app_create(handles.runtime, &options, &app);
  if (status == GPUSHARE_OK) gpushare_app_release(app);
  return status;
}

gpushare_status Reserve(const Handles& handles) {
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  return gpushare_reserve_capsm(handles.app, &options);
}

gpushare_status PlanPartitions(const Handles& handles) {
  gpushare_partition_options options = GPUSHARE_PARTITION_OPTIONS_INIT;
  gpushare_partition_plan plan = GPUSHARE_PARTITION_PLAN_INIT;
  return gpushare_plan_partitions(handles.runtime, &options, &plan);
}

gpushare_status UpdateApp(const Handles& handles) {
  gpushare_app_update_options options = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  options.fields = GPUSHARE_APP_FIELD_WEIGHT;
  return gpushare_app_update(handles.app, &options);
}

gpushare_status CreateQueue(const Handles& handles) {
  gpushare_queue* queue = nullptr;
  const gpushare_status status = gpushare_queue_create(handles.app, &queue);
  if (status == GPUSHARE_OK) gpushare_queue_release(queue);
  return status;
}

// --- kernels ---

gpushare_status RegisterKernel(const Handles& handles) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "ffma";
  gpushare_kernel* kernel = nullptr;
  const gpushare_status status = gpushare_kernel_register(handles.runtime, &options, &kernel);
  if (status == GPUSHARE_OK) gpushare_kernel_release(kernel);
  return status;
}

gpushare_ptx_code SmallPtx() {
  gpushare_ptx_code code = GPUSHARE_PTX_CODE_INIT;
  code.text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
  return code;
}

gpushare_status RegisterPtx(const Handles& handles) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "ffma";
  const gpushare_ptx_code code = SmallPtx();
  gpushare_kernel* kernel = nullptr;
  const gpushare_status status =
      gpushare_kernel_register_ptx(handles.runtime, &options, &code, &kernel);
  if (status == GPUSHARE_OK) gpushare_kernel_release(kernel);
  return status;
}

gpushare_status PtxEntries(const Handles& /*handles*/) {
  const gpushare_ptx_code code = SmallPtx();
  size_t size = 0;
  return gpushare_ptx_entries(&code, nullptr, 0, &size);
}

gpushare_status PtxCheck(const Handles& /*handles*/) {
  const gpushare_ptx_code code = SmallPtx();
  uint32_t line = 0;
  size_t size = 0;
  return gpushare_ptx_check(&code, GPUSHARE_FORM_WORKERS, &line, nullptr, 0, &size);
}

gpushare_status PtxTransform(const Handles& /*handles*/) {
  const gpushare_ptx_code code = SmallPtx();
  size_t size = 0;
  return gpushare_ptx_transform(&code, nullptr, 0, &size);
}

gpushare_status RegisterFused(const Handles& handles, const char* name,
                              gpushare_fused_kernel** fused) {
  gpushare_fused_kernel_options options = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.tensor_part = options.cuda_part = handles.kernel;
  return gpushare_fused_kernel_register(handles.runtime, &options, fused);
}

gpushare_status RegisterFusedKernel(const Handles& handles) {
  gpushare_fused_kernel* fused = nullptr;
  const gpushare_status status = RegisterFused(handles, "another pair", &fused);
  if (status == GPUSHARE_OK) gpushare_fused_kernel_release(fused);
  return status;
}

gpushare_status KernelInfo(const Handles& handles) {
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  return gpushare_kernel_info_by_name(handles.runtime, "sincos_27us", &info);
}

gpushare_status KernelNames(const Handles& handles) {
  size_t size = 0;
  return gpushare_profile_kernel_names(handles.runtime, nullptr, 0, &size);
}

// --- submits ---

gpushare_status BeginQuery(const Handles& handles) {
  gpushare_query query = {0};
  const gpushare_status status = gpushare_query_begin(handles.lc_queue, 0, &query);
  if (status == GPUSHARE_OK) gpushare_query_end(handles.runtime, query);
  return status;
}

gpushare_status BeginQueryWith(const Handles& handles) {
  gpushare_query_options options = GPUSHARE_QUERY_OPTIONS_INIT;
  options.input_size = 128;
  gpushare_query query = {0};
  const gpushare_status status = gpushare_query_begin_with(handles.lc_queue, &options, &query);
  if (status == GPUSHARE_OK) gpushare_query_end(handles.runtime, query);
  return status;
}

gpushare_status BeginTokens(const Handles& handles) {
  gpushare_token_stream stream = {0};
  const gpushare_status status = gpushare_token_stream_begin(handles.lc_app, 0, &stream);
  if (status == GPUSHARE_OK) gpushare_token_stream_end(handles.runtime, stream);
  return status;
}

gpushare_status MarkTokens(const Handles& handles) {
  return gpushare_token_stream_mark(handles.runtime, nullptr, 0, handles.tickets[0]);
}

gpushare_status EndTokens(const Handles& handles) {
  gpushare_token_stream stream = {0};
  const gpushare_status status = gpushare_token_stream_begin(handles.lc_app, 0, &stream);
  return status == GPUSHARE_OK ? gpushare_token_stream_end(handles.runtime, stream) : status;
}

gpushare_status SubmitLc(const Handles& handles) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  options.kernel = handles.graph;
  return gpushare_submit_lc(handles.lc_queue, &options, nullptr);
}

gpushare_status RunLc(const Handles& handles) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  options.kernel = handles.graph;
  return gpushare_run_lc(handles.lc_queue, &options, Now(handles) + 10 * kS, nullptr, nullptr);
}

gpushare_status SubmitBe(const Handles& handles) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  options.kind = GPUSHARE_TASK_OPAQUE;
  options.enqueue = &NoWork;
  options.declared_ns = 1000;
  return gpushare_submit_be(handles.be_queue, &options, nullptr);
}

gpushare_status BeginRegion(const Handles& handles) {
  gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
  options.bound_ns = 1000;
  gpushare_ticket ticket = {0};
  void* stream = nullptr;
  const gpushare_status status =
      gpushare_region_begin(handles.lc_queue, &options, &ticket, &stream);
  if (status != GPUSHARE_OK) return status;
  gpushare_region_end(handles.runtime, ticket);
  gpushare_ticket_release(handles.runtime, ticket);
  return status;
}

// --- tickets ---

gpushare_status PollTicket(const Handles& handles) {
  gpushare_bool complete = 0;
  return gpushare_ticket_poll(handles.runtime, handles.tickets[0], &complete);
}

gpushare_status ReadRecord(const Handles& handles) {
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  return gpushare_ticket_record(handles.runtime, handles.tickets[0], &record);
}

gpushare_status MakeEventFd(const Handles& handles) {
  int fd = -1;
  const gpushare_status status = gpushare_ticket_eventfd(handles.runtime, handles.tickets[1], &fd);
  if (status == GPUSHARE_OK) ::close(fd);
  return status;
}

// --- observation and files ---

gpushare_status DeviceInfo(const Handles& handles) {
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  return gpushare_device_info_get(handles.runtime, &info);
}

gpushare_status Guarantees(const Handles& handles) {
  uint32_t bits = 0;
  return gpushare_guarantees(handles.runtime, GPUSHARE_TASK_DEFAULT, handles.kernel, &bits);
}

gpushare_status RuntimeStats(const Handles& handles) {
  gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
  return gpushare_runtime_stats_get(handles.runtime, &stats);
}

gpushare_status AppStats(const Handles& handles) {
  gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
  return gpushare_app_stats_get(handles.app, &stats);
}

gpushare_status AppGuarantee(const Handles& handles) {
  gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;
  return gpushare_app_guarantee_get(handles.app, &guarantee);
}

gpushare_status Metrics(const Handles& handles) {
  size_t size = 0;
  return gpushare_metrics_text(handles.runtime, nullptr, 0, &size);
}

// Leaves the trace running for StopTrace.
gpushare_status StartTrace(const Handles& handles) {
  const std::string path = TemporaryPath("trace.log");
  gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
  options.event_log_path = path.c_str();
  options.records_max = 1024;
  return gpushare_trace_start(handles.runtime, &options);
}

gpushare_status GetEvent(const Handles& handles) {
  gpushare_event event = GPUSHARE_EVENT_INIT;
  return gpushare_event_log_get(handles.log, 0, &event);
}

gpushare_status OpenLog(const Handles&) {
  gpushare_event_log* log = nullptr;
  int64_t count = 0;
  const std::string path = TemporaryPath("events.log");
  const gpushare_status status = gpushare_event_log_open(path.c_str(), &log, &count);
  if (status == GPUSHARE_OK) gpushare_event_log_release(log);
  return status;
}

// Refused: the device is in real time.
gpushare_status OpenReplay(const Handles& handles) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "null";
  gpushare_runtime* runtime = nullptr;
  const gpushare_status status = gpushare_replay_open(handles.log, &options, &runtime);
  if (status == GPUSHARE_OK) gpushare_runtime_release(runtime);
  return status;
}

gpushare_status RunReplay(const Handles& handles) {
  gpushare_replay_result result = GPUSHARE_REPLAY_RESULT_INIT;
  return gpushare_replay_run(handles.runtime, &result);
}

gpushare_status ReplayDifference(const Handles& handles) {
  size_t size = 0;
  return gpushare_replay_difference(handles.runtime, nullptr, 0, &size);
}

// Without a kernel it is refused in any state.
gpushare_status PreRun(const Handles&) {
  const gpushare_pre_run_options options = GPUSHARE_PRE_RUN_OPTIONS_INIT;
  gpushare_kernel_counters counters = GPUSHARE_KERNEL_COUNTERS_INIT;
  return gpushare_kernel_pre_run(&options, &counters);
}

// A replica and an instance on one GPU.
gpushare_status Place(const Handles&) {
  const gpushare_place_options options = GPUSHARE_PLACE_OPTIONS_INIT;
  gpushare_place_gpu gpu = GPUSHARE_PLACE_GPU_INIT;
  gpu.name = "gpu";
  gpu.count = 1;
  gpu.memory_bytes = 100;
  gpushare_place_lc lc = GPUSHARE_PLACE_LC_INIT;
  lc.name = "service";
  lc.kind = "decode";
  lc.replicas = 1;
  gpushare_place_be be = GPUSHARE_PLACE_BE_INIT;
  be.name = "training";
  be.kind = "lora";
  be.instances = 1;
  gpushare_place_pair pair = GPUSHARE_PLACE_PAIR_INIT;
  pair.lc = lc.kind;
  pair.be = be.kind;
  pair.p99_ratio = 1;
  pair.be_rate = 0.5;
  int32_t gpus[2] = {};
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
  const gpushare_status status =
      gpushare_place(&options, &gpu, 1, &lc, 1, &be, 1, &pair, 1, nullptr, gpus, 2, &result);
  return status == GPUSHARE_OK && result.be_placed != 1 ? GPUSHARE_UNKNOWN : status;
}

gpushare_status PredictPair(const Handles& handles) {
  gpushare_pair_launch query = GPUSHARE_PAIR_LAUNCH_INIT;
  query.kernel = handles.graph;
  gpushare_pair_launch be = GPUSHARE_PAIR_LAUNCH_INIT;
  be.kernel = handles.kernel;
  be.block_tasks = 1000;
  gpushare_place_pair pair = GPUSHARE_PLACE_PAIR_INIT;
  pair.load = 0.4;
  return gpushare_predict_pair(handles.runtime, &query, 1, &be, 0, &pair);
}

// Without an output or a judge these are refused, wherever they may be called.
gpushare_status Calibrate(const Handles&) {
  const gpushare_calibration_options options = GPUSHARE_CALIBRATION_OPTIONS_INIT;
  return gpushare_calibrate(&options, nullptr, nullptr);
}

gpushare_status EvaluateModels(const Handles&) {
  return gpushare_evaluate_models(TemporaryPath("samples.jsonl").c_str(), nullptr, nullptr);
}

gpushare_status SaveProfile(const Handles& handles) {
  return gpushare_profile_save(handles.runtime, TemporaryPath("profile.json").c_str());
}

gpushare_status LoadProfile(const Handles& handles) {
  return gpushare_profile_load(handles.runtime, TemporaryPath("profile.json").c_str());
}

gpushare_status ValidateProfile(const Handles&) {
  return gpushare_profile_validate(TemporaryPath("profile.json").c_str());
}

// Without paths these are refused.
gpushare_status TrainProfile(const Handles&) {
  const gpushare_profile_train_options options = GPUSHARE_PROFILE_TRAIN_OPTIONS_INIT;
  return gpushare_profile_train(&options);
}

gpushare_status LikeProfile(const Handles&) {
  const gpushare_profile_like_options options = GPUSHARE_PROFILE_LIKE_OPTIONS_INIT;
  size_t size = 0;
  return gpushare_profile_like(&options, nullptr, 0, &size);
}

gpushare_status PolicyNames(const Handles&) {
  size_t size = 0;
  return gpushare_policy_names(nullptr, 0, &size);
}

using H = const Handles&;

std::vector<Call> RuntimeCalls() {
  return {
      {"gpushare_runtime_create", CreateRuntime, false},
      {"gpushare_runtime_retain",
       [](H h) {
         return RetainOnce(h.runtime, gpushare_runtime_retain, gpushare_runtime_release);
       }},
      {"gpushare_runtime_release",
       [](H h) {
         return ReleaseExtra(h.runtime, gpushare_runtime_retain, gpushare_runtime_release);
       }},
      {"gpushare_runtime_drain",
       [](H h) { return gpushare_runtime_drain(h.runtime, Now(h) + 1'000'000'000); }},
      {"gpushare_runtime_quiesce", Quiesce},
      {"gpushare_runtime_resume", [](H h) { return gpushare_runtime_resume(h.runtime); }},
      {"gpushare_poll", [](H h) { return gpushare_poll(h.runtime, nullptr); }},
      {"gpushare_poll_until", [](H h) { return gpushare_poll_until(h.runtime, Now(h)); }},
      {"gpushare_now_ns",
       [](H h) {
         int64_t now_ns = 0;
         return gpushare_now_ns(h.runtime, &now_ns);
       }},
      {"gpushare_set_policy", [](H h) { return gpushare_set_policy(h.runtime, "fifo"); }},
      {"gpushare_set_user_policy", SetUserPolicy},
      {"gpushare_set_user_cost_model", SetUserCostModel},
      {"gpushare_policy_names", PolicyNames, false},
      {"gpushare_app_create", CreateApp},
      {"gpushare_app_retain",
       [](H h) { return RetainOnce(h.app, gpushare_app_retain, gpushare_app_release); }},
      {"gpushare_app_release",
       [](H h) { return ReleaseExtra(h.app, gpushare_app_retain, gpushare_app_release); }},
      {"gpushare_app_update", UpdateApp},
      {"gpushare_reserve_capsm", Reserve},
      {"gpushare_plan_partitions", PlanPartitions},
      {"gpushare_queue_create", CreateQueue},
      {"gpushare_queue_retain",
       [](H h) { return RetainOnce(h.be_queue, gpushare_queue_retain, gpushare_queue_release); }},
      {"gpushare_queue_release",
       [](H h) { return ReleaseExtra(h.be_queue, gpushare_queue_retain, gpushare_queue_release); }},
  };
}

std::vector<Call> KernelCalls() {
  return {
      {"gpushare_kernel_register", RegisterKernel},
      {"gpushare_kernel_register_ptx", RegisterPtx},
      {"gpushare_ptx_entries", PtxEntries, false},
      {"gpushare_ptx_check", PtxCheck, false},
      {"gpushare_ptx_transform", PtxTransform, false},
      {"gpushare_kernel_retain",
       [](H h) { return RetainOnce(h.kernel, gpushare_kernel_retain, gpushare_kernel_release); }},
      {"gpushare_kernel_release",
       [](H h) { return ReleaseExtra(h.kernel, gpushare_kernel_retain, gpushare_kernel_release); }},
      {"gpushare_kernel_info_by_name", KernelInfo},
      {"gpushare_profile_kernel_names", KernelNames},
      {"gpushare_fused_kernel_register", RegisterFusedKernel},
      {"gpushare_fused_kernel_retain",
       [](H h) {
         return RetainOnce(h.fused, gpushare_fused_kernel_retain, gpushare_fused_kernel_release);
       }},
      {"gpushare_fused_kernel_release",
       [](H h) {
         return ReleaseExtra(h.fused, gpushare_fused_kernel_retain, gpushare_fused_kernel_release);
       }},
  };
}

std::vector<Call> ObservationCalls() {
  return {
      {"gpushare_device_info_get", DeviceInfo},
      {"gpushare_guarantees", Guarantees},
      {"gpushare_runtime_stats_get", RuntimeStats},
      {"gpushare_app_stats_get", AppStats},
      {"gpushare_app_guarantee_get", AppGuarantee},
      {"gpushare_metrics_text", Metrics},
      {"gpushare_trace_start", StartTrace},
      {"gpushare_trace_stop", [](H h) { return gpushare_trace_stop(h.runtime, nullptr); }},
      {"gpushare_event_log_open", OpenLog, false},
      {"gpushare_event_log_get", GetEvent},
      {"gpushare_event_log_retain",
       [](H h) {
         return RetainOnce(h.log, gpushare_event_log_retain, gpushare_event_log_release);
       }},
      {"gpushare_event_log_release",
       [](H h) {
         return ReleaseExtra(h.log, gpushare_event_log_retain, gpushare_event_log_release);
       }},
      {"gpushare_replay_open", OpenReplay},
      {"gpushare_replay_run", RunReplay},
      {"gpushare_replay_difference", ReplayDifference},
      {"gpushare_calibrate", Calibrate, false},
      {"gpushare_kernel_pre_run", PreRun, false},
      {"gpushare_evaluate_models", EvaluateModels, false},
      {"gpushare_place", Place, false},
      {"gpushare_predict_pair", PredictPair},
      {"gpushare_profile_save", SaveProfile},
      {"gpushare_profile_load", LoadProfile},
      {"gpushare_profile_validate", ValidateProfile, false},
      {"gpushare_profile_train", TrainProfile, false},
      {"gpushare_profile_like", LikeProfile, false},
  };
}

std::vector<Call> WorkCalls() {
  return {
      {"gpushare_query_begin", BeginQuery},
      {"gpushare_query_begin_with", BeginQueryWith},
      {"gpushare_submit_lc", SubmitLc},
      {"gpushare_submit_be", SubmitBe},
      {"gpushare_run_lc", RunLc},
      {"gpushare_enqueue_fail", [](H) { return gpushare_enqueue_fail("no"); }, false},
      {"gpushare_region_begin", BeginRegion},
      {"gpushare_region_room",
       [](H h) {
         int64_t room_ns = 0;
         return gpushare_region_room(h.runtime, &room_ns);
       }},
      {"gpushare_region_end",
       [](H h) { return gpushare_region_end(h.runtime, h.tickets[0]); }},  // it is no region
      {"gpushare_ticket_wait",
       [](H h) { return gpushare_ticket_wait(h.runtime, h.tickets[0], Now(h)); }},
      {"gpushare_ticket_poll", PollTicket},
      {"gpushare_ticket_record", ReadRecord},
      {"gpushare_ticket_cancel",
       [](H h) { return gpushare_ticket_cancel(h.runtime, h.tickets[0]); }},  // it is complete
      {"gpushare_ticket_set_callback",
       [](H h) {
         return gpushare_ticket_set_callback(h.runtime, h.tickets[0], &NoCallback, nullptr);
       }},
      {"gpushare_ticket_eventfd", MakeEventFd},
      {"gpushare_token_stream_begin", BeginTokens},
      {"gpushare_token_stream_mark", MarkTokens},
      {"gpushare_token_stream_end", EndTokens},
      {"gpushare_ticket_release",
       [](H h) { return gpushare_ticket_release(h.runtime, h.tickets[0]); }},
      {"gpushare_query_abandon",
       [](H h) { return gpushare_query_abandon(h.app, GPUSHARE_NEVER, nullptr); }},
      {"gpushare_query_end", [](H h) { return gpushare_query_end(h.runtime, h.query); }},
      {"gpushare_runtime_shutdown",
       [](H h) { return gpushare_runtime_shutdown(h.runtime, Now(h) + 1'000'000'000); }},
  };
}

}  // namespace

const std::vector<Call>& EveryCall() {
  static const std::vector<Call> calls = [] {
    std::vector<Call> all;
    for (const auto& topic : {RuntimeCalls(), KernelCalls(), ObservationCalls(), WorkCalls()}) {
      all.insert(all.end(), topic.begin(), topic.end());
    }
    return all;
  }();
  return calls;
}

void EveryHandle::Open(const Api& api) {
  handles.runtime = api.runtime;
  handles.app = api.be_app;
  handles.lc_app = api.lc_app;
  handles.lc_queue = api.lc_queue;
  handles.be_queue = api.be_queue;
  handles.kernel = api.sincos;
  handles.graph = api.graph;
  const std::string path = TemporaryPath("events.log");
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  trace.event_log_path = path.c_str();
  trace.records_max = 1024;
  ASSERT_OK(gpushare_trace_start(api.runtime, &trace));
  ASSERT_OK(RegisterFused(handles, "pair", &handles.fused));
  for (gpushare_ticket& ticket : handles.tickets) {
    ticket = api.Submit(api.LcTask(), true);
    ASSERT_OK(gpushare_ticket_wait(api.runtime, ticket, api.Deadline()));
  }
  ASSERT_OK(gpushare_trace_stop(api.runtime, nullptr));
  int64_t events = 0;
  ASSERT_OK(gpushare_event_log_open(path.c_str(), &handles.log, &events));
  ASSERT_OK(gpushare_profile_save(api.runtime, TemporaryPath("profile.json").c_str()));
  ASSERT_OK(gpushare_query_begin(api.lc_queue, 0, &handles.query));
}

void EveryHandle::Close() {
  EXPECT_OK(gpushare_fused_kernel_release(handles.fused));
  EXPECT_OK(gpushare_event_log_release(handles.log));
  // Taken already by a test that made every call.
  gpushare_query_end(handles.runtime, handles.query);
  for (const gpushare_ticket ticket : handles.tickets) {
    gpushare_ticket_release(handles.runtime, ticket);
  }
  for (const char* name : {"trace.log", "events.log", "profile.json"}) {
    std::remove(TemporaryPath(name).c_str());
  }
}

void ExpectOfEveryCall(const Handles& handles, gpushare_status otherwise,
                       const std::map<std::string, gpushare_status>& expected) {
  for (const Call& call : EveryCall()) {
    const auto own = expected.find(call.name);
    const gpushare_status wanted = own == expected.end() ? otherwise : own->second;
    const gpushare_status status = call.make(handles);
    EXPECT_EQ(status, wanted) << call.name << " answers " << gpushare_status_name(status) << ": "
                              << gpushare_last_error_message();
  }
}

}  // namespace gpushare_test
