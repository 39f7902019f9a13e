// Graphs whose runs can be checked, for segments_test.cc. Plain types, so that the .cu file needs
// no Abseil. Every function answers a CUDA runtime error code, or null, where something fails.

#ifndef GPUSHARE_TESTS_CUDA_GRAPHS_SEGMENTS_KERNELS_H_
#define GPUSHARE_TESTS_CUDA_GRAPHS_SEGMENTS_KERNELS_H_

#include <cstdint>
#include <vector>

namespace gpushare::cuda {

// Device memory of `count` zeros.
uint64_t* MakeValues(int count);
std::vector<uint64_t> ReadValues(const uint64_t* values, int count);
void ClearValues(uint64_t* values, int count);

// A chain of `nodes` kernels that spin for `wait_ns` on `blocks` blocks each. Kernel i appends i to
// the log: log[0] is the number of entries.
void* MakeChain(int nodes, uint32_t wait_ns, int blocks, uint64_t* log);
// The same with a wait for each kernel.
void* MakeUnevenChain(const std::vector<uint32_t>& waits_ns, int blocks, uint64_t* log);

// Node i sets values[i] to 1 + 31 x the sum of its parents' values. Every 16th node is a fill of
// values[i] with 7 in each byte, every 16th (from the 8th on) a copy of its first parent's value.
struct Parents {
  std::vector<int> of;  // at most 2
};
void* MakeMixture(const std::vector<Parents>& nodes, uint64_t* values);

// A chain of kernels in clusters, each with 64 KB of dynamic shared memory. Its blocks add 1 to
// *count: four clusters of each kernel.
struct ClusterChain {
  int nodes = 0;
  int cluster = 1;
  uint64_t* count = nullptr;
  int last_cluster = 0;  // of the last kernel; 0: as the others
};
void* MakeClusters(ClusterChain chain);
// The same by a capture callback (core::CaptureFunction); `user` is a ClusterChain.
int32_t CaptureClusters(void* user, void* stream, int32_t sm_count);

// A chain of `count` child graphs, every fourth of them inside another one. Child i fills
// values[3i], adds it to the child before in values[3i + 1], and copies that to values[3i + 2].
void* MakeNested(int count, uint64_t* values);

// A chain of `count` nodes, each for kShapeWords values of its own: a fill of rows, a copy of rows
// between two pitches, and a kernel, in turn.
inline constexpr int kShapeWords = 32;
void* MakeShapes(int count, uint64_t* values);

// The chain of MakeChain with programmatic edges: each kernel starts early, and then waits for the
// one before it.
void* MakeProgrammatic(int nodes, uint32_t wait_ns, uint64_t* log);

// Three kernels, of which the application's kernels may update the second. A capture callback;
// `user` is a log.
int32_t CaptureUpdatable(void* user, void* stream, int32_t sm_count);

// A chain of three kernels with a host function behind the first.
void* MakeWithHostFunction(uint64_t* log);

void DestroyGraph(void* graph);

// Runs an instance of the graph on a stream of its own: ns for each of `times` runs back to back,
// the best of three tries.
double TimeWholeGraph(void* graph, int times);
// Runs the graph once, whole. False: it does not run.
bool RunWholeGraph(void* graph);
int64_t FreeMemoryBytes();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_GRAPHS_SEGMENTS_KERNELS_H_
