// The kind of a kernel follows from its code, and handles stay in their process.

#include "src/core/seams/kernel_code.h"

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/sliceable.h"

namespace gpushare::core {
namespace {

TEST(KernelCodeTest, TheKindFollowsFromTheCode) {
  KernelDesc kernel;
  EXPECT_EQ(kernel.kind(), TaskKind::kKernel) << "of a kernel of which nothing is said";
  kernel.code = GraphCode();
  EXPECT_EQ(kernel.kind(), TaskKind::kGraph);
  kernel.code = LibraryCall();
  EXPECT_EQ(kernel.kind(), TaskKind::kLibrary);
  kernel.code = FunctionCode();
  EXPECT_EQ(kernel.kind(), TaskKind::kKernel);
}

TEST(KernelCodeTest, CodeOfAKindHasThatKind) {
  for (const TaskKind kind : {TaskKind::kKernel, TaskKind::kGraph, TaskKind::kLibrary}) {
    EXPECT_EQ(KindOf(CodeOfKind(kind)), kind);
  }
}

TEST(KernelCodeTest, AKernelShowsItsCodeInOneFormOnly) {
  for (const TaskKind kind : {TaskKind::kKernel, TaskKind::kGraph, TaskKind::kLibrary}) {
    KernelDesc kernel;
    kernel.code = CodeOfKind(kind);
    EXPECT_EQ(kernel.functions() != nullptr, kind == TaskKind::kKernel);
    EXPECT_EQ(kernel.graph() != nullptr, kind == TaskKind::kGraph);
    EXPECT_EQ(kernel.library_call() != nullptr, kind == TaskKind::kLibrary);
  }
}

TEST(KernelCodeTest, AKernelOfPtxHasTheFunctionsThatADeviceMadeOfIt) {
  int object = 0;
  KernelDesc kernel;
  EXPECT_EQ(kernel.ptx(), nullptr);
  kernel.code = PtxCode{.text = "text", .module = "module", .worker = {.entry = "twin"}};
  EXPECT_EQ(kernel.kind(), TaskKind::kKernel);
  ASSERT_NE(kernel.ptx(), nullptr);
  EXPECT_EQ(kernel.functions(), &kernel.ptx()->functions);
  kernel.ptx()->functions.worker = &object;
  EXPECT_EQ(std::as_const(kernel).functions()->worker, &object);
  EXPECT_TRUE(kernel.ptx()->RunsSlices()) << "workers run them too";
  kernel.ptx()->worker = {.refusal = "No."};
  EXPECT_FALSE(kernel.ptx()->RunsSlices());
  kernel.ptx()->DropTexts();
  EXPECT_EQ(kernel.ptx()->text + kernel.ptx()->module, "");
  EXPECT_EQ(kernel.ptx()->worker.refusal, "No.");
}

TEST(KernelCodeTest, SlicesNeedBlockTasksAndAFunctionThatRunsThem) {
  int object = 0;
  KernelDesc kernel;
  EXPECT_TRUE(IsSliceable(kernel)) << "a simulated kernel has no functions";
  kernel.functions()->original = &object;
  EXPECT_FALSE(IsSliceable(kernel));
  kernel.functions()->worker = &object;
  EXPECT_TRUE(IsSliceable(kernel)) << "workers run them too";
  kernel.simulation.nodes.emplace_back();
  EXPECT_FALSE(IsSliceable(kernel)) << "a chain of nodes has no block tasks";
  kernel.simulation.nodes.clear();
  kernel.code = PtxCode{.worker = {.refusal = "No."}, .slice = {.refusal = "No."}};
  EXPECT_FALSE(IsSliceable(kernel));
  kernel.ptx()->slice = {.entry = "twin"};
  EXPECT_TRUE(IsSliceable(kernel));
  kernel.code = GraphCode{.cut = {.segments = 2}};
  EXPECT_FALSE(IsSliceable(kernel));
}

TEST(KernelCodeTest, OnlyAGraphThatWasCutHasSegments) {
  KernelDesc kernel;
  EXPECT_EQ(kernel.segments(), 1);
  EXPECT_EQ(kernel.known_blocking(), nullptr);
  kernel.code = GraphCode{.cut = {.segments = 2}};
  EXPECT_EQ(kernel.segments(), 2);
  EXPECT_EQ(kernel.known_blocking(), nullptr) << "nobody measured its nodes";
  const std::vector<int64_t> durations_ns = {1000, 3000};
  kernel.graph()->cut.blocking = SegmentBlocking(durations_ns, 1000);
  ASSERT_NE(kernel.known_blocking(), nullptr);
  EXPECT_EQ(kernel.known_blocking()->longest_ns(), 3000);
}

TEST(KernelCodeTest, HandlesAndAddressesAreDroppedAndOptionsStay) {
  int object = 0;
  KernelCode functions = FunctionCode{&object, &object, &object};
  DropHandles(functions);
  EXPECT_EQ(std::get<FunctionCode>(functions).original, nullptr);
  EXPECT_EQ(std::get<FunctionCode>(functions).worker, nullptr);
  EXPECT_EQ(std::get<FunctionCode>(functions).slice, nullptr);

  KernelCode text = PtxCode{.text = "ptx", .functions = {&object, nullptr, nullptr}};
  DropHandles(text);
  ASSERT_TRUE(std::holds_alternative<FunctionCode>(text));
  EXPECT_EQ(std::get<FunctionCode>(text).original, nullptr);

  KernelCode code = GraphCode{.capture = [](void*, void*, int32_t) { return 0; },
                              .capture_user = &object,
                              .graph = &object,
                              .graph_exec = &object,
                              .segment_ns = 25'000,
                              .warm_memory = {{4096, 16}}};
  DropHandles(code);
  const GraphCode& graph = std::get<GraphCode>(code);
  EXPECT_EQ(graph.capture, nullptr);
  EXPECT_EQ(graph.capture_user, nullptr);
  EXPECT_EQ(graph.graph, nullptr);
  EXPECT_EQ(graph.graph_exec, nullptr);
  EXPECT_TRUE(graph.warm_memory.empty());
  EXPECT_EQ(graph.segment_ns, 25'000);

  KernelCode call = LibraryCall{.operation = LibraryOperation::kSoftmax, .channels = 8};
  DropHandles(call);
  EXPECT_EQ(std::get<LibraryCall>(call).channels, 8);
}

}  // namespace
}  // namespace gpushare::core
