// A user's kernel with counters: the models predict it as they predict a kernel of the profile that
// has the same counters. And pre-runs where they are refused.

#include "bindings/c/kernel_counters.h"

#include <gpushare/gpushare.h>
#include <gpushare/gpushare_policy.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <gpushare/gpushare.hpp>
#include <map>
#include <string>
#include <utility>

#include "src/models/profile/profile.h"
#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

const gpushare::models::Profile& Truth() {
  static const auto* const kProfile = new gpushare::models::Profile(  // NOLINT: as the program
      *gpushare::models::LoadProfile(std::getenv("GPUSHARE_TEST_PROFILE")));
  return *kProfile;
}

// Two kernels of the profile that no calibration measured together.
constexpr std::array kPair = {"md5", "vector_add"};

// What a policy sees of the co-schedules of two kernels, by the ratio of their workers.
using Options = std::array<gpushare_co_schedule_option, GPUSHARE_CO_SCHEDULE_RATIOS>;

// Both kernels get a row of the table, one a plan; then their options are read.
struct Seen {
  std::array<uint32_t, 2> kernels = {};
  std::array<int32_t, 2> rows = {-1, -1};
  bool found = false;
  Options options = {};
};

void Read(const gpushare_snapshot* snapshot, Seen& seen) {
  for (int32_t ratio = 0; ratio < GPUSHARE_CO_SCHEDULE_RATIOS; ++ratio) {
    const gpushare_co_schedule_option* const option =
        gpushare_co_schedule_at(snapshot, seen.rows[0], seen.rows[1], ratio);
    if (option == nullptr) return;
    seen.options[static_cast<size_t>(ratio)] = *option;
  }
  seen.found = true;
}

void PlanAndSee(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Seen& seen = *static_cast<Seen*>(user);
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    const gpushare_head_view* const head =
        GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i);
    for (size_t k = 0; k < 2; ++k) {
      if (head->kernel_id == seen.kernels[k]) seen.rows[k] = head->overlap_index;
    }
    gpushare_planned_launch launch = {};
    launch.task = head->task;
    launch.form = GPUSHARE_FORM_WORKERS;
    launch.lane_class = GPUSHARE_LANE_BE;
    plan->launches[plan->launch_count++] = launch;
  }
  if (seen.rows[0] >= 0 && seen.rows[1] >= 0) Read(snapshot, seen);
}

// Everything that the profile says of a kernel, as an application says it.
struct Copy {
  explicit Copy(const char* of, const char* name, bool with_counters) {
    const gpushare::core::KernelDesc& known = *Truth().FindKernel(of);
    record.block_task_ns = known.simulation.block_task_ns;
    record.memory_parallelism = known.simulation.memory_parallelism;
    record.saturating_occupancy = known.simulation.saturating_occupancy;
    const gpushare::core::ResourceDemand& demand = known.simulation.demand;
    record.demand = {demand.issue, demand.tensor, demand.special, demand.dram, demand.l2};
    counters = gpushare::abi::CountersToC(known.counters, 0);
    options.name = name;
    options.threads_per_block = known.resources.threads_per_block;
    options.registers_per_thread = known.resources.registers_per_thread;
    options.shared_memory_bytes = known.resources.shared_memory_bytes;
    options.workers_per_sm_max = known.resources.workers_per_sm_max;
    options.evictable = GPUSHARE_CHOICE_YES;
    options.simulation = &record;
    if (with_counters) options.counters = &counters;
  }

  gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
  gpushare_kernel_counters counters = GPUSHARE_KERNEL_COUNTERS_INIT;
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
};

class KernelCountersTest : public testing::Test {
 protected:
  void SetUp() override { api_.Open({"sim", GPUSHARE_DRIVE_POLL}); }
  void TearDown() override { api_.Close(); }

  gpushare_status Register(const gpushare_kernel_options& options) {
    gpushare_kernel* kernel = nullptr;
    const gpushare_status status = gpushare_kernel_register(api_.runtime, &options, &kernel);
    if (status == GPUSHARE_OK) {
      EXPECT_OK(gpushare_kernel_release(kernel));
    }
    return status;
  }

  // The co-schedules of two kernels as a policy sees them.
  Options CoSchedulesOf(const gpushare_kernel_options& first,
                        const gpushare_kernel_options& second) {
    std::array<gpushare_kernel*, 2> kernels = {};
    EXPECT_OK(gpushare_kernel_register(api_.runtime, &first, &kernels[0]));
    EXPECT_OK(gpushare_kernel_register(api_.runtime, &second, &kernels[1]));
    Seen seen;
    gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
    table.name = "sees";
    table.make_plan = PlanAndSee;
    table.user = &seen;
    for (size_t k = 0; k < 2; ++k) seen.kernels[k] = gpushare_kernel_id(kernels[k]);
    EXPECT_OK(gpushare_set_user_policy(api_.runtime, &table));
    for (size_t i = 0; i < 8; ++i) {
      gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
      task.kernel = kernels[i % 2];
      task.block_tasks = 5280;
      api_.Finish(api_.Submit(task, false));
    }
    EXPECT_OK(gpushare_set_policy(api_.runtime, "fifo"));
    for (gpushare_kernel* const kernel : kernels) EXPECT_OK(gpushare_kernel_release(kernel));
    EXPECT_TRUE(seen.found);
    return seen.options;
  }

  Api api_;
};

TEST_F(KernelCountersTest, AUsersKernelIsPredictedAsTheProfilesKernelIs) {
  gpushare_kernel_options first = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_kernel_options second = GPUSHARE_KERNEL_OPTIONS_INIT;
  first.name = kPair[0];
  second.name = kPair[1];
  const Options expected = CoSchedulesOf(first, second);
  const Copy one(kPair[0], "mine", true);
  const Copy two(kPair[1], "yours", true);
  const Options own = CoSchedulesOf(one.options, two.options);
  for (size_t ratio = 0; ratio < expected.size(); ++ratio) {
    EXPECT_GT(expected[ratio].speed[0], 0) << "the profile knows nothing of the pair";
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(own[ratio].workers_per_sm[k], expected[ratio].workers_per_sm[k]) << ratio;
      EXPECT_EQ(own[ratio].speed[k], expected[ratio].speed[k]) << ratio;
    }
    EXPECT_EQ(own[ratio].speed_error, expected[ratio].speed_error) << ratio;
    EXPECT_NEAR(own[ratio].profit, expected[ratio].profit, 1e-6) << ratio;
  }
}

TEST_F(KernelCountersTest, WithoutCountersNothingIsKnownOfItBesideAnother) {
  const Copy one(kPair[0], "mine", false);
  const Copy two(kPair[1], "yours", true);
  for (const gpushare_co_schedule_option& option : CoSchedulesOf(one.options, two.options)) {
    EXPECT_EQ(option.speed[0], 0);
    EXPECT_EQ(option.speed[1], 0);
  }
}

TEST_F(KernelCountersTest, BadCountersAreRefusedByValueAndLimit) {
  struct Bad {
    double gpushare_kernel_counters::*field;
    double value;
    const char* text;
  };
  const std::array bad = {
      Bad{&gpushare_kernel_counters::instructions, 0,
          "kernel_counters.instructions is 0, and it must be above 0 and at most 1e+15"},
      Bad{&gpushare_kernel_counters::instructions, 1e16, "is 1e+16, and it must be above 0"},
      Bad{&gpushare_kernel_counters::memory_instructions, 1e6, "lie between 0 and 26248, its"},
      Bad{&gpushare_kernel_counters::sectors_per_request, -1,
          "kernel_counters.sectors_per_request is -1, and it must lie between 0 and 1024"},
      Bad{&gpushare_kernel_counters::issue, 0, "kernel_counters.issue is 0, and it must be above"},
      Bad{&gpushare_kernel_counters::issue, 60, "is 60, and it must be above 0 and at most 1"},
      Bad{&gpushare_kernel_counters::fma, NAN, "kernel_counters.fma is nan, and it must lie"},
      Bad{&gpushare_kernel_counters::alu, 1.5, "kernel_counters.alu is 1.5, and it must lie"},
      Bad{&gpushare_kernel_counters::tensor, -0.1, "kernel_counters.tensor is -0.1"},
      Bad{&gpushare_kernel_counters::special, 2, "kernel_counters.special is 2"},
      Bad{&gpushare_kernel_counters::lsu, 2, "kernel_counters.lsu is 2"},
      Bad{&gpushare_kernel_counters::shared, 2, "kernel_counters.shared is 2"},
      Bad{&gpushare_kernel_counters::l1, 2, "kernel_counters.l1 is 2"},
      Bad{&gpushare_kernel_counters::l2, 2, "kernel_counters.l2 is 2"},
      Bad{&gpushare_kernel_counters::dram, INFINITY, "kernel_counters.dram is inf"},
      Bad{&gpushare_kernel_counters::dram_write, 0.5, "between 0 and 0, its share of dram"},
      Bad{&gpushare_kernel_counters::saturating_occupancy, 2, "saturating_occupancy is 2"},
  };
  for (const Bad& one : bad) {
    Copy copy("md5", "mine", true);
    copy.counters.*one.field = one.value;
    EXPECT_FAILS(Register(copy.options), GPUSHARE_INVALID_ARGUMENT, one.text);
  }
  Copy copy("md5", "mine", true);
  copy.counters.reserved = 1;
  EXPECT_FAILS(Register(copy.options), GPUSHARE_UNIMPLEMENTED, "reserved");
  copy.counters.reserved = 0;
  EXPECT_OK(Register(copy.options));
  copy.options.kind = GPUSHARE_TASK_GRAPH;
  EXPECT_FAILS(Register(copy.options), GPUSHARE_INVALID_ARGUMENT,
               "'mine' has counters, and it is not of kind kernel");
}

TEST_F(KernelCountersTest, TheRecordsOccupancyCountsBeforeThatOfTheCounters) {
  gpushare_kernel_counters counters = Copy("md5", "mine", true).counters;
  counters.saturating_occupancy = 0.25;
  gpushare::core::KernelDesc kernel;
  ASSERT_TRUE(gpushare::abi::ReadCounters(counters, kernel).ok());
  EXPECT_EQ(kernel.simulation.saturating_occupancy, 0.25);
  kernel.simulation.present = true;
  kernel.simulation.saturating_occupancy = 0.75;
  ASSERT_TRUE(gpushare::abi::ReadCounters(counters, kernel).ok());
  EXPECT_EQ(kernel.simulation.saturating_occupancy, 0.75);
}

TEST(PreRunCallTest, ItIsRefusedWhereNothingCounts) {
  const Copy copy("md5", "mine", false);
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.block_tasks = 5280;
  gpushare::PreRunOptions options;
  options.kernel = &copy.options;
  options.task = &task;
  for (const char* const device : {"sim", "null"}) {
    options.device = device;
    const auto refused = gpushare::PreRun(options);
    EXPECT_EQ(refused.status().code(), GPUSHARE_UNIMPLEMENTED) << device;
    EXPECT_NE(refused.status().message().find("needs device 'cuda'"), std::string::npos)
        << refused.status().message();
  }
}

TEST(PreRunCallTest, BadInputIsRefused) {
  const Copy copy("md5", "mine", false);
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  gpushare_pre_run_options options = GPUSHARE_PRE_RUN_OPTIONS_INIT;
  gpushare_kernel_counters counters = GPUSHARE_KERNEL_COUNTERS_INIT;
  options.device = "sim";
  EXPECT_FAILS(gpushare_kernel_pre_run(nullptr, &counters), GPUSHARE_INVALID_ARGUMENT, "null");
  EXPECT_FAILS(gpushare_kernel_pre_run(&options, nullptr), GPUSHARE_INVALID_ARGUMENT,
               "out_counters");
  EXPECT_FAILS(gpushare_kernel_pre_run(&options, &counters), GPUSHARE_INVALID_ARGUMENT,
               "pre_run_options.kernel");
  options.kernel = &copy.options;
  EXPECT_FAILS(gpushare_kernel_pre_run(&options, &counters), GPUSHARE_INVALID_ARGUMENT,
               "pre_run_options.task");
  options.task = &task;
  options.device_ordinal = -1;
  EXPECT_FAILS(gpushare_kernel_pre_run(&options, &counters), GPUSHARE_INVALID_ARGUMENT, "is -1");
  options.device_ordinal = 0;
  options.hang_limit_ns = -5;
  EXPECT_FAILS(gpushare_kernel_pre_run(&options, &counters), GPUSHARE_INVALID_ARGUMENT,
               "hang_limit_ns is -5 ns");
}

}  // namespace
}  // namespace gpushare_test
