// Which kernels may be registered, at each limit, and what is put where nobody said anything.

#include "src/core/checks/kernel_check.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

KernelDesc Kernel(KernelCode code = FunctionCode()) {
  KernelDesc kernel;
  kernel.name = "work";
  kernel.code = std::move(code);
  return kernel;
}

std::string Refusal(const KernelDesc& kernel) { return std::string(CheckKernel(kernel).message()); }

// `field`: where the value is in a kernel.
template <class Field, class Value>
void ExpectLimits(const KernelDesc& kernel, Field field, Value least, Value most) {
  for (const Value value : {least, most}) {
    KernelDesc within = kernel;
    field(within) = value;
    EXPECT_EQ(Refusal(within), "") << value;
  }
  for (const Value value : {least - 1, most + 1}) {
    KernelDesc beyond = kernel;
    field(beyond) = static_cast<Value>(value);
    EXPECT_NE(Refusal(beyond), "") << value;
  }
}

template <class Value>
void ExpectLimits(const KernelDesc& kernel, Value KernelDesc::*field, Value least, Value most) {
  ExpectLimits(
      kernel, [field](KernelDesc& of) -> Value& { return of.*field; }, least, most);
}

void ExpectLimits(const KernelDesc& kernel, int32_t KernelResources::*field, int32_t least,
                  int32_t most) {
  ExpectLimits(
      kernel, [field](KernelDesc& of) -> int32_t& { return of.resources.*field; }, least, most);
}

TEST(KernelCheckTest, NumbersLieWithinTheirLimits) {
  ExpectLimits(Kernel(), &KernelResources::threads_per_block, 1, kMaxThreadsPerBlock);
  ExpectLimits(Kernel(), &KernelResources::workers_per_sm_max, 1, kMaxWorkersPerSm);
  ExpectLimits(Kernel(), &KernelResources::registers_per_thread, 0, kMaxRegistersPerThread);
  ExpectLimits(Kernel(), &KernelDesc::yield_interval_ns, int64_t{0}, kMaxDurationNs);
  ExpectLimits(Kernel(), &KernelDesc::solo_hint_ns, int64_t{0}, kMaxDurationNs);
  KernelDesc shared = Kernel();
  shared.resources.shared_memory_bytes = 1000;
  ExpectLimits(shared, &KernelResources::dynamic_shared_memory_bytes, 0, 1000);
  shared.resources.shared_memory_bytes = -1;
  EXPECT_NE(Refusal(shared), "");
  for (const int64_t ns : {int64_t{0}, kMaxDurationNs, int64_t{-1}, kMaxDurationNs + 1}) {
    KernelDesc kernel = Kernel();
    kernel.simulation.block_task_ns = ns;
    EXPECT_EQ(Refusal(kernel).empty(), ns >= 0 && ns <= kMaxDurationNs) << ns;
  }
}

TEST(KernelCheckTest, OnlyAGraphThatHasNodesIsMeasured) {
  for (const bool places : {false, true}) {
    const std::string name = places ? "measure_places" : "measure_nodes";
    GraphCode graph{.measure_nodes = !places, .measure_places = places};
    graph.graph = &graph;
    EXPECT_EQ(Refusal(Kernel(graph)), "");
    graph.graph = nullptr;
    graph.graph_exec = &graph;
    KernelDesc instance = Kernel(graph);
    instance.confinable = false;
    EXPECT_EQ(Refusal(instance), "'work' has " + name +
                                     ", and only a graph that comes as a graph or as a capture is "
                                     "measured.");
  }
}

TEST(KernelCheckTest, ASegmentHasALengthOrIsNeverCut) {
  for (const int64_t ns : {int64_t{-1}, int64_t{0}, int64_t{1}, kMaxDurationNs}) {
    EXPECT_EQ(Refusal(Kernel(GraphCode{.segment_ns = ns})), "") << ns;
  }
  EXPECT_EQ(Refusal(Kernel(GraphCode{.segment_ns = -2})),
            "Graph 'work' has segments of -2 ns, and they have 1 to 3600000000000 ns, 0 (default) "
            "or -1 (never).");
  EXPECT_NE(Refusal(Kernel(GraphCode{.segment_ns = kMaxDurationNs + 1})), "");
}

TEST(KernelCheckTest, OnlyAGraphThatIsNeverCutHasWarmMemory) {
  int object = 0;
  const GraphCode graph{.graph = &object, .segment_ns = -1, .warm_memory = {{4096, 16}}};
  EXPECT_EQ(Refusal(Kernel(graph)), "");
  const std::string refusal =
      "'work' has warm memory, and only a graph has it that comes as a graph or as a capture and "
      "is never cut (segment_ns -1).";
  GraphCode cut = graph;
  cut.segment_ns = 0;
  EXPECT_EQ(Refusal(Kernel(cut)), refusal);
  GraphCode instance = graph;
  instance.graph = nullptr;
  instance.graph_exec = &object;
  KernelDesc kernel = Kernel(instance);
  kernel.confinable = false;
  EXPECT_EQ(Refusal(kernel), refusal);
}

TEST(KernelCheckTest, ARangeOfWarmMemoryHasAnAddressAndAnEnd) {
  int object = 0;
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  for (const MemoryRange& range : {MemoryRange{0, 16}, MemoryRange{4096, 0},
                                   MemoryRange{4096, kLast}, MemoryRange{kLast, 1}}) {
    const KernelDesc graph =
        Kernel(GraphCode{.graph = &object, .segment_ns = -1, .warm_memory = {{4096, 16}, range}});
    EXPECT_NE(Refusal(graph).find("Range 1 of the warm memory of graph 'work'"), std::string::npos)
        << range.address << ", " << range.bytes;
  }
}

TEST(KernelCheckTest, ARefusalNamesTheValueAndTheLimit) {
  KernelDesc kernel = Kernel();
  kernel.name = "";
  EXPECT_EQ(Refusal(kernel), "The kernel has no name.");
  kernel.name = std::string(63, 'a');
  EXPECT_EQ(Refusal(kernel), "");
  kernel.name = std::string(64, 'a');
  EXPECT_EQ(Refusal(kernel), "The kernel name has 64 bytes, and the limit is 63.");
  kernel = Kernel();
  kernel.resources.threads_per_block = 1025;
  EXPECT_EQ(Refusal(kernel), "Kernel 'work' has 1025 threads a block, and CUDA allows 1 to 1024.");
  kernel = Kernel();
  kernel.resources.workers_per_sm_max = 33;
  EXPECT_EQ(Refusal(kernel), "Kernel 'work' has 33 workers an SM, and an SM holds 1 to 32.");
  kernel = Kernel();
  kernel.solo_hint_ns = -1;
  EXPECT_EQ(Refusal(kernel),
            "The solo hint of 'work' is -1 ns, and it must lie between 0 and 3600000000000 ns.");
}

TEST(KernelCheckTest, ABlocksShapeHasAsManyThreadsAsTheBlock) {
  struct Case {
    int32_t x, y, z, threads;
    bool accepted;
  };
  for (const auto& [x, y, z, threads, accepted] : std::vector<Case>{{0, 0, 0, 256, true},
                                                                    {256, 1, 1, 256, true},
                                                                    {1, 256, 1, 256, true},
                                                                    {1, 1, 256, 256, true},
                                                                    {4, 8, 8, 256, true},
                                                                    {1024, 1, 1, 1024, true},
                                                                    {4, 8, 8, 255, false},
                                                                    {256, 0, 1, 256, false},
                                                                    {256, 1, 0, 256, false},
                                                                    {0, 1, 256, 256, false},
                                                                    {0, 0, 256, 256, false},
                                                                    {0, 256, 0, 256, false},
                                                                    {256, 0, 0, 256, false},
                                                                    {-1, -256, 1, 256, false},
                                                                    {-16, 1, -16, 256, false},
                                                                    {1, -16, -16, 256, false},
                                                                    {1025, 1, 1, 1024, false},
                                                                    {1, 1025, 1, 1024, false},
                                                                    {1, 1, 1025, 1024, false}}) {
    KernelDesc kernel = Kernel();
    kernel.resources.block_x = x;
    kernel.resources.block_y = y;
    kernel.resources.block_z = z;
    kernel.resources.threads_per_block = threads;
    EXPECT_EQ(Refusal(kernel).empty(), accepted)
        << x << " x " << y << " x " << z << ", " << threads << " threads";
  }
}

TEST(KernelCheckTest, OnlyAnOrdinaryKernelHasBlocks) {
  const std::string refusal =
      "'work' has a block's shape or dynamic shared memory, and it is not of kind kernel.";
  for (const KernelCode& code :
       {KernelCode(FunctionCode()), KernelCode(GraphCode()), KernelCode(LibraryCall())}) {
    KernelDesc kernel = Kernel(code);
    EXPECT_EQ(Refusal(kernel), "");
    const std::string expected = kernel.kind() == TaskKind::kKernel ? "" : refusal;
    kernel.resources.block_x = kernel.resources.threads_per_block;
    kernel.resources.block_y = kernel.resources.block_z = 1;
    EXPECT_EQ(Refusal(kernel), expected);
    kernel = Kernel(code);
    kernel.resources.shared_memory_bytes = kernel.resources.dynamic_shared_memory_bytes = 64;
    EXPECT_EQ(Refusal(kernel), expected);
  }
}

TEST(KernelCheckTest, ALibraryCallHasTheShapesOfItsOperation) {
  LibraryCall call{.operation = LibraryOperation::kMatmul, .m = 1, .n = 1, .k = 1};
  EXPECT_EQ(Refusal(Kernel(call)), "");
  call.k = 0;
  EXPECT_NE(Refusal(Kernel(call)), "");
}

TEST(KernelCheckTest, AGraphComesInOneForm) {
  int object = 0;
  const CaptureFunction capture = [](void*, void*, int32_t) { return 0; };
  for (int forms = 0; forms < 8; ++forms) {
    GraphCode code;
    if ((forms & 1) != 0) code.graph = &object;
    if ((forms & 2) != 0) code.graph_exec = &object;
    if ((forms & 4) != 0) code.capture = capture;
    KernelDesc graph = Kernel(code);
    graph.confinable = false;
    const bool one = forms == 0 || forms == 1 || forms == 2 || forms == 4;
    EXPECT_EQ(Refusal(graph).empty(), one) << forms;
    // An instantiated graph is made for the whole device.
    graph.confinable = true;
    EXPECT_EQ(Refusal(graph).empty(), one && forms != 2) << forms;
  }
}

TEST(FillUnknownTest, WhatNobodySaidIsTheDefault) {
  KernelDesc kernel;
  kernel.resources.threads_per_block = kernel.resources.registers_per_thread =
      kernel.resources.workers_per_sm_max = 0;
  FillUnknown(kernel);
  EXPECT_EQ(kernel.resources.threads_per_block, kDefaultThreadsPerBlock);
  EXPECT_EQ(kernel.resources.registers_per_thread, kDefaultRegistersPerThread);
  EXPECT_EQ(kernel.resources.workers_per_sm_max, kDefaultWorkersPerSm);
  EXPECT_EQ(kernel.resources.shared_memory_bytes, 0);
}

TEST(FillUnknownTest, WhatSomebodySaidStays) {
  KernelDesc kernel;
  kernel.resources.threads_per_block = 1;
  kernel.resources.registers_per_thread = 1;
  kernel.resources.workers_per_sm_max = 1;
  kernel.resources.shared_memory_bytes = 100;
  kernel.resources.dynamic_shared_memory_bytes = 10;
  FillUnknown(kernel);
  EXPECT_EQ(kernel.resources.threads_per_block, 1);
  EXPECT_EQ(kernel.resources.registers_per_thread, 1);
  EXPECT_EQ(kernel.resources.workers_per_sm_max, 1);
  EXPECT_EQ(kernel.resources.shared_memory_bytes, 100);
}

TEST(FillUnknownTest, AShapeGivesTheThreadsAndDynamicMemoryIsMemory) {
  KernelDesc kernel;
  kernel.resources.threads_per_block = 0;
  kernel.resources.block_x = 4;
  kernel.resources.block_y = 8;
  kernel.resources.block_z = 2;
  kernel.resources.dynamic_shared_memory_bytes = 10;
  FillUnknown(kernel);
  EXPECT_EQ(kernel.resources.threads_per_block, 64);
  EXPECT_EQ(kernel.resources.shared_memory_bytes, 10);
}

}  // namespace
}  // namespace gpushare::core
