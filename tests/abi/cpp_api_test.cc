// The C++ API over the C ABI: values, errors, references. Public headers only, as C++17.

#include <gtest/gtest.h>

#include <gpushare/gpushare.hpp>
#include <utility>

namespace {

gpushare::Runtime Open() {
  gpushare::RuntimeOptions options;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  options.policy = "adaptive:evict";
  return gpushare::Runtime::Create(options).value();
}

gpushare::App MakeApp(const gpushare::Runtime& runtime, gpushare_app_class app_class,
                      const char* name) {
  gpushare::AppOptions options;
  options.app_class = app_class;
  options.name = name;
  return runtime.CreateApp(options).value();
}

TEST(CppApiTest, ATokenStreamEndsWithItsObject) {
  const gpushare::Runtime runtime = Open();
  const gpushare::App app = MakeApp(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "lc");
  {
    gpushare::TokenStream stream = app.BeginTokenStream().value();
    const gpushare::TokenStream moved = std::move(stream);
    EXPECT_EQ(app.Guarantee().value().token_streams, 1);
    EXPECT_EQ(moved.Mark({0}).code(), GPUSHARE_INVALID_ARGUMENT);
  }
  EXPECT_EQ(app.Guarantee().value().token_streams, 0);
  EXPECT_TRUE(app.BeginTokenStream().value().End().ok());
}

TEST(CppApiTest, TasksQueriesAndRegionsComplete) {
  const gpushare::Runtime runtime = Open();
  const gpushare::Queue lc =
      MakeApp(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "lc").CreateQueue().value();
  gpushare::KernelOptions kernel;
  kernel.name = "chain1";
  const gpushare::Kernel graph = runtime.RegisterKernel(kernel).value();
  gpushare::Query query = lc.BeginQuery().value();
  gpushare::TaskOptions task;
  task.kernel = graph.get();
  task.query = query.get();
  gpushare::Ticket ticket = lc.SubmitLc(task).value();
  EXPECT_TRUE(query.End().ok());
  int calls = 0;
  ASSERT_TRUE(ticket.OnComplete([&](const gpushare_completion_record&) { ++calls; }).ok());
  ASSERT_TRUE(ticket.Wait().ok());
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(ticket.IsComplete().value());
  EXPECT_EQ(ticket.Record().value().verdict, GPUSHARE_VERDICT_OK);
  gpushare::Ticket region = lc.BeginRegion(1000).value().End().value();
  EXPECT_TRUE(region.Wait().ok());
  EXPECT_NE(runtime.Metrics().value().find("# EOF"), std::string::npos);
  EXPECT_TRUE(runtime.Drain().ok());
}

TEST(CppApiTest, GraphsComeFromACaptureAndLibraryTasksFromTheirOperands) {
  const gpushare::Runtime runtime = Open();
  const gpushare::Queue lc =
      MakeApp(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "lc").CreateQueue().value();
  gpushare::KernelOptions options;
  options.name = "chain1";  // the profile's; the simulated device captures nothing
  const gpushare::Kernel graph =
      runtime.RegisterGraph(options, [](void*, int32_t) { return 0; }).value();
  EXPECT_NE(graph.id(), 0u);
  gpushare::LibraryCall call;
  call.operation = GPUSHARE_LIBRARY_MATMUL;
  call.m = call.n = call.k = 128;
  const gpushare_graph_node node = {1000, 4, 1, GPUSHARE_CHOICE_DEFAULT, 0, {0, 0, 0, 0, 0}};
  gpushare::SimulationRecord record;
  record.nodes = &node;
  record.node_count = 1;
  options.name = "product";
  options.kind = GPUSHARE_TASK_LIBRARY;
  options.library = &call;
  options.simulation = &record;
  const gpushare::Kernel product = runtime.RegisterKernel(options).value();
  const gpushare::LibraryArguments operands;
  EXPECT_EQ(operands.alpha, 1);
  EXPECT_EQ(operands.beta, 0);
  gpushare::TaskOptions task;
  task.kernel = product.get();
  task.arguments = &operands;
  task.arguments_size_bytes = sizeof(operands);
  gpushare::Ticket ticket = lc.SubmitLc(task).value();
  ASSERT_TRUE(ticket.Wait().ok());
  EXPECT_EQ(ticket.Record().value().verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(lc.RunLc(task).value(), GPUSHARE_VERDICT_OK);
  EXPECT_EQ(lc.RunLc(task, -1).status().code(), GPUSHARE_INVALID_ARGUMENT);
}

TEST(CppApiTest, AnAppIsUpdated) {
  const gpushare::Runtime runtime = Open();
  const gpushare::App app = MakeApp(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "lc");
  gpushare::AppUpdateOptions update;
  update.fields = GPUSHARE_APP_FIELD_P99_BOUND;
  update.p99_bound = 1.2;
  EXPECT_TRUE(app.Update(update).ok());
  EXPECT_EQ(app.Guarantee().value().p99_bound, 1.2);
  update.p99_bound = 0.2;
  EXPECT_EQ(app.Update(update).code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(app.Guarantee().value().p99_bound, 1.2);
  gpushare::AppUpdateOptions priority;
  priority.fields = GPUSHARE_APP_FIELD_PRIORITY;
  priority.priority = -3;
  EXPECT_TRUE(app.Update(priority).ok());
}

TEST(CppApiTest, CopiesOfAHandleShareTheObject) {
  gpushare::Runtime runtime = Open();
  gpushare::App app = MakeApp(runtime, GPUSHARE_CLASS_BEST_EFFORT, "be");
  gpushare::App copy = app;
  EXPECT_TRUE(app.Reset().ok());
  EXPECT_NE(copy.id(), 0u);
  gpushare::Runtime moved = std::move(runtime);
  EXPECT_FALSE(static_cast<bool>(runtime));  // NOLINT: the state after a move is the test
  EXPECT_TRUE(moved.Stats().ok());
}

TEST(CppApiTest, ErrorsAreStatusesAndValueThrowsThem) {
  const gpushare::Runtime runtime = Open();
  gpushare::AppOptions options;
  gpushare::Result<gpushare::App> app = runtime.CreateApp(options);
  ASSERT_FALSE(app.ok());
  EXPECT_EQ(app.status().code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_THROW(app.value(), gpushare::Error);
  EXPECT_EQ(runtime.SetPolicy("no_such").code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare::EventLog::Open("/no/such/file").status().code(), GPUSHARE_NOT_FOUND);
}

}  // namespace
