// The kernels of several_gpus_benchmark on each GPU of a group: an LC query, a BE item, and a part
// of a step. The simulated ones need no GPU. Threads: Prepare and EnqueuePart on any.

#ifndef GPUSHARE_BENCHMARKS_GROUP_GROUP_WORK_H_
#define GPUSHARE_BENCHMARKS_GROUP_GROUP_WORK_H_

#include <cstdint>
#include <gpushare/group/group.hpp>
#include <memory>

namespace gpushare::benchmarks {

enum class GroupJob { kQuery, kBatch };

// Durations alone on an H200.
inline constexpr int64_t kQueryNs = 500'000;
inline constexpr int64_t kBatchNs = 5'000'000;
inline constexpr int64_t kBlockTaskNs = 30'000;
inline constexpr int64_t kPartNs = 400'000;

class GroupWork {
 public:
  virtual ~GroupWork() = default;
  // The kernel on each GPU of the group.
  virtual const GroupKernel* Kernel(GroupJob job) const = 0;
  // Gives the task its grid and its arguments on this GPU.
  virtual void Prepare(GroupJob job, int gpu, gpushare_task_options* task) const = 0;
  // Enqueues a part of a step, which takes kPartNs alone.
  virtual void EnqueuePart(int gpu, void* stream) const = 0;
  // Compares what the kernels wrote with a reference; fails where it is wrong.
  virtual void Verify() const = 0;
};

std::unique_ptr<GroupWork> MakeSimulatedWork(Group& group);
// Fails with kNoGpu in a build without CUDA.
std::unique_ptr<GroupWork> MakeCudaWork(Group& group);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GROUP_GROUP_WORK_H_
