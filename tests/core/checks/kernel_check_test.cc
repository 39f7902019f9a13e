// Which kernels may be registered, at each limit, and what is put where nobody said anything.

#include "src/core/checks/kernel_check.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

KernelDesc Kernel(TaskKind kind = TaskKind::kKernel) {
  KernelDesc kernel;
  kernel.name = "work";
  kernel.kind = kind;
  return kernel;
}

std::string Refusal(const KernelDesc& kernel) { return std::string(CheckKernel(kernel).message()); }

template <class Value>
void ExpectLimits(const KernelDesc& kernel, Value KernelDesc::*field, Value least, Value most) {
  for (const Value value : {least, most}) {
    KernelDesc within = kernel;
    within.*field = value;
    EXPECT_EQ(Refusal(within), "") << value;
  }
  for (const Value value : {least - 1, most + 1}) {
    KernelDesc beyond = kernel;
    beyond.*field = static_cast<Value>(value);
    EXPECT_NE(Refusal(beyond), "") << value;
  }
}

TEST(KernelCheckTest, NumbersLieWithinTheirLimits) {
  ExpectLimits(Kernel(), &KernelDesc::threads_per_block, 1, kMaxThreadsPerBlock);
  ExpectLimits(Kernel(), &KernelDesc::workers_per_sm_max, 1, kMaxWorkersPerSm);
  ExpectLimits(Kernel(), &KernelDesc::registers_per_thread, 0, kMaxRegistersPerThread);
  ExpectLimits(Kernel(), &KernelDesc::yield_interval_ns, int64_t{0}, kMaxDurationNs);
  ExpectLimits(Kernel(), &KernelDesc::solo_hint_ns, int64_t{0}, kMaxDurationNs);
  KernelDesc shared = Kernel();
  shared.shared_memory_bytes = 1000;
  ExpectLimits(shared, &KernelDesc::dynamic_shared_memory_bytes, 0, 1000);
  shared.shared_memory_bytes = -1;
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
    bool KernelDesc::*const option =
        places ? &KernelDesc::measure_places : &KernelDesc::measure_nodes;
    KernelDesc graph = Kernel(TaskKind::kGraph);
    graph.*option = true;
    graph.graph = &graph;
    EXPECT_EQ(Refusal(graph), "");
    graph.graph = nullptr;
    graph.graph_exec = &graph;
    graph.confinable = false;
    EXPECT_EQ(Refusal(graph), "'work' has " + name +
                                  ", and only a graph that comes as a graph or as a capture is "
                                  "measured.");
    KernelDesc kernel = Kernel();
    kernel.*option = true;
    EXPECT_NE(Refusal(kernel), "");
  }
}

TEST(KernelCheckTest, OnlyAGraphThatIsNeverCutHasWarmMemory) {
  KernelDesc graph = Kernel(TaskKind::kGraph);
  graph.graph = &graph;
  graph.segment_ns = -1;
  graph.warm_memory = {{4096, 16}};
  EXPECT_EQ(Refusal(graph), "");
  const std::string refusal =
      "'work' has warm memory, and only a graph has it that comes as a graph or as a capture and "
      "is never cut (segment_ns -1).";
  KernelDesc cut = graph;
  cut.segment_ns = 0;
  EXPECT_EQ(Refusal(cut), refusal);
  KernelDesc instance = graph;
  instance.graph = nullptr;
  instance.graph_exec = &instance;
  instance.confinable = false;
  EXPECT_EQ(Refusal(instance), refusal);
  KernelDesc kernel = Kernel();
  kernel.warm_memory = graph.warm_memory;
  EXPECT_EQ(Refusal(kernel), refusal);
}

TEST(KernelCheckTest, ARangeOfWarmMemoryHasAnAddressAndAnEnd) {
  KernelDesc graph = Kernel(TaskKind::kGraph);
  graph.graph = &graph;
  graph.segment_ns = -1;
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  for (const MemoryRange& range : {MemoryRange{0, 16}, MemoryRange{4096, 0},
                                   MemoryRange{4096, kLast}, MemoryRange{kLast, 1}}) {
    graph.warm_memory = {{4096, 16}, range};
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
  kernel.threads_per_block = 1025;
  EXPECT_EQ(Refusal(kernel), "Kernel 'work' has 1025 threads a block, and CUDA allows 1 to 1024.");
  kernel = Kernel();
  kernel.workers_per_sm_max = 33;
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
    kernel.block_x = x;
    kernel.block_y = y;
    kernel.block_z = z;
    kernel.threads_per_block = threads;
    EXPECT_EQ(Refusal(kernel).empty(), accepted)
        << x << " x " << y << " x " << z << ", " << threads << " threads";
  }
}

TEST(KernelCheckTest, CopiesAndOpaqueWorkAreNoKernels) {
  EXPECT_NE(Refusal(Kernel(TaskKind::kMemcpy)), "");
  EXPECT_NE(Refusal(Kernel(TaskKind::kOpaque)), "");
  for (const TaskKind kind : {TaskKind::kKernel, TaskKind::kGraph, TaskKind::kLibrary}) {
    EXPECT_EQ(Refusal(Kernel(kind)), "");
  }
}

// Each field that only one kind has, set in a kernel of every kind.
TEST(KernelCheckTest, WhatOneKindHasIsRefusedInTheOthers) {
  int object = 0;
  struct Case {
    TaskKind kind;
    void (*set)(KernelDesc&, void*);
  };
  for (const Case& each : std::vector<Case>{
           {TaskKind::kKernel, [](KernelDesc&k, void*p) { k.original_function = p; }},
           {TaskKind::kKernel, [](KernelDesc&k, void*p) { k.worker_function = p; }},
           {TaskKind::kKernel, [](KernelDesc&k, void*p) { k.slice_function = p; }},
           {TaskKind::kKernel,
            [](KernelDesc&k, void*) {
              k.block_x = k.threads_per_block;
              k.block_y = k.block_z = 1;
            }},
           {TaskKind::kKernel,
            [](KernelDesc&k, void*) {
              k.shared_memory_bytes = k.dynamic_shared_memory_bytes = 64;
            }},
           {TaskKind::kGraph, [](KernelDesc&k, void*p) { k.graph = p; }},
           {TaskKind::kGraph,
            [](KernelDesc&k, void*p) {
              k.graph_exec = p;
              k.confinable = false;
            }},
           {TaskKind::kGraph,
            [](KernelDesc&k, void*) { k.capture = [](void*, void*, int32_t) { return 0; }; }},
           {TaskKind::kLibrary,
            [](KernelDesc&k, void*) {
              k.library_call.operation = LibraryOperation::kMatmul;
              k.library_call.m = k.library_call.n = k.library_call.k = 1;
            }},
       }) {
    for (const TaskKind kind : {TaskKind::kKernel, TaskKind::kGraph, TaskKind::kLibrary}) {
      KernelDesc kernel = Kernel(kind);
      each.set(kernel, &object);
      EXPECT_EQ(Refusal(kernel).empty(), kind == each.kind) << Refusal(kernel);
    }
  }
}

TEST(KernelCheckTest, AGraphComesInOneForm) {
  int object = 0;
  const CaptureFunction capture = [](void*, void*, int32_t) { return 0; };
  for (int forms = 0; forms < 8; ++forms) {
    KernelDesc graph = Kernel(TaskKind::kGraph);
    graph.confinable = false;
    if ((forms & 1) != 0) graph.graph = &object;
    if ((forms & 2) != 0) graph.graph_exec = &object;
    if ((forms & 4) != 0) graph.capture = capture;
    const bool one = forms == 0 || forms == 1 || forms == 2 || forms == 4;
    EXPECT_EQ(Refusal(graph).empty(), one) << forms;
    // An instantiated graph is made for the whole device.
    graph.confinable = true;
    EXPECT_EQ(Refusal(graph).empty(), one && forms != 2) << forms;
  }
}

TEST(FillUnknownTest, WhatNobodySaidIsTheDefault) {
  KernelDesc kernel;
  kernel.threads_per_block = kernel.registers_per_thread = kernel.workers_per_sm_max = 0;
  FillUnknown(kernel);
  EXPECT_EQ(kernel.threads_per_block, kDefaultThreadsPerBlock);
  EXPECT_EQ(kernel.registers_per_thread, kDefaultRegistersPerThread);
  EXPECT_EQ(kernel.workers_per_sm_max, kDefaultWorkersPerSm);
  EXPECT_EQ(kernel.shared_memory_bytes, 0);
}

TEST(FillUnknownTest, WhatSomebodySaidStays) {
  KernelDesc kernel;
  kernel.threads_per_block = 1;
  kernel.registers_per_thread = 1;
  kernel.workers_per_sm_max = 1;
  kernel.shared_memory_bytes = 100;
  kernel.dynamic_shared_memory_bytes = 10;
  FillUnknown(kernel);
  EXPECT_EQ(kernel.threads_per_block, 1);
  EXPECT_EQ(kernel.registers_per_thread, 1);
  EXPECT_EQ(kernel.workers_per_sm_max, 1);
  EXPECT_EQ(kernel.shared_memory_bytes, 100);
}

TEST(FillUnknownTest, AShapeGivesTheThreadsAndDynamicMemoryIsMemory) {
  KernelDesc kernel;
  kernel.threads_per_block = 0;
  kernel.block_x = 4;
  kernel.block_y = 8;
  kernel.block_z = 2;
  kernel.dynamic_shared_memory_bytes = 10;
  FillUnknown(kernel);
  EXPECT_EQ(kernel.threads_per_block, 64);
  EXPECT_EQ(kernel.shared_memory_bytes, 10);
}

}  // namespace
}  // namespace gpushare::core
