// Turns a launch request into driver calls on the lane's stream, with one function for each form.
//
// Where in the flow: launch.
// Invariants: nothing is allocated. A request that is refused has enqueued no work.
// Threads: any, one at a time for each lane. The caller holds the lane's mutex, and the primary
// context is current.

#ifndef GPUSHARE_SRC_CUDA_LAUNCHER_H_
#define GPUSHARE_SRC_CUDA_LAUNCHER_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "src/core/seams/device.h"
#include "src/cuda/code/parameter_layout.h"
#include "src/cuda/code/prepared_functions.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/graphs/prepared_graphs.h"
#include "src/cuda/lanes/claim_counters.h"
#include "src/cuda/lanes/cuda_lane.h"
#include "src/cuda/lanes/node_workers.h"
#include "src/cuda/lanes/segment_run.h"
#include "src/cuda/library/library_calls.h"

namespace gpushare::cuda {

class Launcher final : public NodeWorkers {
 public:
  Launcher(const Context& context, const Places& places, const PreparedFunctions& functions,
           const PreparedGraphs& graphs, LibraryCalls& library, ClaimCounters& counters)
      : context_(context),
        places_(places),
        functions_(functions),
        graphs_(graphs),
        library_(library),
        counters_(counters) {}

  // Makes the lane's stream wait for the request's events. Needs no lock.
  absl::Status WaitForEvents(const CudaLane& lane, const core::LaunchRequest& request) const;

  // Enqueues both parts of a fused launch: as launch `sequence` of `lane` and as launch
  // `partner_sequence` of `partner_lane`, which may be the same lane.
  absl::Status EnqueueFused(CudaLane& lane, uint64_t sequence, CudaLane& partner_lane,
                            uint64_t partner_sequence, const core::LaunchRequest& request);

  // Enqueues the request as launch `sequence` of the lane. For opaque work the caller's function
  // has already enqueued the work.
  absl::Status Enqueue(CudaLane& lane, uint64_t sequence, const core::LaunchRequest& request);

  // For the feed of a lane, on the thread that polls or under the lane's mutex.
  CUresult LaunchNode(CudaLane& lane, const SegmentRun& run, size_t segment, bool begins,
                      uint64_t number) override;
  Ended EndOfNode(const CudaLane& lane, const SegmentRun& run, size_t segment,
                  uint64_t number) const override;

  // Records the request's signal event, if any, behind its work. Call after Enqueue or EnqueueFused
  // succeeded: the work is on the stream, whatever this answers.
  CUresult Signal(const CudaLane& lane, const core::LaunchRequest& request) const;

 private:
  // What MakeHeader needs for a worker launch, or for one part of a fused launch.
  struct WorkerPart {
    const core::LaunchPart* part = nullptr;
    CudaLane* lane = nullptr;
    const PreparedKernel* kernel = nullptr;
    uint64_t sequence = 0;
    std::array<unsigned int, 3> grid{1, 1, 1};
    int64_t workers = 1;
    int side = 0;  // of the pair of claim counters
  };

  // Fills the header. First enqueues on `stream` what zeroes memory for the launch, and the lane's
  // eviction word if it counts for the launch already.
  absl::Status MakeHeader(CUstream stream, WorkerPart& worker, gpushare_worker_launch& header);
  absl::Status WriteEarlyEviction(CUstream stream, const LaneWords& words, uint32_t epoch) const;
  absl::Status LaunchFused(CUstream stream, const PreparedFused& fused, int64_t blocks,
                           std::array<WorkerPart, 2>& parts);
  absl::Status EnqueueWork(CudaLane& lane, uint64_t sequence, const core::LaunchRequest& request);
  absl::Status Original(CudaLane& lane, const PreparedKernel& kernel,
                        const core::LaunchRequest& request);
  absl::Status LaunchWithCarveOut(CUstream stream, const PreparedKernel& kernel,
                                  const std::array<unsigned int, 3>& grid,
                                  ParameterAddresses& addresses) const;
  absl::Status Workers(CudaLane& lane, const PreparedKernel& kernel, uint64_t sequence,
                       const core::LaunchRequest& request);
  absl::Status Slice(CudaLane& lane, const PreparedKernel& kernel,
                     const core::LaunchRequest& request);
  absl::Status Graph(const CudaLane& lane, const core::KernelDesc& kernel);
  absl::Status Copy(CudaLane& lane, const core::CopyRequest& copy);
  absl::Status Library(const core::LaunchRequest& request);
  absl::Status LaunchWithHeader(CUstream stream, const PreparedKernel& kernel,
                                const PreparedFunction& function,
                                const gpushare_worker_launch& header, unsigned int blocks,
                                const core::LaunchRequest& request);

  const Context& context_;
  const Places& places_;
  const PreparedFunctions& functions_;
  const PreparedGraphs& graphs_;
  LibraryCalls& library_;
  ClaimCounters& counters_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LAUNCHER_H_
