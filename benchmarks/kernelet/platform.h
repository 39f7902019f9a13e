// Where an experiment runs: the simulated device in virtual time, or a GPU in real time.
//
//   KernelOptions kernel;                        // with its name
//   platform.FillKernel("spmv", kernel);         // before it is registered
//   TaskOptions task;                            // with its block tasks
//   platform.FillTask("spmv", task);             // before work is in flight: it makes memory
//   ... submit the task any number of times, and wait until nothing is pending ...
//   platform.Verify("spmv", task.block_tasks);
//
// Errors: Failure. Threads: SimPlatform any; a CudaPlatform belongs to one thread at a time.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_PLATFORM_H_
#define GPUSHARE_BENCHMARKS_KERNELET_PLATFORM_H_

#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <string>

namespace gpushare::kernelet {

class Platform {
 public:
  Platform() = default;
  virtual ~Platform() = default;
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  virtual const char* device() const = 0;  // of gpushare_runtime_options
  virtual std::string gpu() const = 0;     // model; empty: simulated
  bool simulated() const { return gpu().empty(); }
  // Who drives a runtime: its caller in virtual time, the library's thread in real time.
  gpushare_drive drive() const { return simulated() ? GPUSHARE_DRIVE_POLL : GPUSHARE_DRIVE_THREAD; }

  // The code of a kernel of the catalogue, by its name in the profile.
  virtual void FillKernel(const std::string& name, gpushare_kernel_options& options) = 0;
  // Arguments and grid for so many block tasks, with an output that is cleared. The memory is the
  // platform's; tasks of the same kernel and number of block tasks share it. Blocks until the
  // device is idle.
  virtual void FillTask(const std::string& name, gpushare_task_options& task) = 0;
  // Compares what these tasks wrote with the reference. Fails on a wrong result.
  virtual void Verify(const std::string& name, int64_t block_tasks) = 0;
  // Returns when the runtime's clock has reached the time; the work goes on meanwhile.
  virtual void WaitUntil(const Runtime& runtime, int64_t time_ns) = 0;
};

// The simulated device. Stateless: rigs of several threads share it.
Platform* SimPlatform();
// The first GPU. Fails with kNoGpu without one, and in a build without CUDA.
std::unique_ptr<Platform> MakeCudaPlatform();

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_PLATFORM_H_
