// The code of a registered kernel, in one of its forms: functions, PTX, a graph or a library call.
//
// The form decides the kind of the kernel's tasks. A new form is one more alternative of KernelCode
// with its kKind. Readers that serve a single form ask for it (KernelDesc::graph()).

#ifndef GPUSHARE_SRC_CORE_SEAMS_KERNEL_CODE_H_
#define GPUSHARE_SRC_CORE_SEAMS_KERNEL_CODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "src/core/base/types.h"
#include "src/core/queueing/segment_blocking.h"
#include "src/core/seams/function_image.h"
#include "src/core/seams/library_call.h"

namespace gpushare::core {

// An ordinary kernel: CUfunctions, opaque to core. All are null on the simulated device.
struct FunctionCode {
  static constexpr TaskKind kKind = TaskKind::kKernel;

  void* original = nullptr;
  void* worker = nullptr;
  void* slice = nullptr;  // null: the worker function runs slices
};

// The worker or slice form of a kernel of PTX.
struct PtxForm {
  std::string entry = {};    // in the module; empty: the kernel has no such form
  std::string refusal = {};  // a sentence with the kernel and the line, where it was refused
  uint32_t line = 0;         // of the refusal, in the given text; 0: none, or the text as a whole

  bool made() const { return !entry.empty(); }
};

// A kernel of which only the PTX is known. Its twins stand in a module behind the original, so that
// they share its variables. The texts are for the registration only; the forms stay.
struct PtxCode {
  static constexpr TaskKind kKind = TaskKind::kKernel;

  std::string text = {};   // as given
  std::string entry = {};  // of the original
  std::string module =
      {};  // the original and its twins; empty: there are none, and the text serves
  PtxForm worker = {};
  PtxForm slice = {};
  std::array<int32_t, 3> block = {};  // the shape that the text requires; zeros: it says none
  bool must_evict = false;            // without a worker form the registration fails
  bool graph_nodes = false;  // nodes of graphs that have its original may run as its workers
  // The caller's own original, then what a device loaded; all null on the simulated device.
  FunctionCode functions = {};

  bool RunsSlices() const { return slice.made() || worker.made(); }
  void DropTexts() {
    text = {};
    module = {};
  }
};

// Enqueues the graph's work for a place of `sm_count` SMs on `stream`, which is being captured.
// Returns 0, or the caller's own error code, which makes the registration fail.
using CaptureFunction = int32_t (*)(void* user, void* stream, int32_t sm_count);

// How a device cut a graph into segments: contiguous parts of one topological order.
struct GraphCut {
  int32_t segments = 1;           // 1: the graph runs whole
  int64_t longest_ns = 0;         // the longest segment alone on the whole device; 0: unknown
  SegmentBlocking blocking = {};  // unknown unless the durations of all segments are known
  std::string whole_reason = {};  // a sentence, where it runs whole
  // Of the segments, those that are evicted between the block tasks of their one node.
  int32_t evictable_segments = 0;
};

// A task of a query whose graph is cut at kernel nodes (node_cut.h): the launch of a registered
// kernel that was a node, or the part of the graph between two of those.
struct GraphPiece {
  KernelId kernel = {};  // of a part: a graph that the library registers by itself
  bool is_node = false;  // a kernel node, which may be fused
  int64_t solo_ns = 0;   // alone on the whole device
  int64_t block_tasks = 1;
  std::array<int32_t, 3> grid = {};       // of a node; zeros: one dimension
  std::vector<std::byte> arguments = {};  // of a node
};

// Memory of the device.
struct MemoryRange {
  uint64_t address = 0;
  uint64_t bytes = 0;

  uint64_t end() const { return address + bytes; }
};

// A graph comes as one of three: captured once per place, a cudaGraph_t that is instantiated once
// per place, or a bare cudaGraphExec_t for the whole device. Native handles are opaque to core, and
// all are null on the simulated device.
struct GraphCode {
  static constexpr TaskKind kKind = TaskKind::kGraph;

  CaptureFunction capture = nullptr;
  void* capture_user = nullptr;
  void* graph = nullptr;
  void* graph_exec = nullptr;
  // Length of the segments that its BE tasks run in. 0: kSegmentNs; below 0: never cut.
  int64_t segment_ns = 0;
  bool measure_nodes = false;   // registering it may execute it twice, which measures its nodes
  bool measure_places = false;  // and may execute it in each place: its speed on fewer SMs
  // Of a graph that is never cut: read into L2 beside its first nodes, because BE work displaces
  // it.
  std::vector<MemoryRange> warm_memory = {};
  // Of its functions that belong to one context. Only during the registration.
  std::vector<FunctionImage> function_images = {};
  // What the device made of it (graph_cut.h). Scheduler::RegisterKernel writes it, and makes the
  // kernel evictable where there are several segments.
  GraphCut cut = {};
  // What a query of an LC app may run instead of the whole graph, in this order. Empty: nothing.
  // Scheduler::RegisterKernel writes it.
  std::vector<GraphPiece> pieces = {};

  // Never cut into segments and measured: LC work that may be cut at kernel nodes.
  bool MayBeCutAtNodes() const { return segment_ns < 0 && measure_nodes && graph_exec == nullptr; }
};

using KernelCode = std::variant<FunctionCode, GraphCode, LibraryCall, PtxCode>;

inline TaskKind KindOf(const KernelCode& code) {
  return std::visit([](const auto& form) { return form.kKind; }, code);
}

// The code of a kernel of which only the kind is known: a graph, a library call, else functions.
KernelCode CodeOfKind(TaskKind kind);

// Forgets what has no meaning in another process: native handles, addresses and texts. PTX becomes
// functions.
void DropHandles(KernelCode& code);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_KERNEL_CODE_H_
