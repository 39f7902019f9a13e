// A registered kernel: what the planner and the devices know of it. Immutable once registered.
//
//   KernelDesc kernel;                              // an ordinary kernel
//   kernel.code = GraphCode{.segment_ns = -1};      // now a graph: kernel.kind() is kGraph
//
// The simulation record is data about the kernel (how long a block task takes, which resources it
// uses, how its speed follows the SM count). The simulated device runs on it; the cost model takes
// it as its prior until it has measurements of its own.

#ifndef GPUSHARE_SRC_CORE_SEAMS_KERNEL_H_
#define GPUSHARE_SRC_CORE_SEAMS_KERNEL_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "src/core/base/types.h"
#include "src/core/queueing/segment_blocking.h"
#include "src/core/seams/kernel_code.h"
#include "src/core/seams/library_call.h"

namespace gpushare::core {

// Share of capacity that the kernel uses at full occupancy and alone, 0 to 1. issue, tensor,
// special (transcendental pipe) are of each SM it runs on; dram and l2 of the whole device when it
// runs on all SMs.
struct ResourceDemand {
  double issue = 0;
  double tensor = 0;
  double special = 0;
  double dram = 0;
  double l2 = 0;
};

// Speed on `sms` SMs relative to the whole device. Not monotone (docs/hardware.md: 84 SMs beat
// 124).
struct SpeedPoint {
  int32_t sms = 0;
  double speed = 0;
};

// What a profiler counted of the kernel alone, as an ordinary grid on the whole device
// (docs/samples.md, "Counters"). Shares are of the peak, 0 to 1.
struct KernelCounters {
  double instructions = 0;         // of warps, in one block task; 0: nobody counted
  double memory_instructions = 0;  // of these, loads and stores of global memory
  double sectors_per_request =
      0;  // 32-byte sectors; 4 where a warp reads 4 bytes a thread in a row
  double issue = 0;
  double fma = 0;
  double alu = 0;
  double tensor = 0;
  double special = 0;
  double lsu = 0;
  double shared = 0;
  double l1 = 0;
  double l2 = 0;
  double dram = 0;
  double dram_write = 0;  // of dram, what writes take

  bool present() const { return instructions > 0; }
};

// One node of a graph, repeated `repeat` times in a row; an ordinary grid of `blocks` blocks.
struct GraphNode {
  int64_t duration_ns = 0;  // alone on the whole device, without the gap to the next node
  int32_t blocks = 0;
  int32_t repeat = 1;
  bool whole_sm = true;  // a block takes all of an SM's registers or shared memory
  ResourceDemand demand;
  // One block task of the node's twin, alone. 0: it has no twin, and runs to its end.
  int64_t block_task_ns = 0;
  // The registered kernel of which the node launches `blocks` block tasks; empty: not one of those.
  std::string kernel = {};
};

struct SimulationRecord {
  bool present = false;
  int64_t block_task_ns = 0;     // one block task, all workers_per_sm workers resident, alone
  double block_task_spread = 0;  // relative standard deviation between block tasks
  double worker_overhead = 0;    // PTB form over original grid, 0.003 = 0.3 %; may be < 0
  // Outstanding memory requests an SM, relative to a streaming kernel (1): the weight with which
  // it claims DRAM bandwidth once that is short.
  double memory_parallelism = 0;
  // Below full occupancy an SM's speed is min(1, occupancy / saturating_occupancy).
  double saturating_occupancy = 1;
  ResourceDemand demand;
  std::vector<SpeedPoint> speed;  // by sms, ascending; empty: proportional to SMs
  std::vector<GraphNode> nodes;   // graphs only
  int64_t node_gap_ns = 0;        // between dependent nodes
};

// Of a kernel of which neither the caller nor the profile nor the device says more.
inline constexpr int32_t kDefaultThreadsPerBlock = 256;
inline constexpr int32_t kDefaultRegistersPerThread = 32;
inline constexpr int32_t kDefaultWorkersPerSm = 8;

// What slices of the kernel cost, measured alone, slice behind slice in one stream (Kernelet 4.1).
struct SliceRecord {
  // The smallest slice whose overhead is within the calibration's limit, 2 %; 0: unknown.
  int64_t block_tasks = 0;
  double overhead = 0;  // there, over one launch of all block tasks

  bool present() const { return block_tasks > 0; }
};

// What a block of the kernel takes of an SM, and how many workers an SM holds.
struct KernelResources {
  // 0 in these, shared memory and workers: unknown. Scheduler::RegisterKernel asks the device, and
  // puts the defaults where it does not know either; from then on they are never 0.
  int32_t threads_per_block = kDefaultThreadsPerBlock;
  int32_t registers_per_thread = kDefaultRegistersPerThread;
  int32_t shared_memory_bytes = 0;  // static and dynamic, of a block
  int32_t dynamic_shared_memory_bytes = 0;
  // Shape of a block; zeros: {threads_per_block, 1, 1}.
  int32_t block_x = 0, block_y = 0, block_z = 0;
  int32_t workers_per_sm_max = kDefaultWorkersPerSm;  // M of CapSM: workers an SM holds
  bool roomy = false;  // another kernel's blocks fit beside it in an SM
  // Its workers take the shared memory that they need and leave the rest of an SM's memory to L1
  // (kKeepsL1). The device fills it.
  bool keeps_l1 = false;
};

struct KernelDesc {
  KernelId id;
  std::string name;
  KernelCode code;  // of an ordinary kernel unless it is given another
  KernelResources resources;
  bool evictable = false;         // has a worker form that reads an eviction word, or segments
  bool confinable = true;         // may be launched in a partition
  int64_t yield_interval_ns = 0;  // distance of yield points inside a block task, 0: none
  int64_t solo_hint_ns = 0;       // the caller's own estimate of one launch alone, 0: none
  KernelCounters counters;
  SliceRecord slices;
  SimulationRecord simulation;

  TaskKind kind() const { return KindOf(code); }
  // The code as one of its forms; null: it has another form. A kernel of PTX has functions too.
  const FunctionCode* functions() const {
    const PtxCode* const text = ptx();
    return text != nullptr ? &text->functions : std::get_if<FunctionCode>(&code);
  }
  FunctionCode* functions() {
    PtxCode* const text = std::get_if<PtxCode>(&code);
    return text != nullptr ? &text->functions : std::get_if<FunctionCode>(&code);
  }
  const PtxCode* ptx() const { return std::get_if<PtxCode>(&code); }
  const GraphCode* graph() const { return std::get_if<GraphCode>(&code); }
  const LibraryCall* library_call() const { return std::get_if<LibraryCall>(&code); }
  PtxCode* ptx() { return std::get_if<PtxCode>(&code); }
  GraphCode* graph() { return std::get_if<GraphCode>(&code); }
  LibraryCall* library_call() { return std::get_if<LibraryCall>(&code); }

  // In how many segments its BE tasks run; 1: whole.
  int32_t segments() const { return graph() == nullptr ? 1 : graph()->cut.segments; }
  // How long its segments block; null unless the durations of all segments are known.
  const SegmentBlocking* known_blocking() const {
    return graph() != nullptr && graph()->cut.blocking.known() ? &graph()->cut.blocking : nullptr;
  }
};

// A measured duration of a fused kernel. Times are relative to the TC part's own, alone in its
// ordinary form.
struct FusedPoint {
  double load_ratio = 0;      // the CD part's own
  double duration_ratio = 0;  // the fused kernel's
};

// One precompiled fused kernel: a blocks of the TC part and b blocks of the CD part share a block.
struct FusedKernelDesc {
  KernelId id;
  std::string name;
  KernelId tensor_part;
  KernelId cuda_part;
  int32_t tensor_blocks = 1;
  int32_t cuda_blocks = 1;
  double opportune_load_ratio = 1;      // r0: load ratio where both parts end together
  double opportune_duration_ratio = 1;  // t0: fused duration there over the TC part's own
  std::vector<FusedPoint> points = {};  // a calibration's; they count for more than r0 and t0
  // 0 in these: unknown, and the device fills in what it reads from the function.
  int32_t threads_per_block = 0;  // of a fused block, all parts
  int32_t dynamic_shared_memory_bytes = 0;
  int32_t blocks_per_sm = 0;  // fused blocks that an SM holds; never 0 once registered
  void* function = nullptr;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_KERNEL_H_
