// One launch of a graph in segments: what the device fills in, and the feed of a lane runs.
//
// Invariants: what it points to lives until the launch is reported.
// Threads: immutable once the feed has it.

#ifndef GPUSHARE_SRC_CUDA_LANES_SEGMENT_RUN_H_
#define GPUSHARE_SRC_CUDA_LANES_SEGMENT_RUN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/base/ids.h"
#include "src/core/seams/segment_lengths.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class NodeWorkers;
struct CudaLane;

struct SegmentRun {
  absl::Span<const CUgraphExec> segments;  // of the whole graph
  absl::Span<const int64_t> durations_ns;  // of each alone; empty: unknown
  int64_t segment_ns = 0;                  // what the graph was cut by
  // The longer cuts (segment_lengths.h), and the instance of each of their groups; empty: the run
  // has its own segments alone.
  absl::Span<const core::LongerCut> longer;
  absl::Span<const std::vector<CUgraphExec>> groups;
  const std::atomic<int64_t>* longest_ns = nullptr;  // how long segments may be; null: as cut
  core::KernelId graph;
  // One block task of each segment that may run as workers, else 0; empty: none may.
  absl::Span<const int64_t> block_tasks_ns;
  NodeWorkers* workers = nullptr;  // launches these
  CudaLane* lane = nullptr;        // for them
  bool evicts_workers = false;     // the lane does; else only the rest of a segment runs as workers
  int64_t mean_ns = 0;             // of a segment, as whole runs alone took; 0: unknown
  size_t first = 0;                // the segment that the launch begins with
  int64_t rest_ns = 0;    // how long the rest of that segment takes; 0: nothing of it is done
  uint64_t sequence = 0;  // of the launch on its lane
  uint32_t epoch = 0;     // low 32 bits of the launch's epoch
  int32_t counter = 0;
  std::atomic<uint64_t>* eviction_word = nullptr;  // null: it is never evicted
  CUevent signal = nullptr;                        // recorded behind the last segment
  // Nothing was on the lane before the first segment, so that its duration is known too.
  bool starts_at_once = false;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_SEGMENT_RUN_H_
