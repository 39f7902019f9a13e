// Memory that is exhausted at any allocation of any call: RESOURCE_EXHAUSTED, or a call that
// succeeds. No abort, no leak, and the call succeeds when it is repeated.
//
// By default a sample of the allocations of each call fails; GPUSHARE_EVERY_ALLOCATION=1 takes
// every one. The flow's own allocations: allocation_failure_flow_test.cc.

#include <gpushare/gpushare.h>
#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "tests/abi/api_fixture.h"
#include "tests/faults/failing_allocations.h"
#include "tests/faults/failing_sample.h"

namespace gpushare_test {
namespace {

constexpr int64_t kMillisecond = 1000 * 1000;

// A runtime with work, the files that calls read and write, and what the call under test has made.
class World {
 public:
  explicit World(bool with_runtime) : with_runtime_(with_runtime) {
    std::string name =
        (std::filesystem::temp_directory_path() / "gpushare_exhausted_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    profile_ = folder_ + "/profile.json";
    output_ = folder_ + "/output";
    log_ = folder_ + "/log";
    OpenRuntime();
    if (!with_runtime) return;
    EXPECT_OK(gpushare_profile_save(api_.runtime, profile_.c_str()));
  }
  ~World() {
    api_.Close();
    std::filesystem::remove_all(folder_);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void OpenRuntime() {
    if (!with_runtime_) return;
    api_.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, "adaptive");
    CheckWorks();  // the first tasks of an app may allocate
  }
  void ReopenRuntime() {
    api_.Close();
    OpenRuntime();
  }

  static void Completed(void* user, const gpushare_completion_record* /*record*/) {
    ++*static_cast<int*>(user);
  }

  // An LC and a BE task that run to their end; each callback runs once.
  void CheckWorks() {
    int completed = 0;
    std::array<gpushare_ticket, 2> tickets{};
    for (size_t i = 0; i < tickets.size(); ++i) {
      gpushare_task_options task = i == 0 ? api_.LcTask() : api_.BeTask();
      task.callback = &World::Completed;
      task.callback_user = &completed;
      tickets[i] = api_.Submit(task, i == 0);
    }
    for (const gpushare_ticket ticket : tickets) {
      EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
    }
    EXPECT_OK(gpushare_runtime_drain(api_.runtime, api_.Deadline()));
    EXPECT_EQ(completed, 2);
  }

  gpushare_ticket SubmitBe(int64_t block_tasks) const {
    return api_.Submit(api_.BeTask(block_tasks), false);
  }

  const bool with_runtime_;
  Api api_;
  std::string folder_;
  std::string profile_;
  std::string output_;
  std::string log_;
  std::string name_;  // another one for each try
  gpushare_runtime* runtime_ = nullptr;
  gpushare_app* app_ = nullptr;
  gpushare_queue* queue_ = nullptr;
  gpushare_kernel* kernel_ = nullptr;
  gpushare_kernel* second_ = nullptr;
  gpushare_fused_kernel* fused_ = nullptr;
  gpushare_event_log* event_log_ = nullptr;
  gpushare_ticket ticket_ = {0};
  gpushare_query query_ = {0};
  int descriptor_ = -1;
  int completed_ = 0;
  size_t size_ = 0;
  std::array<char, 1 << 16> text_{};
};

struct Call {
  const char* name;
  bool with_runtime;
  std::function<void(World&)> prepare;  // before each try, with memory
  std::function<gpushare_status(World&)> call;
  std::function<void(World&)> undo;        // after a success
  gpushare_status expected = GPUSHARE_OK;  // with memory
  int64_t kept = 0;  // allocations that a failed call may leave for its repetition
};

void PrintTo(const Call& call, std::ostream* out) { *out << call.name; }

void Nothing(World& /*world*/) {}

gpushare_status CreateRuntime(World& world, gpushare_drive drive) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = drive;
  return gpushare_runtime_create(&options, &world.runtime_);
}

gpushare_status RegisterKernel(World& world) {
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  const gpushare_speed_point speed[] = {{66, 0, 0.5}, {132, 0, 1}};
  record.block_task_ns = 20000;
  record.demand.issue = 0.9;
  record.speed = speed;
  record.speed_count = 2;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = world.name_.c_str();
  options.evictable = GPUSHARE_CHOICE_YES;
  options.simulation = &record;
  return gpushare_kernel_register(world.api_.runtime, &options, &world.kernel_);
}

gpushare_status RegisterFused(World& world) {
  gpushare_fused_kernel_options options = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  options.name = world.name_.c_str();
  options.tensor_part = world.api_.sincos;
  options.cuda_part = world.second_;
  options.tensor_blocks = options.cuda_blocks = 1;
  options.opportune_load_ratio = 0.6;
  options.opportune_duration_ratio = 1.1;
  return gpushare_fused_kernel_register(world.api_.runtime, &options, &world.fused_);
}

void RegisterSecond(World& world) {
  if (world.second_ != nullptr) return;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "ffma";
  ASSERT_OK(gpushare_kernel_register(world.api_.runtime, &options, &world.second_));
}

gpushare_status SubmitLarge(World& world, bool lc) {
  std::array<char, 4096> arguments{};
  gpushare_task_options task = lc ? world.api_.LcTask() : world.api_.BeTask();
  if (!lc) {
    task.arguments = arguments.data();
    task.arguments_size_bytes = arguments.size();
  }
  task.callback = &World::Completed;
  task.callback_user = &world.completed_;
  return lc ? gpushare_submit_lc(world.api_.lc_queue, &task, &world.ticket_)
            : gpushare_submit_be(world.api_.be_queue, &task, &world.ticket_);
}

void FinishTicket(World& world) {
  world.api_.Finish(world.ticket_);
  EXPECT_OK(gpushare_runtime_drain(world.api_.runtime, world.api_.Deadline()));
}

void SubmitPending(World& world) { world.ticket_ = world.SubmitBe(5000); }

gpushare_status StartTrace(World& world) {
  gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
  options.event_log_path = world.log_.c_str();
  options.perfetto_path = world.output_.c_str();
  options.records_max = 1024;
  return gpushare_trace_start(world.api_.runtime, &options);
}

void Trace(World& world) {
  ASSERT_OK(StartTrace(world));
  world.CheckWorks();
}

gpushare_status Calibrate(World& world) {
  gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
  kernel.name = "sincos_27us";
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.block_tasks = 10560;
  const gpushare_calibration_item item = {&kernel, &task};
  gpushare_calibration_options options = GPUSHARE_CALIBRATION_OPTIONS_INIT;
  options.device = "sim";
  options.items = &item;
  options.item_count = 1;
  options.output_path = world.output_.c_str();
  options.kernel_time_ns = kMillisecond;
  options.evictions = 1;
  options.repeats = 1;
  return gpushare_calibrate(&options, nullptr, nullptr);
}

// Apps in two groups of GPUs, one of which runs already; nothing is written where memory ends.
gpushare_status PlaceApps(World& /*world*/) {
  gpushare_place_options options = GPUSHARE_PLACE_OPTIONS_INIT;
  options.be_per_gpu = 2;
  options.moves_max = 1;
  std::array<gpushare_place_gpu, 2> gpus = {};
  const std::array<const char*, 2> names = {"a group of GPUs with much memory", "another group"};
  for (size_t i = 0; i < gpus.size(); ++i) {
    gpus[i] = GPUSHARE_PLACE_GPU_INIT;
    gpus[i].name = names[i];
    gpus[i].count = 2;
    gpus[i].memory_bytes = 100;
  }
  gpushare_place_lc lc = GPUSHARE_PLACE_LC_INIT;
  lc.name = "a latency-critical service";
  lc.kind = "decode with a long name";
  lc.replicas = 3;
  gpushare_place_be be = GPUSHARE_PLACE_BE_INIT;
  be.name = "training in the background";
  be.kind = "lora with a long name";
  be.instances = 3;
  gpushare_place_pair pair = GPUSHARE_PLACE_PAIR_INIT;
  pair.lc = lc.kind;
  pair.be = be.kind;
  pair.p99_ratio = 1;
  pair.be_rate = 0.5;
  std::array<int32_t, 6> slots = {0, -1, -1, 1, 1, -1};
  const std::array<int32_t, 6> before = slots;
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
  const gpushare_status status =
      gpushare_place(&options, gpus.data(), gpus.size(), &lc, 1, &be, 1, &pair, 1, slots.data(),
                     slots.data(), slots.size(), &result);
  if (status != GPUSHARE_OK) {
    EXPECT_EQ(slots, before);
    EXPECT_EQ(result.lc_placed, 0);
  }
  return status;
}

void PlanNothing(void* /*user*/, const gpushare_snapshot* /*snapshot*/, gpushare_plan* /*plan*/) {}

gpushare_status SetUserPolicy(World& world) {
  gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
  table.name = "own";
  table.make_plan = &PlanNothing;
  return gpushare_set_user_policy(world.api_.runtime, &table);
}

gpushare_status SetUserCostModel(World& world) {
  gpushare_cost_model_table table = GPUSHARE_COST_MODEL_TABLE_INIT;
  table.name = "a cost model whose name needs memory of its own";
  return gpushare_set_user_cost_model(world.api_.runtime, &table);
}

void BuiltInModel(World& world) {
  EXPECT_OK(gpushare_set_user_cost_model(world.api_.runtime, nullptr));
}

void Adaptive(World& world) { EXPECT_OK(gpushare_set_policy(world.api_.runtime, "adaptive")); }

gpushare_status CreateApp(World& world) {
  const gpushare_app_options options =
      AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, world.name_.c_str());
  return gpushare_app_create(world.api_.runtime, &options, &world.app_);
}

// A call for each function of the API that may allocate.
const Call kCreateCalls[] = {
    {"runtime_create_polled", false, Nothing,
     [](World& world) { return CreateRuntime(world, GPUSHARE_DRIVE_POLL); },
     [](World& world) { EXPECT_OK(gpushare_runtime_release(world.runtime_)); }},
    {"runtime_create_threaded", false, Nothing,
     [](World& world) { return CreateRuntime(world, GPUSHARE_DRIVE_THREAD); },
     [](World& world) { EXPECT_OK(gpushare_runtime_release(world.runtime_)); }},
    {"app_create", true, Nothing, CreateApp,
     [](World& world) { EXPECT_OK(gpushare_app_release(world.app_)); }},
    {"queue_create", true, Nothing,
     [](World& world) { return gpushare_queue_create(world.api_.be_app, &world.queue_); },
     [](World& world) { EXPECT_OK(gpushare_queue_release(world.queue_)); }},
    {"app_release", true, [](World& world) { ASSERT_OK(CreateApp(world)); },
     [](World& world) { return gpushare_app_release(world.app_); }, Nothing},
    {"queue_release", true,
     [](World& world) { ASSERT_OK(gpushare_queue_create(world.api_.be_app, &world.queue_)); },
     [](World& world) { return gpushare_queue_release(world.queue_); }, Nothing},
    // A device keeps what it has prepared; the repeated call uses it.
    {"kernel_register", true, Nothing, RegisterKernel,
     [](World& world) { EXPECT_OK(gpushare_kernel_release(world.kernel_)); }, GPUSHARE_OK, 2},
    // The model keeps what it was told of the kernel; the repeated call replaces it.
    {"fused_kernel_register", true, RegisterSecond, RegisterFused,
     [](World& world) { EXPECT_OK(gpushare_fused_kernel_release(world.fused_)); }, GPUSHARE_OK, 1},
    {"kernel_register_of_an_unknown_name", true, Nothing,
     [](World& world) {
       gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
       options.name = "no kernel of the profile";
       return gpushare_kernel_register(world.api_.runtime, &options, &world.kernel_);
     },
     Nothing, GPUSHARE_INVALID_ARGUMENT},
    {"bad_handle", true, Nothing,
     [](World& /*world*/) {
       gpushare_queue* queue = nullptr;
       return gpushare_queue_create(reinterpret_cast<gpushare_app*>(0x1234), &queue);
     },
     Nothing, GPUSHARE_INVALID_ARGUMENT},
};

const Call kTaskCalls[] = {
    {"submit_lc", true, Nothing, [](World& world) { return SubmitLarge(world, true); },
     FinishTicket},
    {"submit_be", true, Nothing, [](World& world) { return SubmitLarge(world, false); },
     FinishTicket},
    {"submit_of_a_wrong_class", true, Nothing,
     [](World& world) {
       gpushare_task_options task = world.api_.LcTask();
       task.callback = &World::Completed;
       task.callback_user = &world.completed_;
       return gpushare_submit_be(world.api_.lc_queue, &task, &world.ticket_);
     },
     Nothing, GPUSHARE_INVALID_ARGUMENT},
    {"query", true, Nothing,
     [](World& world) {
       gpushare_query query = {0};
       const gpushare_status begun = gpushare_query_begin(world.api_.lc_queue, 0, &query);
       return begun != GPUSHARE_OK ? begun : gpushare_query_end(world.api_.runtime, query);
     },
     Nothing},
    {"region", true, Nothing,
     [](World& world) {
       gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
       options.bound_ns = 1000;
       void* stream = nullptr;
       const gpushare_status begun =
           gpushare_region_begin(world.api_.lc_queue, &options, &world.ticket_, &stream);
       return begun != GPUSHARE_OK ? begun : gpushare_region_end(world.api_.runtime, world.ticket_);
     },
     FinishTicket},
    {"ticket_wait", true, SubmitPending,
     [](World& world) {
       return gpushare_ticket_wait(world.api_.runtime, world.ticket_, world.api_.Deadline());
     },
     FinishTicket},
    {"ticket_wait_past_its_deadline", true, SubmitPending,
     [](World& world) { return gpushare_ticket_wait(world.api_.runtime, world.ticket_, 1); },
     FinishTicket, GPUSHARE_DEADLINE_EXCEEDED},
    {"ticket_record_too_early", true, SubmitPending,
     [](World& world) {
       gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
       return gpushare_ticket_record(world.api_.runtime, world.ticket_, &record);
     },
     FinishTicket, GPUSHARE_FAILED_PRECONDITION},
    {"ticket_set_callback", true, SubmitPending,
     [](World& world) {
       return gpushare_ticket_set_callback(world.api_.runtime, world.ticket_, &World::Completed,
                                           &world.completed_);
     },
     FinishTicket},
    {"ticket_eventfd", true, SubmitPending,
     [](World& world) {
       return gpushare_ticket_eventfd(world.api_.runtime, world.ticket_, &world.descriptor_);
     },
     [](World& world) {
       ::close(world.descriptor_);
       FinishTicket(world);
     }},
    {"ticket_cancel", true, SubmitPending,
     [](World& world) { return gpushare_ticket_cancel(world.api_.runtime, world.ticket_); },
     FinishTicket},
};

const Call kRuntimeCalls[] = {
    {"poll", true, SubmitPending,
     [](World& world) { return gpushare_poll(world.api_.runtime, nullptr); }, FinishTicket},
    {"poll_until", true, SubmitPending,
     [](World& world) {
       return gpushare_poll_until(world.api_.runtime, world.api_.Deadline() / 2);
     },
     FinishTicket},
    {"drain", true, SubmitPending,
     [](World& world) { return gpushare_runtime_drain(world.api_.runtime, world.api_.Deadline()); },
     FinishTicket},
    {"quiesce", true, SubmitPending,
     [](World& world) {
       return gpushare_runtime_quiesce(world.api_.runtime, world.api_.Deadline());
     },
     [](World& world) {
       EXPECT_OK(gpushare_runtime_resume(world.api_.runtime));
       FinishTicket(world);
     }},
    {"shutdown", true,
     [](World& world) {
       world.ReopenRuntime();
       SubmitPending(world);
     },
     [](World& world) {
       return gpushare_runtime_shutdown(world.api_.runtime, world.api_.Deadline());
     },
     [](World& world) { world.ReopenRuntime(); }},
    {"reserve_capsm", true, Nothing,
     [](World& world) {
       gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
       options.capsms = 16;
       return gpushare_reserve_capsm(world.api_.lc_app, &options);
     },
     Nothing},
    {"set_policy", true, Nothing,
     [](World& world) { return gpushare_set_policy(world.api_.runtime, "smguard"); }, Adaptive},
    {"set_user_policy", true, Nothing, SetUserPolicy, Adaptive},
    {"set_user_cost_model", true, Nothing, SetUserCostModel, BuiltInModel},
    {"runtime_stats", true, Nothing,
     [](World& world) {
       gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
       return gpushare_runtime_stats_get(world.api_.runtime, &stats);
     },
     Nothing},
    {"app_stats", true, Nothing,
     [](World& world) {
       gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
       return gpushare_app_stats_get(world.api_.lc_app, &stats);
     },
     Nothing},
    {"app_guarantee", true, Nothing,
     [](World& world) {
       gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;
       return gpushare_app_guarantee_get(world.api_.lc_app, &guarantee);
     },
     Nothing},
    {"metrics_text", true, Nothing,
     [](World& world) {
       return gpushare_metrics_text(world.api_.runtime, world.text_.data(), world.text_.size(),
                                    &world.size_);
     },
     Nothing},
    {"place", false, Nothing, PlaceApps, Nothing},
    {"policy_names", false, Nothing,
     [](World& world) {
       return gpushare_policy_names(world.text_.data(), world.text_.size(), &world.size_);
     },
     Nothing},
    {"profile_kernel_names", true, Nothing,
     [](World& world) {
       return gpushare_profile_kernel_names(world.api_.runtime, world.text_.data(),
                                            world.text_.size(), &world.size_);
     },
     Nothing},
};

const Call kFileCalls[] = {
    {"profile_validate", true, Nothing,
     [](World& world) { return gpushare_profile_validate(world.profile_.c_str()); }, Nothing},
    {"profile_load", true, Nothing,
     [](World& world) { return gpushare_profile_load(world.api_.runtime, world.profile_.c_str()); },
     Nothing},
    {"profile_save", true, Nothing,
     [](World& world) { return gpushare_profile_save(world.api_.runtime, world.output_.c_str()); },
     Nothing},
    {"trace_start", true, Nothing, StartTrace,
     [](World& world) { EXPECT_OK(gpushare_trace_stop(world.api_.runtime, nullptr)); }},
    {"trace_stop", true, Trace,
     [](World& world) { return gpushare_trace_stop(world.api_.runtime, nullptr); }, Nothing},
    {"event_log_open", true,
     [](World& world) {
       if (std::filesystem::exists(world.log_)) return;
       Trace(world);
       ASSERT_OK(gpushare_trace_stop(world.api_.runtime, nullptr));
     },
     [](World& world) {
       int64_t count = 0;
       return gpushare_event_log_open(world.log_.c_str(), &world.event_log_, &count);
     },
     [](World& world) { EXPECT_OK(gpushare_event_log_release(world.event_log_)); }},
    {"calibrate", false, Nothing, Calibrate,
     [](World& world) { std::filesystem::remove(world.output_); }},
};

class AllocationFailureTest : public ::testing::TestWithParam<Call> {
 protected:
  void SetUp() override {
    if (!CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  }

  // One try. True: an allocation of the call failed.
  bool Try(World& world, int64_t first, Failing failing) {
    const Call& call = GetParam();
    world.name_ = "try " + std::to_string(++tries_);
    call.prepare(world);
    const int64_t live = LiveAllocations();
    FailingAllocations failures(first, failing);
    const gpushare_status status = call.call(world);
    failures.Stop();
    const int64_t leaked = LiveAllocations() - live;
    if (status == call.expected) {
      call.undo(world);
    } else {
      EXPECT_EQ(status, GPUSHARE_RESOURCE_EXHAUSTED) << gpushare_last_error_message();
      const std::string message = gpushare_last_error_message();
      EXPECT_EQ(message.empty() ? '?' : message.back(), '.') << message;
      EXPECT_LE(leaked, call.kept);
      const gpushare_status again = call.call(world);
      EXPECT_EQ(again, call.expected) << "repeated: " << gpushare_last_error_message();
      if (again == call.expected) call.undo(world);
    }
    if (world.with_runtime_) world.CheckWorks();
    return failures.failed() > 0;
  }

  int tries_ = 0;
};

TEST_P(AllocationFailureTest, EndsInAStatusAndTheCallCanBeRepeated) {
  World world(GetParam().with_runtime);
  for (int warm = 0; warm < 2; ++warm) Try(world, int64_t{1} << 40, Failing::kOnce);
  for (const Failing failing : {Failing::kOnce, Failing::kFromThereOn}) {
    for (FailingSample sample; sample.more(); sample.Next()) {
      SCOPED_TRACE(testing::Message() << "allocation " << sample.number() << " fails " << failing);
      const ContextOfAbort context(GetParam().name, sample.number());
      if (!Try(world, sample.number(), failing) || HasFailure()) break;
    }
  }
}

// "Not valid JSON" would send the reader to the wrong place.
TEST(AllocationFailureMessageTest, AParserSaysThatMemoryIsExhausted) {
  if (!CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  World world(true);
  int named = 0;
  for (FailingSample sample; sample.more(); sample.Next()) {
    FailingAllocations failures(sample.number(), Failing::kOnce);
    const gpushare_status status = gpushare_profile_validate(world.profile_.c_str());
    failures.Stop();
    if (failures.failed() == 0) break;
    EXPECT_EQ(status, GPUSHARE_RESOURCE_EXHAUSTED);
    const std::string message = gpushare_last_error_message();
    EXPECT_EQ(message.find("JSON"), std::string::npos) << message;
    if (message == "Memory is exhausted while reading the profile '" + world.profile_ + "'.") {
      ++named;
    }
  }
  EXPECT_GT(named, 5);  // all but the first, which make the path's own text
}

std::string NameOfCall(const ::testing::TestParamInfo<Call>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Create, AllocationFailureTest, ::testing::ValuesIn(kCreateCalls),
                         NameOfCall);
INSTANTIATE_TEST_SUITE_P(Tasks, AllocationFailureTest, ::testing::ValuesIn(kTaskCalls), NameOfCall);
INSTANTIATE_TEST_SUITE_P(Runtime, AllocationFailureTest, ::testing::ValuesIn(kRuntimeCalls),
                         NameOfCall);
INSTANTIATE_TEST_SUITE_P(Files, AllocationFailureTest, ::testing::ValuesIn(kFileCalls), NameOfCall);

}  // namespace
}  // namespace gpushare_test
