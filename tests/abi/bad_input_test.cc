// Bad input at the C API: each case gets a clear status with one sentence. Nothing is accepted,
// leaks (the suite also runs under the address sanitizer) or hangs.

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class BadInputTest : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override { api_.Open(GetParam()); }
  void TearDown() override {
    gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
    if (api_.runtime != nullptr) {
      EXPECT_OK(gpushare_runtime_stats_get(api_.runtime, &stats));
      EXPECT_EQ(stats.tasks_pending, 0) << "something that was refused was accepted too";
    }
    api_.Close();
  }
  Api api_;
};

INSTANTIATE_TEST_SUITE_P(Devices, BadInputTest,
                         testing::Values(DeviceCase{"sim", GPUSHARE_DRIVE_POLL},
                                         DeviceCase{"null", GPUSHARE_DRIVE_POLL},
                                         DeviceCase{"null", GPUSHARE_DRIVE_THREAD}),
                         [](const auto& one) { return NameOf(one.param); });

gpushare_status Create(const gpushare_runtime_options& options) {
  gpushare_runtime* runtime = nullptr;
  const gpushare_status status = gpushare_runtime_create(&options, &runtime);
  EXPECT_EQ(runtime == nullptr, status != GPUSHARE_OK);
  if (runtime != nullptr) {
    EXPECT_OK(gpushare_runtime_release(runtime));
  }
  return status;
}

TEST(BadRuntimeOptionsTest, EachIsRefusedWithItsReason) {
  gpushare_runtime_options good = GPUSHARE_RUNTIME_OPTIONS_INIT;
  good.device = "sim";
  good.drive = GPUSHARE_DRIVE_POLL;
  EXPECT_OK(Create(good));
  gpushare_runtime_options bad = good;
  bad.device = "tpu";
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "'tpu'");
  bad = good;
  bad.policy = "no_such";
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "adaptive");
  bad = good;
  bad.profile_path = "/no/such/profile.json";
  EXPECT_FAILS(Create(bad), GPUSHARE_NOT_FOUND, "profile");
  bad = good;
  bad.sim_tier = "warp";
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "'warp'");
  for (const char* const faults :
       {"no_such=1", "hang", "hang=0", "hang=p1.5", "hang=pnan", "slow_copy_factor=0.5", ",",
        "misprediction_factor=0", "clock_jump_ns=-3600000000001"}) {
    bad = good;
    bad.sim_faults = faults;
    EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "fault");
  }
  bad = good;
  bad.drive = 2;
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "drive");
  for (const int32_t latency : {-1, 3}) {
    bad = good;
    bad.latency = latency;
    EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "latency");
  }
  bad = good;
  bad.reserved = 1;
  EXPECT_FAILS(Create(bad), GPUSHARE_UNIMPLEMENTED, "reserved");
  setenv("GPUSHARE_LATENCY", "fast", 1);
  EXPECT_FAILS(Create(good), GPUSHARE_INVALID_ARGUMENT, "'fast'");
  bad = good;
  bad.latency = GPUSHARE_LATENCY_BALANCED;
  EXPECT_OK(Create(bad));  // the option comes first
  setenv("GPUSHARE_LATENCY", "spin", 1);
  EXPECT_OK(Create(good));
  unsetenv("GPUSHARE_LATENCY");
  bad = good;
  bad.splits_max = 17;
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "16");
  bad = good;
  bad.hang_factor = std::nan("");
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "hang_factor");
  bad = good;
  bad.hang_floor_ns = -1;
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "hang_floor_ns");
  bad = good;
  bad.caller_spin_ns = -2;
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "caller_spin_ns");
  for (const int64_t spin_ns : {int64_t{-1}, int64_t{0}, int64_t{1'000'000}}) {
    bad.caller_spin_ns = spin_ns;
    EXPECT_OK(Create(bad));
  }
  bad = good;
  bad.device_ordinal = -1;
  EXPECT_FAILS(Create(bad), GPUSHARE_INVALID_ARGUMENT, "ordinal");
  EXPECT_FAILS(gpushare_runtime_create(&good, nullptr), GPUSHARE_INVALID_ARGUMENT, "out_runtime");
}

TEST(BadRuntimeOptionsTest, StructSizesAreCheckedAndNewFieldsRefused) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "null";
  options.drive = GPUSHARE_DRIVE_POLL;
  options.struct_size = 0;
  EXPECT_FAILS(Create(options), GPUSHARE_INVALID_ARGUMENT, "struct_size");
  options.struct_size = offsetof(gpushare_runtime_options, latency) - 1;  // of the first version
  EXPECT_FAILS(Create(options), GPUSHARE_INVALID_ARGUMENT, "struct_size");
  options.struct_size = 0xffffffffu;
  EXPECT_FAILS(Create(options), GPUSHARE_INVALID_ARGUMENT, "struct_size");
  struct Later {
    gpushare_runtime_options known;
    int64_t added;
  } later = {options, 0};
  later.known.struct_size = sizeof(later);
  EXPECT_OK(Create(later.known));
  later.added = 1;
  EXPECT_FAILS(Create(later.known), GPUSHARE_UNIMPLEMENTED, std::to_string(sizeof(options)));
}

TEST(BadRuntimeOptionsTest, WithoutAGpuCudaIsUnavailableAndAutoIsSimulatedAndSaysSo) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "cuda";
  gpushare_runtime* runtime = nullptr;
  const gpushare_status status = gpushare_runtime_create(&options, &runtime);
  if (status == GPUSHARE_OK) {
    EXPECT_OK(gpushare_runtime_release(runtime));
    GTEST_SKIP() << "there is a GPU here";
  }
  EXPECT_TRUE(status == GPUSHARE_UNAVAILABLE || status == GPUSHARE_UNIMPLEMENTED);
  std::vector<std::string> said;
  options.device = "auto";
  options.drive = GPUSHARE_DRIVE_POLL;
  options.log = [](void* user, gpushare_log_level, const char* message) {
    static_cast<std::vector<std::string>*>(user)->push_back(message);
  };
  options.log_user = &said;
  ASSERT_OK(gpushare_runtime_create(&options, &runtime));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("SIMULATED"), std::string::npos) << said[0];
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  ASSERT_OK(gpushare_device_info_get(runtime, &info));
  EXPECT_EQ(info.simulated, 1);
  EXPECT_STREQ(info.name, "sim");
  EXPECT_OK(gpushare_runtime_release(runtime));
}

TEST(BadRuntimeOptionsTest, TheEnvironmentChoosesTheDevice) {
  ASSERT_EQ(::setenv("GPUSHARE_DEVICE", "null", 1), 0);
  gpushare_runtime* runtime = nullptr;
  ASSERT_OK(gpushare_runtime_create(nullptr, &runtime));
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  ASSERT_OK(gpushare_device_info_get(runtime, &info));
  EXPECT_STREQ(info.name, "null");
  EXPECT_OK(gpushare_runtime_release(runtime));
  ASSERT_EQ(::setenv("GPUSHARE_DEVICE", "bogus", 1), 0);
  EXPECT_FAILS(gpushare_runtime_create(nullptr, &runtime), GPUSHARE_INVALID_ARGUMENT, "'bogus'");
  ASSERT_EQ(::unsetenv("GPUSHARE_DEVICE"), 0);
}

TEST_P(BadInputTest, AppOptions) {
  gpushare_app* app = nullptr;
  const auto create = [&](const gpushare_app_options& options) {
    return gpushare_app_create(api_.runtime, &options, &app);
  };
  const gpushare_app_options good = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "other");
  gpushare_app_options bad = good;
  bad.app_class = 0;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "class");
  bad = good;
  bad.name = nullptr;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "name");
  bad = good;
  bad.name = "";
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "empty");
  const std::string lengthy(64, 'a');
  bad.name = lengthy.c_str();
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "63");
  bad = good;
  bad.name = "service";
  EXPECT_FAILS(create(bad), GPUSHARE_ALREADY_EXISTS, "service");
  bad = good;
  bad.target_ns = -1;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "-1");
  bad = good;
  bad.target_ns = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(create(bad), GPUSHARE_INVALID_ARGUMENT);
  for (const double bound : {0.5, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    bad = good;
    bad.p99_bound = bound;
    EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "bound");
    bad = good;
    bad.weight = bound == 0.5 ? -0.5 : bound;
    EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "weight");
  }
  bad = good;
  bad.drop_late = 2;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "drop_late");
  for (const int32_t priority : {-101, 101, INT32_MAX, INT32_MIN}) {
    bad = good;
    bad.priority = priority;
    EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "between -100 and 100");
  }
  bad = good;
  bad.yield_ns_max = -1;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "yield_ns_max");
  bad = good;
  bad.reserved = 1;
  EXPECT_FAILS(create(bad), GPUSHARE_UNIMPLEMENTED, "reserved");
  bad = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "other");
  bad.priority = 1;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "a BE app has a weight");
  bad.priority = 0;
  bad.yield_ns_max = GPUSHARE_NEVER;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "a BE app has a weight");
  bad = good;
  bad.tasks_max = 1 << 20;
  EXPECT_FAILS(create(bad), GPUSHARE_INVALID_ARGUMENT, "16384");
  EXPECT_EQ(app, nullptr);
  EXPECT_FAILS(gpushare_app_create(api_.runtime, nullptr, &app), GPUSHARE_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(gpushare_app_create(api_.runtime, &good, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "out_app");
  EXPECT_FAILS(gpushare_app_create(nullptr, &good, &app), GPUSHARE_INVALID_ARGUMENT, "null");
}

TEST_P(BadInputTest, PeriodicAppOptions) {
  gpushare_app* app = nullptr;
  const gpushare_worst_case curve[] = {{8, 0, 1000}, {16, 0, 600}};
  gpushare_app_options good = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "periodic");
  good.period_ns = 10'000;
  good.worst_cases = curve;
  good.worst_case_count = 2;
  const auto refuse = [&](const gpushare_app_options& options, const char* why) {
    EXPECT_FAILS(gpushare_app_create(api_.runtime, &options, &app), GPUSHARE_INVALID_ARGUMENT, why);
  };
  gpushare_app_options bad = good;
  bad.period_ns = 0;
  refuse(bad, "need a period above 0");
  bad = good;
  bad.period_ns = -1;
  refuse(bad, "need a period above 0");
  bad = good;
  bad.period_ns = INT64_MAX;
  refuse(bad, "The period");
  bad = good;
  bad.deadline_ns = 10'001;
  refuse(bad, "at most the period");
  bad = good;
  bad.target_ns = 9'999;
  refuse(bad, "the deadline of a periodic app is its target");
  bad = good;
  bad.yield_ns_max = 1;
  refuse(bad, "does not wait for other apps");
  bad = good;
  bad.job_eviction_ns = -1;
  refuse(bad, "The eviction of a job");
  bad = good;
  for (const double factor : {0.5, 101.0, -1.0, std::nan("")}) {
    bad.neighbour_factor = factor;
    refuse(bad, "between 1 and 100");
  }
  bad = good;
  bad.worst_cases = nullptr;
  refuse(bad, "worst_case_count is 2 and worst_cases is null");
  bad = good;
  bad.worst_case_count = 1025;
  refuse(bad, "1 to 1024");
  const gpushare_worst_case reserved[] = {{8, 1, 1000}};
  bad = good;
  bad.worst_cases = reserved;
  bad.worst_case_count = 1;
  EXPECT_FAILS(gpushare_app_create(api_.runtime, &bad, &app), GPUSHARE_UNIMPLEMENTED, "reserved");
  bad = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "best effort");
  bad.period_ns = 10'000;
  refuse(bad, "only an LC app has one");
  EXPECT_EQ(app, nullptr);
}

TEST_P(BadInputTest, PartitionOptions) {
  gpushare_partition_options options = GPUSHARE_PARTITION_OPTIONS_INIT;
  gpushare_partition_plan plan = GPUSHARE_PARTITION_PLAN_INIT;
  EXPECT_FAILS(gpushare_plan_partitions(nullptr, &options, &plan), GPUSHARE_INVALID_ARGUMENT,
               "null");
  EXPECT_FAILS(gpushare_plan_partitions(api_.runtime, nullptr, &plan), GPUSHARE_INVALID_ARGUMENT,
               "null");
  EXPECT_FAILS(gpushare_plan_partitions(api_.runtime, &options, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "out_plan");
  EXPECT_FAILS(gpushare_plan_partitions(api_.runtime, &options, &plan),
               GPUSHARE_FAILED_PRECONDITION, "uses no partitions");
  options.share = 2;
  EXPECT_FAILS(gpushare_plan_partitions(api_.runtime, &options, &plan), GPUSHARE_INVALID_ARGUMENT,
               "partition_options.share");
  options.share = 0;
  options.reserved = 1;
  EXPECT_FAILS(gpushare_plan_partitions(api_.runtime, &options, &plan), GPUSHARE_UNIMPLEMENTED,
               "reserved");
}

TEST_P(BadInputTest, AppUpdateOptions) {
  gpushare_app* lc = nullptr;
  gpushare_app* be = nullptr;
  gpushare_app_options create = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "updated");
  create.p99_bound = 1.5;
  ASSERT_OK(gpushare_app_create(api_.runtime, &create, &lc));
  create = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "weighed");
  ASSERT_OK(gpushare_app_create(api_.runtime, &create, &be));
  gpushare_app_update_options bad = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  EXPECT_FAILS(gpushare_app_update(lc, &bad), GPUSHARE_INVALID_ARGUMENT, "fields is 0");
  bad.fields = 64;
  EXPECT_FAILS(gpushare_app_update(lc, &bad), GPUSHARE_INVALID_ARGUMENT, "fields is 64");
  bad.fields = GPUSHARE_APP_FIELD_TARGET_NS;
  bad.target_ns = 1000000;
  bad.p50_bound = 1.1;
  EXPECT_FAILS(gpushare_app_update(lc, &bad), GPUSHARE_INVALID_ARGUMENT, "p50_bound is 1.1");
  bad.fields |= GPUSHARE_APP_FIELD_P50_BOUND | GPUSHARE_APP_FIELD_P99_BOUND;
  for (const double bound : {0.5, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    bad.p99_bound = bound;
    EXPECT_FAILS(gpushare_app_update(lc, &bad), GPUSHARE_INVALID_ARGUMENT, "p99 bound");
  }
  EXPECT_FAILS(gpushare_app_update(be, &bad), GPUSHARE_INVALID_ARGUMENT, "best-effort");
  gpushare_app_update_options weight = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  weight.fields = GPUSHARE_APP_FIELD_WEIGHT;
  EXPECT_FAILS(gpushare_app_update(lc, &weight), GPUSHARE_INVALID_ARGUMENT, "no weight");
  weight.weight = -1;
  EXPECT_FAILS(gpushare_app_update(be, &weight), GPUSHARE_INVALID_ARGUMENT, "weight");
  gpushare_app_update_options priority = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  priority.priority = 5;
  priority.fields = GPUSHARE_APP_FIELD_P99_BOUND;
  EXPECT_FAILS(gpushare_app_update(lc, &priority), GPUSHARE_INVALID_ARGUMENT, "priority is 5");
  priority.fields = GPUSHARE_APP_FIELD_PRIORITY;
  EXPECT_FAILS(gpushare_app_update(be, &priority), GPUSHARE_INVALID_ARGUMENT, "priority");
  priority.priority = 101;
  EXPECT_FAILS(gpushare_app_update(lc, &priority), GPUSHARE_INVALID_ARGUMENT,
               "between -100 and 100");
  EXPECT_FAILS(gpushare_app_update(be, nullptr), GPUSHARE_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(gpushare_app_update(nullptr, &weight), GPUSHARE_INVALID_ARGUMENT, "null");
  gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;
  ASSERT_OK(gpushare_app_guarantee_get(lc, &guarantee));
  EXPECT_EQ(guarantee.target_ns, 0) << "a refused update changes nothing";
  EXPECT_EQ(guarantee.p99_bound, 1.5);
  EXPECT_EQ(guarantee.p50_bound, 0);
  EXPECT_OK(gpushare_app_release(lc));
  EXPECT_OK(gpushare_app_release(be));
}

TEST_P(BadInputTest, KernelOptions) {
  gpushare_kernel* kernel = nullptr;
  const auto enroll = [&](const gpushare_kernel_options& options) {
    return gpushare_kernel_register(api_.runtime, &options, &kernel);
  };
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.block_task_ns = 1000;
  gpushare_kernel_options good = GPUSHARE_KERNEL_OPTIONS_INIT;
  good.name = "mine";
  good.simulation = &record;
  gpushare_kernel_options bad = good;
  bad.name = nullptr;
  EXPECT_FAILS(enroll(bad), GPUSHARE_INVALID_ARGUMENT, "name");
  bad = good;
  bad.kind = GPUSHARE_TASK_MEMCPY;
  EXPECT_FAILS(enroll(bad), GPUSHARE_INVALID_ARGUMENT, "kind");
  bad = good;
  bad.evictable = 3;
  EXPECT_FAILS(enroll(bad), GPUSHARE_INVALID_ARGUMENT, "evictable");
  bad = good;
  bad.threads_per_block = 4096;
  EXPECT_FAILS(enroll(bad), GPUSHARE_INVALID_ARGUMENT, "1024");
  bad = good;
  bad.solo_ns = -5;
  EXPECT_FAILS(enroll(bad), GPUSHARE_INVALID_ARGUMENT, "-5");
  bad = good;
  bad.reserved = 1;
  EXPECT_FAILS(enroll(bad), GPUSHARE_UNIMPLEMENTED, "reserved");
  const auto with = [&](auto change) {
    gpushare_simulation_record changed = record;
    change(changed);
    gpushare_kernel_options options = good;
    options.simulation = &changed;
    return enroll(options);
  };
  const double nan = std::nan("");
  EXPECT_FAILS(with([](auto& r) { r.block_task_ns = -1; }), GPUSHARE_INVALID_ARGUMENT, "-1");
  EXPECT_FAILS(with([&](auto& r) { r.demand.dram = nan; }), GPUSHARE_INVALID_ARGUMENT, "dram");
  EXPECT_FAILS(with([](auto& r) { r.demand.issue = 1.5; }), GPUSHARE_INVALID_ARGUMENT, "issue");
  EXPECT_FAILS(with([&](auto& r) { r.worker_overhead = nan; }), GPUSHARE_INVALID_ARGUMENT,
               "worker_overhead");
  EXPECT_FAILS(with([](auto& r) { r.worker_overhead = -0.51; }), GPUSHARE_INVALID_ARGUMENT,
               "between -0.5 and 10");
  EXPECT_FAILS(with([](auto& r) { r.worker_overhead = 10.1; }), GPUSHARE_INVALID_ARGUMENT,
               "worker_overhead");
  EXPECT_FAILS(with([](auto& r) { r.speed_count = 1; }), GPUSHARE_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(with([](auto& r) { r.speed_count = 33; }), GPUSHARE_INVALID_ARGUMENT, "32");
  EXPECT_FAILS(with([](auto& r) { r.node_count = 5000; }), GPUSHARE_INVALID_ARGUMENT, "4096");
  EXPECT_FAILS(with([](auto& r) { r.struct_size = 8; }), GPUSHARE_INVALID_ARGUMENT, "struct_size");
  gpushare_speed_point points[2] = {{64, 0, 0.5}, {64, 0, 1.0}};
  EXPECT_FAILS(with([&](auto& r) {
                 r.speed = points;
                 r.speed_count = 2;
               }),
               GPUSHARE_INVALID_ARGUMENT, "64");
  EXPECT_EQ(kernel, nullptr);
  bad = good;
  bad.simulation = nullptr;
  bad.name = "unknown_to_the_profile";
  if (std::string(GetParam().device) == "sim") {
    EXPECT_FAILS(enroll(bad), GPUSHARE_INVALID_ARGUMENT, "simulation record");
    bad.name = "chain11";
    EXPECT_FAILS(enroll(bad), GPUSHARE_INVALID_ARGUMENT, "did you mean 'chain1'?");
  } else {
    EXPECT_OK(enroll(bad));
  }
}

int32_t CaptureNothing(void*, void*, int32_t) { return 0; }

// Each part of one kind's code, given to kernels of every kind.
TEST_P(BadInputTest, WhatOneKindHasIsRefusedInTheOthers) {
  static int some = 0;  // native handles are opaque to these devices
  static const gpushare_memory_range range = {&some, 4};
  static const gpushare_library_call call = [] {
    gpushare_library_call made = GPUSHARE_LIBRARY_CALL_INIT;
    made.operation = GPUSHARE_LIBRARY_MATMUL;
    made.m = made.n = made.k = 1;
    return made;
  }();
  struct Case {
    gpushare_task_kind kind;
    const char* refusal;
    void (*set)(gpushare_kernel_options& options);
  };
  const Case cases[] = {
      {GPUSHARE_TASK_KERNEL, "'mine' has a function, and it is not of kind kernel.",
       [](auto& o) { o.original_function = &some; }},
      {GPUSHARE_TASK_KERNEL, "'mine' has a function, and it is not of kind kernel.",
       [](auto& o) { o.worker_function = &some; }},
      {GPUSHARE_TASK_KERNEL, "'mine' has a function, and it is not of kind kernel.",
       [](auto& o) { o.slice_function = &some; }},
      {GPUSHARE_TASK_KERNEL,
       "'mine' has a block's shape or dynamic shared memory, and it is not of kind kernel.",
       [](auto& o) { o.dynamic_shared_memory_bytes = 64; }},
      {GPUSHARE_TASK_GRAPH,
       "'mine' has a graph or a capture callback, and it is not of kind graph.",
       [](auto& o) { o.graph = &some; }},
      {GPUSHARE_TASK_GRAPH,
       "'mine' has a graph or a capture callback, and it is not of kind graph.",
       [](auto& o) { o.graph_exec = &some; }},
      {GPUSHARE_TASK_GRAPH,
       "'mine' has a graph or a capture callback, and it is not of kind graph.",
       [](auto& o) { o.capture = CaptureNothing; }},
      {GPUSHARE_TASK_GRAPH,
       "'mine' has a length of segments (segment_ns), and it is not of kind graph.",
       [](auto& o) { o.segment_ns = 1000; }},
      {GPUSHARE_TASK_GRAPH, "'mine' has measure_nodes, and it is not of kind graph.",
       [](auto& o) { o.measure_nodes = 1; }},
      {GPUSHARE_TASK_GRAPH, "'mine' has measure_places, and it is not of kind graph.",
       [](auto& o) { o.measure_places = 1; }},
      {GPUSHARE_TASK_GRAPH, "'mine' has warm memory, and it is not of kind graph.",
       [](auto& o) {
         o.warm_memory = &range;
         o.warm_memory_count = 1;
       }},
      {GPUSHARE_TASK_LIBRARY, "'mine' has a library call, and it is not of kind library.",
       [](auto& o) { o.library = &call; }},
  };
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.block_task_ns = 1000;
  for (const Case& each : cases) {
    for (const gpushare_task_kind kind : {GPUSHARE_TASK_DEFAULT, GPUSHARE_TASK_KERNEL,
                                          GPUSHARE_TASK_GRAPH, GPUSHARE_TASK_LIBRARY}) {
      gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
      options.name = "mine";
      options.kind = kind;
      options.simulation = &record;
      each.set(options);
      const bool is_kernel = kind == GPUSHARE_TASK_DEFAULT || kind == GPUSHARE_TASK_KERNEL;
      if (each.kind == (is_kernel ? GPUSHARE_TASK_KERNEL : kind)) continue;
      gpushare_kernel* kernel = nullptr;
      EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel),
                   GPUSHARE_INVALID_ARGUMENT, each.refusal);
    }
  }
}

TEST_P(BadInputTest, KernelShapesAndGraphs) {
  gpushare_kernel* kernel = nullptr;
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.block_task_ns = 1000;
  const auto enroll = [&](auto change) {
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = "mine";
    options.simulation = &record;
    change(options);
    return gpushare_kernel_register(api_.runtime, &options, &kernel);
  };
  const auto shaped = [&](int32_t x, int32_t y, int32_t z, int32_t threads) {
    return enroll([&](auto& o) {
      o.block_x = x;
      o.block_y = y;
      o.block_z = z;
      o.threads_per_block = threads;
    });
  };
  EXPECT_FAILS(shaped(32, 0, 1, 0), GPUSHARE_INVALID_ARGUMENT, "32 x 0 x 1");
  EXPECT_FAILS(shaped(-1, -1, 1, 0), GPUSHARE_INVALID_ARGUMENT, "-1 x -1");
  EXPECT_FAILS(shaped(32, 64, 1, 0), GPUSHARE_INVALID_ARGUMENT, "2048");
  EXPECT_FAILS(shaped(1 << 30, 1 << 30, 1 << 30, 0), GPUSHARE_INVALID_ARGUMENT, "1024");
  EXPECT_FAILS(shaped(16, 16, 1, 128), GPUSHARE_INVALID_ARGUMENT, "128");
  EXPECT_FAILS(enroll([](auto& o) { o.dynamic_shared_memory_bytes = -1; }),
               GPUSHARE_INVALID_ARGUMENT, "dynamic");
  EXPECT_FAILS(enroll([](auto& o) {
                 o.shared_memory_bytes = 100;
                 o.dynamic_shared_memory_bytes = 101;
               }),
               GPUSHARE_INVALID_ARGUMENT, "101");
  int some = 0;  // native handles are opaque to these devices
  EXPECT_FAILS(enroll([&](auto& o) { o.graph = &some; }), GPUSHARE_INVALID_ARGUMENT, "kind graph");
  EXPECT_FAILS(enroll([&](auto& o) {
                 o.kind = GPUSHARE_TASK_GRAPH;
                 o.original_function = &some;
               }),
               GPUSHARE_INVALID_ARGUMENT, "kind kernel");
  EXPECT_FAILS(enroll([&](auto& o) {
                 o.kind = GPUSHARE_TASK_GRAPH;
                 o.slice_function = &some;
               }),
               GPUSHARE_INVALID_ARGUMENT, "kind kernel");
  EXPECT_FAILS(enroll([&](auto& o) {
                 o.kind = GPUSHARE_TASK_GRAPH;
                 o.graph = &some;
                 o.capture = CaptureNothing;
               }),
               GPUSHARE_INVALID_ARGUMENT, "2 forms");
  EXPECT_FAILS(enroll([&](auto& o) {
                 o.kind = GPUSHARE_TASK_GRAPH;
                 o.graph_exec = &some;
                 o.confinable = GPUSHARE_CHOICE_YES;
               }),
               GPUSHARE_INVALID_ARGUMENT, "confinable");
  const gpushare_memory_range ranges[] = {{&some, 4}, {&some, 0}};
  const auto warmed = [&](const gpushare_memory_range* memory, uint32_t count, int64_t segment_ns) {
    return enroll([&](auto& o) {
      o.kind = GPUSHARE_TASK_GRAPH;
      o.graph = &some;
      o.segment_ns = segment_ns;
      o.warm_memory = memory;
      o.warm_memory_count = count;
    });
  };
  EXPECT_FAILS(warmed(ranges, 1, 0), GPUSHARE_INVALID_ARGUMENT, "never cut");
  EXPECT_FAILS(warmed(ranges, 2, -1), GPUSHARE_INVALID_ARGUMENT, "Range 1");
  EXPECT_FAILS(warmed(nullptr, 1, -1), GPUSHARE_INVALID_ARGUMENT, "warm_memory");
  EXPECT_FAILS(warmed(ranges, 4097, -1), GPUSHARE_INVALID_ARGUMENT, "4097");
  const auto with_images = [&](const gpushare_function_image* images, uint32_t count) {
    return enroll([&](auto& o) {
      o.kind = GPUSHARE_TASK_GRAPH;
      o.graph = &some;
      o.function_images = images;
      o.function_image_count = count;
    });
  };
  const gpushare_function_image images[] = {{&some, &some, 4, "softmax"}, {&some, &some, 4, ""}};
  EXPECT_FAILS(with_images(images, 2), GPUSHARE_INVALID_ARGUMENT, "function_images[1]");
  const gpushare_function_image huge = {&some, &some, uint64_t{1} << 29, "softmax"};
  EXPECT_FAILS(with_images(&huge, 1), GPUSHARE_INVALID_ARGUMENT, "536870912");
  EXPECT_FAILS(with_images(nullptr, 1), GPUSHARE_INVALID_ARGUMENT, "function_images");
  EXPECT_FAILS(with_images(images, 65537), GPUSHARE_INVALID_ARGUMENT, "65537");
  EXPECT_FAILS(enroll([&](auto& o) {
                 o.kind = GPUSHARE_TASK_GRAPH;
                 o.graph = &some;
                 o.reserved5 = 1;
               }),
               GPUSHARE_UNIMPLEMENTED, "reserved5");
  EXPECT_FAILS(enroll([&](auto& o) {
                 o.function_images = images;
                 o.function_image_count = 1;
               }),
               GPUSHARE_INVALID_ARGUMENT, "images of functions");
  EXPECT_EQ(kernel, nullptr);
}

TEST_P(BadInputTest, GoodShapesAndGraphsAreRegisteredAsGiven) {
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.block_task_ns = 1000;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "shaped";
  options.simulation = &record;
  options.block_x = 16;
  options.block_y = 8;
  options.block_z = 1;
  options.dynamic_shared_memory_bytes = 4096;
  gpushare_kernel* kernel = nullptr;
  ASSERT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  ASSERT_OK(gpushare_kernel_info_by_name(api_.runtime, "shaped", &info));
  EXPECT_EQ(info.threads_per_block, 128);
  EXPECT_EQ(info.registers_per_thread, 32);
  EXPECT_EQ(info.workers_per_sm_max, 8);
  EXPECT_EQ(info.shared_memory_bytes, 4096);
  EXPECT_EQ(info.confinable, 1);
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = kernel;
  task.block_tasks = 24;
  task.grid_x = 4;
  task.grid_y = 3;
  task.grid_z = 2;
  EXPECT_EQ(api_.Finish(api_.Submit(task, false)).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_kernel_release(kernel));
  const gpushare_graph_node node = {1000, 4, 1, GPUSHARE_CHOICE_DEFAULT, 0, {0, 0, 0, 0, 0}};
  gpushare_simulation_record chain = GPUSHARE_SIMULATION_RECORD_INIT;
  chain.nodes = &node;
  chain.node_count = 1;
  int some = 0;
  options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "instantiated";
  options.kind = GPUSHARE_TASK_GRAPH;
  options.simulation = &chain;
  options.graph_exec = &some;
  ASSERT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
  ASSERT_OK(gpushare_kernel_info_by_name(api_.runtime, "instantiated", &info));
  EXPECT_EQ(info.confinable, 0);
  ASSERT_OK(gpushare_kernel_release(kernel));
}

TEST_P(BadInputTest, LibraryCalls) {
  gpushare_kernel* kernel = nullptr;
  const gpushare_graph_node node = {1000, 4, 1, GPUSHARE_CHOICE_DEFAULT, 0, {0, 0, 0, 0, 0}};
  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  record.nodes = &node;
  record.node_count = 1;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "product";
  options.kind = GPUSHARE_TASK_LIBRARY;
  options.simulation = &record;
  options.solo_ns = 1000;
  const auto enroll = [&](const gpushare_library_call& call) {
    options.library = &call;
    return gpushare_kernel_register(api_.runtime, &options, &kernel);
  };
  gpushare_library_call matmul = GPUSHARE_LIBRARY_CALL_INIT;
  matmul.operation = GPUSHARE_LIBRARY_MATMUL;
  matmul.m = matmul.n = matmul.k = 64;
  gpushare_library_call convolution = GPUSHARE_LIBRARY_CALL_INIT;
  convolution.operation = GPUSHARE_LIBRARY_CONVOLUTION;
  convolution.channels = 8;
  convolution.height = convolution.width = 10;
  convolution.filters = 16;
  convolution.filter_height = convolution.filter_width = 3;
  const auto with = [&](gpushare_library_call call, auto change) {
    change(call);
    return enroll(call);
  };
  EXPECT_FAILS(with(matmul, [](auto& c) { c.struct_size = 8; }), GPUSHARE_INVALID_ARGUMENT,
               "struct_size");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.reserved = 1; }), GPUSHARE_UNIMPLEMENTED, "reserved");
  for (const int32_t operation : {0, 6, -1}) {
    EXPECT_FAILS(with(matmul, [&](auto& c) { c.operation = operation; }), GPUSHARE_INVALID_ARGUMENT,
                 "operation");
  }
  EXPECT_FAILS(with(matmul, [](auto& c) { c.type = 3; }), GPUSHARE_INVALID_ARGUMENT, "type");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.mode = 6; }), GPUSHARE_INVALID_ARGUMENT, "mode");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.mode = GPUSHARE_MODE_RELU; }),
               GPUSHARE_INVALID_ARGUMENT, "mode");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.transpose_b = 2; }), GPUSHARE_INVALID_ARGUMENT,
               "transpose_b");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.channels_last = -1; }), GPUSHARE_INVALID_ARGUMENT,
               "channels_last");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.k = 0; }), GPUSHARE_INVALID_ARGUMENT, "the k 0");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.m = int64_t{1} << 31; }), GPUSHARE_INVALID_ARGUMENT,
               "2147483648");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.m = c.k = 1 << 30; }), GPUSHARE_INVALID_ARGUMENT,
               "elements in a");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.batch = -1; }), GPUSHARE_INVALID_ARGUMENT, "batch");
  EXPECT_FAILS(with(matmul, [](auto& c) { c.filters = 1; }), GPUSHARE_INVALID_ARGUMENT, "filters");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.width = 0; }), GPUSHARE_INVALID_ARGUMENT, "width");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.n = 5; }), GPUSHARE_INVALID_ARGUMENT, "the n 5");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.groups = 3; }), GPUSHARE_INVALID_ARGUMENT,
               "3 groups");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.dilation = 5; }), GPUSHARE_INVALID_ARGUMENT,
               "window");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.padding = -1; }), GPUSHARE_INVALID_ARGUMENT,
               "padding");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.stride = -2; }), GPUSHARE_INVALID_ARGUMENT,
               "stride");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.transpose_a = 1; }), GPUSHARE_INVALID_ARGUMENT,
               "transposes");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.operation = GPUSHARE_LIBRARY_POOLING; }),
               GPUSHARE_INVALID_ARGUMENT, "filters");
  EXPECT_FAILS(with(convolution, [](auto& c) { c.operation = GPUSHARE_LIBRARY_SOFTMAX; }),
               GPUSHARE_INVALID_ARGUMENT, "does not use");
  options.kind = GPUSHARE_TASK_KERNEL;
  EXPECT_FAILS(enroll(matmul), GPUSHARE_INVALID_ARGUMENT, "kind library");
  options.kind = GPUSHARE_TASK_LIBRARY;
  EXPECT_EQ(kernel, nullptr);

  ASSERT_OK(enroll(matmul));
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = kernel;
  EXPECT_FAILS(gpushare_submit_lc(api_.lc_queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT, "40");
  gpushare_library_arguments operands = {nullptr, nullptr, nullptr, nullptr, 1, 0};
  task.arguments = &operands;
  task.arguments_size_bytes = sizeof(operands) - 8;
  EXPECT_FAILS(gpushare_submit_lc(api_.lc_queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT, "32");
  task.arguments_size_bytes = sizeof(operands);
  EXPECT_EQ(api_.Finish(api_.Submit(task, true)).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_kernel_release(kernel));
  options.name = "convolution";
  ASSERT_OK(enroll(convolution));
  ASSERT_OK(gpushare_kernel_release(kernel));
}

TEST_P(BadInputTest, Grids) {
  const auto with = [&](int32_t x, int32_t y, int32_t z, int64_t block_tasks) {
    gpushare_task_options task = api_.BeTask(block_tasks);
    task.grid_x = x;
    task.grid_y = y;
    task.grid_z = z;
    gpushare_ticket ticket = {0};
    const gpushare_status status = gpushare_submit_be(api_.be_queue, &task, &ticket);
    if (status == GPUSHARE_OK) api_.Finish(ticket);
    return status;
  };
  EXPECT_FAILS(with(10, 0, 1, 10), GPUSHARE_INVALID_ARGUMENT, "10 x 0 x 1");
  EXPECT_FAILS(with(-10, -1, 1, 10), GPUSHARE_INVALID_ARGUMENT, "at least 1");
  EXPECT_FAILS(with(10, 10, 1, 99), GPUSHARE_INVALID_ARGUMENT, "99");
  EXPECT_FAILS(with(1, 65536, 1, 65536), GPUSHARE_INVALID_ARGUMENT, "65535");
  EXPECT_FAILS(with(1, 1, 65536, 65536), GPUSHARE_INVALID_ARGUMENT, "65535");
  EXPECT_FAILS(with(2147483647, 65535, 65535, 1), GPUSHARE_INVALID_ARGUMENT, "equal");
  EXPECT_OK(with(5, 65535, 1, 5 * 65535));
  gpushare_task_options task = api_.BeTask();
  task.reserved2 = 1;
  EXPECT_FAILS(gpushare_submit_be(api_.be_queue, &task, nullptr), GPUSHARE_UNIMPLEMENTED,
               "reserved2");
  task = api_.LcTask();
  task.grid_y = 1;
  EXPECT_FAILS(gpushare_submit_lc(api_.lc_queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "grid_");
}

TEST_P(BadInputTest, TaskOptions) {
  gpushare_ticket ticket = {1};
  const auto lc = [&](const gpushare_task_options& options) {
    return gpushare_submit_lc(api_.lc_queue, &options, &ticket);
  };
  const auto be = [&](const gpushare_task_options& options) {
    return gpushare_submit_be(api_.be_queue, &options, &ticket);
  };
  gpushare_task_options bad = GPUSHARE_TASK_OPTIONS_INIT;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "kind");
  EXPECT_EQ(ticket.value, 0u);
  EXPECT_FAILS(gpushare_submit_be(api_.be_queue, nullptr, &ticket), GPUSHARE_INVALID_ARGUMENT,
               "null");
  bad.struct_size = 12;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "struct_size");
  bad = api_.BeTask();
  bad.kind = 6;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "kind");
  bad = api_.BeTask();
  bad.kind = GPUSHARE_TASK_GRAPH;
  bad.block_tasks = 0;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "sincos_27us");
  for (const int64_t blocks : {int64_t{0}, int64_t{-1}, (int64_t{1} << 40) + 1}) {
    EXPECT_FAILS(be(api_.BeTask(blocks)), GPUSHARE_INVALID_ARGUMENT, "block tasks");
  }
  std::vector<char> arguments(5000);
  bad = api_.BeTask();
  bad.arguments = arguments.data();
  bad.arguments_size_bytes = arguments.size();
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "4096");
  bad.arguments = nullptr;
  bad.arguments_size_bytes = 16;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "arguments");
  bad = api_.BeTask();
  bad.wait_ticket_count = 1;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "wait_tickets");
  const gpushare_ticket strangers[9] = {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {~uint64_t{0}}};
  bad.wait_tickets = strangers;
  bad.wait_ticket_count = 9;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "9 tickets");
  bad = api_.BeTask();
  bad.declared_ns = 5;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "declared_ns");
  bad = api_.BeTask();
  bad.query.value = 77;
  EXPECT_EQ(be(bad), GPUSHARE_INVALID_ARGUMENT);
  bad = api_.LcTask();
  bad.query.value = 77;
  EXPECT_FAILS(lc(bad), GPUSHARE_INVALID_ARGUMENT, "query");
  bad = api_.LcTask();
  bad.arrival_ns = -1;
  EXPECT_FAILS(lc(bad), GPUSHARE_INVALID_ARGUMENT, "-1");
  bad.arrival_ns = INT64_MAX - 1000;
  EXPECT_FAILS(lc(bad), GPUSHARE_INVALID_ARGUMENT, "ns from now");
  gpushare_query query = {0};
  EXPECT_FAILS(gpushare_query_begin(api_.lc_queue, INT64_MAX, &query), GPUSHARE_INVALID_ARGUMENT,
               "A query arrives at");
  bad = api_.LcTask();
  bad.detached = 5;
  EXPECT_FAILS(lc(bad), GPUSHARE_INVALID_ARGUMENT, "detached");
  EXPECT_EQ(gpushare_submit_be(api_.lc_queue, &bad, nullptr), GPUSHARE_INVALID_ARGUMENT);
  bad = api_.BeTask();
  EXPECT_EQ(gpushare_submit_lc(api_.be_queue, &bad, nullptr), GPUSHARE_INVALID_ARGUMENT);
  bad = GPUSHARE_TASK_OPTIONS_INIT;
  bad.kind = GPUSHARE_TASK_MEMCPY;
  bad.copy_size_bytes = 100;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "direction");
  bad.copy_direction = GPUSHARE_COPY_PEER;
  bad.copy_size_bytes = -1;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "bytes");
  bad = GPUSHARE_TASK_OPTIONS_INIT;
  bad.kind = GPUSHARE_TASK_OPAQUE;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "function");
  bad.kernel = api_.sincos;
  EXPECT_FAILS(be(bad), GPUSHARE_INVALID_ARGUMENT, "kernel");
}

TEST_P(BadInputTest, AKernelOfAnotherRuntimeIsRefused) {
  Api other;
  other.Open({"null", GPUSHARE_DRIVE_POLL});
  const gpushare_task_options task = other.BeTask();
  EXPECT_FAILS(gpushare_submit_be(api_.be_queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "another runtime");
  other.Close();
}

TEST_P(BadInputTest, HandlesAfterReleaseAndOfOtherKinds) {
  gpushare_queue* queue = nullptr;
  ASSERT_OK(gpushare_queue_create(api_.be_app, &queue));
  ASSERT_OK(gpushare_queue_retain(queue));
  ASSERT_OK(gpushare_queue_release(queue));
  ASSERT_OK(gpushare_queue_release(queue));
  const gpushare_task_options task = api_.BeTask();
  EXPECT_FAILS(gpushare_queue_release(queue), GPUSHARE_INVALID_ARGUMENT, "not live");
  EXPECT_FAILS(gpushare_queue_retain(queue), GPUSHARE_INVALID_ARGUMENT, "not live");
  EXPECT_FAILS(gpushare_submit_be(queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT, "not live");
  gpushare_queue* again = nullptr;  // takes the slot; the old handle stays stale
  ASSERT_OK(gpushare_queue_create(api_.be_app, &again));
  EXPECT_NE(again, queue);
  EXPECT_EQ(gpushare_submit_be(queue, &task, nullptr), GPUSHARE_INVALID_ARGUMENT);
  ASSERT_OK(gpushare_queue_release(again));
  auto* const wrong = reinterpret_cast<gpushare_runtime*>(api_.be_app);
  int64_t now_ns = 0;
  EXPECT_FAILS(gpushare_now_ns(wrong, &now_ns), GPUSHARE_INVALID_ARGUMENT, "runtime");
  int local = 0;
  EXPECT_EQ(gpushare_app_retain(reinterpret_cast<gpushare_app*>(&local)),
            GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_app_id(nullptr), 0u);
  EXPECT_EQ(gpushare_kernel_id(nullptr), 0u);
  EXPECT_OK(gpushare_app_release(nullptr));
  EXPECT_OK(gpushare_runtime_release(nullptr));
}

TEST_P(BadInputTest, TicketsAfterRelease) {
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  gpushare_bool complete = 0;
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  for (const gpushare_ticket bad : {ticket, gpushare_ticket{0}, gpushare_ticket{~uint64_t{0}}}) {
    EXPECT_EQ(gpushare_ticket_wait(api_.runtime, bad, GPUSHARE_NEVER), GPUSHARE_INVALID_ARGUMENT);
    EXPECT_EQ(gpushare_ticket_poll(api_.runtime, bad, &complete), GPUSHARE_INVALID_ARGUMENT);
    EXPECT_EQ(gpushare_ticket_record(api_.runtime, bad, &record), GPUSHARE_INVALID_ARGUMENT);
    EXPECT_EQ(gpushare_ticket_cancel(api_.runtime, bad), GPUSHARE_INVALID_ARGUMENT);
    EXPECT_EQ(gpushare_ticket_release(api_.runtime, bad), GPUSHARE_INVALID_ARGUMENT);
    EXPECT_EQ(gpushare_region_end(api_.runtime, bad), GPUSHARE_INVALID_ARGUMENT);
    int fd = 0;
    EXPECT_EQ(gpushare_ticket_eventfd(api_.runtime, bad, &fd), GPUSHARE_INVALID_ARGUMENT);
  }
  EXPECT_FAILS(gpushare_ticket_wait(api_.runtime, ticket, -1), GPUSHARE_INVALID_ARGUMENT, "-1");
}

TEST_P(BadInputTest, ResultStructsAreNeverWrittenBeyondTheirSize) {
  struct Guarded {
    gpushare_runtime_stats stats;
    uint64_t guard;
  } guarded = {GPUSHARE_RUNTIME_STATS_INIT, 0xabcdef};
  ASSERT_OK(gpushare_runtime_stats_get(api_.runtime, &guarded.stats));
  EXPECT_EQ(guarded.guard, 0xabcdefu);
  guarded.stats.struct_size = sizeof(guarded);  // a later version's caller: its new field is zeroed
  ASSERT_OK(gpushare_runtime_stats_get(api_.runtime, &guarded.stats));
  EXPECT_EQ(guarded.guard, 0u);
  EXPECT_EQ(guarded.stats.struct_size, sizeof(gpushare_runtime_stats));
  guarded.stats.struct_size = 16;
  EXPECT_FAILS(gpushare_runtime_stats_get(api_.runtime, &guarded.stats), GPUSHARE_INVALID_ARGUMENT,
               "struct_size");
  EXPECT_FAILS(gpushare_runtime_stats_get(api_.runtime, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "null");
}

TEST_P(BadInputTest, AnAppIsNotReleasedUnderItsTasks) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  EXPECT_FAILS(gpushare_queue_release(api_.be_queue), GPUSHARE_FAILED_PRECONDITION, "not complete");
  ASSERT_OK(gpushare_runtime_resume(api_.runtime));
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);  // the handle is still good
}

TEST_P(BadInputTest, ARuntimeReleasedTwiceLeavesItsAppsAlive) {
  gpushare_runtime* const runtime = api_.runtime;
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_runtime_release(runtime));
  EXPECT_EQ(gpushare_runtime_release(runtime), GPUSHARE_INVALID_ARGUMENT);
  const gpushare_task_options task = api_.BeTask();
  EXPECT_OK(gpushare_submit_be(api_.be_queue, &task, nullptr));  // the queue keeps the runtime
  gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
  EXPECT_OK(gpushare_app_stats_get(api_.be_app, &stats));
  // Without the runtime's handle nothing can poll, so no BE work may be pending at the release.
  api_.runtime = nullptr;
  EXPECT_OK(gpushare_kernel_release(api_.graph));
  EXPECT_OK(gpushare_kernel_release(api_.sincos));
  EXPECT_OK(gpushare_queue_release(api_.lc_queue));
  EXPECT_OK(gpushare_app_release(api_.lc_app));
}

TEST_P(BadInputTest, AfterAForkEveryCallIsRefused) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int64_t now_ns = 0;
    const gpushare_task_options task = api_.BeTask();
    gpushare_runtime* runtime = nullptr;
    const bool good =
        gpushare_now_ns(api_.runtime, &now_ns) == GPUSHARE_FAILED_PRECONDITION &&
        gpushare_submit_be(api_.be_queue, &task, nullptr) == GPUSHARE_FAILED_PRECONDITION &&
        gpushare_runtime_create(nullptr, &runtime) == GPUSHARE_FAILED_PRECONDITION &&
        gpushare_runtime_release(api_.runtime) == GPUSHARE_FAILED_PRECONDITION &&
        std::strstr(gpushare_last_error_message(), "forked") != nullptr;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
}

TEST(FaultInjectionTest, AFailedLaunchAndALostDeviceEndInTheRecord) {
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, "launch_failure=1");
  EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_FAILED);
  EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  api.Close();
  Api lost;
  lost.Open({"sim", GPUSHARE_DRIVE_POLL}, "device_lost=1");
  const gpushare_ticket ticket = lost.Submit(lost.LcTask(), true);
  EXPECT_EQ(lost.Finish(ticket).verdict, GPUSHARE_VERDICT_DEVICE_LOST);
  const gpushare_task_options task = lost.LcTask();
  EXPECT_FAILS(gpushare_submit_lc(lost.lc_queue, &task, nullptr), GPUSHARE_UNAVAILABLE, "lost");
  lost.Close();
}

// 'Later' and 'never' share a status; device_lost in the stats distinguishes them.
TEST(FaultInjectionTest, ARegionThatMayNotBeginIsToldFromALostDevice) {
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, "device_lost=2");
  gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
  gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
  options.bound_ns = 100000;
  gpushare_ticket region = {0};
  void* stream = nullptr;
  const gpushare_ticket first = api.Submit(api.LcTask(), true);
  EXPECT_FAILS(gpushare_region_begin(api.lc_queue, &options, &region, &stream),
               GPUSHARE_UNAVAILABLE, "again later");
  ASSERT_OK(gpushare_runtime_stats_get(api.runtime, &stats));
  EXPECT_EQ(stats.device_lost, 0);
  EXPECT_EQ(api.Finish(first).verdict, GPUSHARE_VERDICT_OK);
  // The launch after the one that loses the device finds the loss, on the submitting thread. The
  // flow has not seen it yet, because this thread drives it.
  const gpushare_ticket second = api.Submit(api.LcTask(), true);
  const gpushare_ticket third = api.Submit(api.LcTask(), true);
  ASSERT_OK(gpushare_runtime_stats_get(api.runtime, &stats));
  ASSERT_EQ(stats.device_lost, 1);
  for (gpushare_queue* queue : {api.lc_queue, api.be_queue}) {
    EXPECT_FAILS(gpushare_region_begin(queue, &options, &region, &stream), GPUSHARE_UNAVAILABLE,
                 "lost");
  }
  EXPECT_EQ(api.Finish(second).verdict, GPUSHARE_VERDICT_DEVICE_LOST);
  EXPECT_EQ(api.Finish(third).verdict, GPUSHARE_VERDICT_DEVICE_LOST);
  EXPECT_FAILS(gpushare_region_begin(api.lc_queue, &options, &region, &stream),
               GPUSHARE_UNAVAILABLE, "lost");
  api.Close();
}

}  // namespace
}  // namespace gpushare_test
