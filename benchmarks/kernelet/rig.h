// A runtime on the simulated device with the kernels of an experiment, each submitted by an app of
// its own on two queues: two instances of one kernel may run at once.
//
// Threads: a rig belongs to one. Rigs share nothing, so that runs go on in parallel.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_RIG_H_
#define GPUSHARE_BENCHMARKS_KERNELET_RIG_H_

#include <array>
#include <cstdint>
#include <functional>
#include <gpushare/gpushare.hpp>
#include <string>
#include <vector>

namespace gpushare::kernelet {

struct RigOptions {
  std::string profile;  // path; empty: the built-in one of an H200
  uint64_t seed = 1;    // of the simulated device
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
  Ticket Submit(size_t kernel, int64_t block_tasks);

 private:
  struct Subject {
    Kernel kernel;
    App app;
    std::array<Queue, 2> queues;
    size_t next = 0;  // queue
    KernelInfo info;
  };

  Runtime runtime_;
  std::vector<Subject> subjects_;
  int64_t sm_count_ = 0;
};

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_RIG_H_
