// What the C API promises of graphs in segments: a BE graph leaves for a query between two segments
// and completes once, its kernel info says how it is cut or why it runs whole.

#include <algorithm>
#include <string>

#include "tests/faults/flight.h"

namespace gpushare_test {
namespace {

constexpr int64_t kStepNs = 20 * kMs;

class SegmentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
  }
  void TearDown() override {
    for (gpushare_kernel* kernel : kernels_) EXPECT_OK(gpushare_kernel_release(kernel));
    api_.Close();
  }

  // A training step of 1,000 nodes.
  static gpushare_kernel_options Step(const char* name, const gpushare_simulation_record* record) {
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.kind = GPUSHARE_TASK_GRAPH;
    options.simulation = record;
    return options;
  }
  gpushare_kernel* Register(const char* name, int64_t segment_ns = 0) {
    const gpushare_graph_node node = {kStepNs / 1000, 132, 1000, GPUSHARE_CHOICE_DEFAULT, 0, {}};
    gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
    record.nodes = &node;
    record.node_count = 1;
    gpushare_kernel_options options = Step(name, &record);
    options.segment_ns = segment_ns;
    gpushare_kernel* kernel = nullptr;
    EXPECT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
    kernels_.push_back(kernel);
    return kernel;
  }
  gpushare_kernel_info InfoOf(const char* name) const {
    gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
    EXPECT_OK(gpushare_kernel_info_by_name(api_.runtime, name, &info));
    return info;
  }
  static gpushare_task_options TaskOf(gpushare_kernel* kernel) {
    gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
    options.kernel = kernel;
    return options;
  }

  Api api_;
  std::vector<gpushare_kernel*> kernels_;
};

TEST_F(SegmentsTest, AQueryDoesNotWaitForATrainingStep) {
  gpushare_kernel* const step = Register("step");
  EXPECT_EQ(InfoOf("step").segment_count, 200);
  EXPECT_EQ(InfoOf("step").longest_segment_ns, 100 * kUs);
  EXPECT_EQ(InfoOf("step").evictable, 1);
  EXPECT_EQ(InfoOf("step").whole_reason, nullptr);
  const int64_t alone_ns = [&] {
    const gpushare_completion_record record = api_.Finish(api_.Submit(api_.LcTask(), true));
    return record.complete_ns - record.submit_ns;
  }();
  const gpushare_ticket ticket = api_.Submit(TaskOf(step), false);
  int64_t slowest_ns = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + kMs + 37 * kUs * i));
    const gpushare_completion_record record = api_.Finish(api_.Submit(api_.LcTask(), true));
    slowest_ns = std::max(slowest_ns, record.complete_ns - record.submit_ns);
  }
  EXPECT_LT(slowest_ns, alone_ns + 2 * 100 * kUs);
  const gpushare_completion_record record = api_.Finish(ticket);
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(record.form, GPUSHARE_FORM_SEGMENTS);
  EXPECT_EQ(record.block_tasks, 200);
  EXPECT_EQ(record.evictions, 10);
  EXPECT_GT(record.evicted_ns, 0);
}

TEST_F(SegmentsTest, AQueryOfTheSameGraphRunsWhole) {
  gpushare_kernel* const step = Register("step");
  const gpushare_completion_record record = api_.Finish(api_.Submit(TaskOf(step), true));
  EXPECT_EQ(record.form, GPUSHARE_FORM_GRAPH);
  EXPECT_EQ(record.block_tasks, 1);
}

TEST_F(SegmentsTest, TheKernelInfoSaysWhyAGraphRunsWhole) {
  gpushare_kernel* const step = Register("never", -1);
  EXPECT_EQ(InfoOf("never").segment_count, 1);
  EXPECT_EQ(InfoOf("never").evictable, 0);
  EXPECT_STREQ(InfoOf("never").whole_reason,
               "The kernel option segment_ns asks for the whole graph.");
  const gpushare_completion_record record = api_.Finish(api_.Submit(TaskOf(step), false));
  EXPECT_EQ(record.form, GPUSHARE_FORM_GRAPH);
  // Of the profile alone: nothing has cut it yet.
  EXPECT_EQ(InfoOf("decode16").segment_count, 0);
  EXPECT_EQ(InfoOf("sincos_27us").segment_count, 0);
}

TEST_F(SegmentsTest, TheOptionSetsTheLengthOfASegment) {
  Register("short", 50 * kUs);
  EXPECT_EQ(InfoOf("short").segment_count, 500);
  Register("long", 10 * kMs);
  EXPECT_EQ(InfoOf("long").segment_count, 2);
}

TEST_F(SegmentsTest, ALengthThatMakesNoSenseIsRefused) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_kernel* kernel = nullptr;
  options.name = "sincos_267us";
  options.segment_ns = 1000;
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_INVALID_ARGUMENT,
               "has a length of segments (segment_ns), and it is not of kind graph");
  options.name = "decode16";
  options.segment_ns = -2;
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_INVALID_ARGUMENT,
               "has segments of -2 ns");
}

TEST_F(SegmentsTest, OnlyAGraphWithNodesIsMeasured) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_kernel* kernel = nullptr;
  options.name = "sincos_267us";
  options.measure_nodes = 1;
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_INVALID_ARGUMENT,
               "'sincos_267us' has measure_nodes, and it is not of kind graph");
  options.name = "decode16";
  options.measure_nodes = 2;
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_INVALID_ARGUMENT,
               "kernel_options.measure_nodes");
  options.measure_nodes = 1;
  options.measure_places = 2;
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_INVALID_ARGUMENT,
               "kernel_options.measure_places");
  options.measure_places = 1;
  options.reserved2 = 1;
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_UNIMPLEMENTED,
               "reserved is 1");
  options.reserved2 = 0;
  options.reserved3 = 1;
  EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &options, &kernel), GPUSHARE_UNIMPLEMENTED,
               "reserved3 is 1");
}

}  // namespace
}  // namespace gpushare_test
