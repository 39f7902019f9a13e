// A runtime with the kernels of an experiment, each submitted by an app of its own on two queues:
// two instances of one kernel may run at once.
//
//   Rig rig({"spmv", "tea"}, scheduler, options);
//   const TaskOptions task = rig.TaskOf(0, rig.BlocksFor(0, solo_ns));  // before work is in flight
//   Ticket ticket = rig.Submit(0, task);
//   ... wait ...
//   rig.Verify(0, task);
//
// Threads: a rig belongs to one. Rigs on the simulated device share nothing, so that runs go on in
// parallel. On a GPU one rig runs at a time.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_RIG_H_
#define GPUSHARE_BENCHMARKS_KERNELET_RIG_H_

#include <array>
#include <cstdint>
#include <functional>
#include <gpushare/gpushare.hpp>
#include <string>
#include <vector>

#include "benchmarks/kernelet/platform.h"

namespace gpushare::kernelet {

struct RigOptions {
  Platform* platform = SimPlatform();  // must outlive the rig
  std::string profile;                 // path; empty: the built-in one of an H200
  uint64_t seed = 1;                   // of the simulated device
};

// Sets a runtime's policy, and its cost model where it needs one.
using Scheduler = std::function<void(const Runtime& runtime)>;

class Rig {
 public:
  // `kernels` may name one twice: each entry has its own app.
  Rig(const std::vector<std::string>& kernels, const Scheduler& scheduler,
      const RigOptions& options);

  const Runtime& runtime() const { return runtime_; }
  int64_t sm_count() const { return sm_count_; }
  // Whole waves of all workers: at least one, about `solo_ns` alone.
  int64_t BlocksFor(size_t kernel, int64_t solo_ns) const;
  // The task may be submitted any number of times. On a GPU its output is cleared, and the call
  // blocks until the device is idle.
  TaskOptions TaskOf(size_t kernel, int64_t block_tasks) const;
  Ticket Submit(size_t kernel, const TaskOptions& task);
  void WaitUntil(int64_t time_ns) const { platform_.WaitUntil(runtime_, time_ns); }
  // Fails where the task, which has run, wrote a wrong result. On the simulated device nothing is
  // written.
  void Verify(size_t kernel, const TaskOptions& task) const;

 private:
  struct Subject {
    std::string name;
    Kernel kernel;
    App app;
    std::array<Queue, 2> queues;
    size_t next = 0;  // queue
    KernelInfo info;
  };

  Platform& platform_;
  Runtime runtime_;
  std::vector<Subject> subjects_;
  int64_t sm_count_ = 0;
};

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_RIG_H_
