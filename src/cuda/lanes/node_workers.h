// Who launches the segments that run as the workers of a twin, and says how they ended.
//
// Where in the flow: the feed of a lane calls it, for a segment that is one node with a twin
// (graphs/node_twins.h). The launcher implements it, because this room may include neither that of
// graphs nor that of code. Tests implement it too.
// Invariants: a number is used for one launch of workers of the lane.
// Threads: as of SegmentFeed.

#ifndef GPUSHARE_SRC_CUDA_LANES_NODE_WORKERS_H_
#define GPUSHARE_SRC_CUDA_LANES_NODE_WORKERS_H_

#include <cstddef>
#include <cstdint>

#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

struct CudaLane;
struct SegmentRun;

class NodeWorkers {
 public:
  struct Ended {
    bool known = false;  // the last worker has written its record
    int64_t block_tasks_left = 0;
    int64_t block_tasks = 0;  // of the node
  };

  virtual ~NodeWorkers() = default;
  // As launch `number` of workers on the lane. `begins`: with the node's first block task.
  virtual CUresult LaunchNode(CudaLane& lane, const SegmentRun& run, size_t segment, bool begins,
                              uint64_t number) = 0;
  // How that launch ended. Its event was reached.
  virtual Ended EndOfNode(const CudaLane& lane, const SegmentRun& run, size_t segment,
                          uint64_t number) const = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_NODE_WORKERS_H_
