// What the tests of groups share: simulated GPUs in virtual time, kernels of stated durations, and
// a record of what ended where. Public headers only. Threads: each test's own.

#ifndef GPUSHARE_TESTS_GROUP_GROUP_FIXTURE_H_
#define GPUSHARE_TESTS_GROUP_GROUP_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <gpushare/group/group.hpp>
#include <memory>
#include <string>
#include <vector>

namespace gpushare_test {

// In nanoseconds.
constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000 * kUs;
constexpr int64_t kS = 1'000 * kMs;

#define EXPECT_STATUS_OK(call)                       \
  do {                                               \
    const gpushare::Status status_ = (call);         \
    EXPECT_TRUE(status_.ok()) << status_.ToString(); \
  } while (false)

// Options of `gpus` simulated GPUs in virtual time; faults by GPU, where there are some.
inline std::vector<gpushare::RuntimeOptions> Simulated(
    int gpus, const std::vector<const char*>& faults = {}) {
  std::vector<gpushare::RuntimeOptions> all(static_cast<size_t>(gpus));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].device = "sim";
    all[i].drive = GPUSHARE_DRIVE_POLL;
    all[i].policy = "adaptive:evict";
    all[i].seed = i + 1;
    if (i < faults.size()) all[i].sim_faults = faults[i];
  }
  return all;
}

inline gpushare::AppOptions AppOf(gpushare_app_class app_class, const char* name) {
  gpushare::AppOptions options;
  options.app_class = app_class;
  options.name = name;
  return options;
}
inline gpushare::AppOptions LcApp(const char* name = "service") {
  return AppOf(GPUSHARE_CLASS_LATENCY_CRITICAL, name);
}
inline gpushare::AppOptions BeApp(const char* name = "training") {
  return AppOf(GPUSHARE_CLASS_BEST_EFFORT, name);
}

// A graph of one node that takes this long alone.
inline gpushare::Result<gpushare::Kernel> RegisterGraph(const gpushare::Runtime& runtime,
                                                        const char* name, int64_t duration_ns) {
  const gpushare_graph_node node = {duration_ns,      132, 1, GPUSHARE_CHOICE_DEFAULT, 0,
                                    {0.5, 0, 0, 0, 0}};
  gpushare::SimulationRecord record;
  record.nodes = &node;
  record.node_count = 1;
  gpushare::KernelOptions options;
  options.kind = GPUSHARE_TASK_GRAPH;
  options.name = name;
  options.simulation = &record;
  return runtime.RegisterKernel(options);
}

// A group of GPUs on which everything ends at once when they are polled, and no profile states how
// long a kernel takes.
inline std::unique_ptr<gpushare::Group> WithoutEstimates(int gpus) {
  std::vector<gpushare::RuntimeOptions> options = Simulated(gpus);
  for (gpushare::RuntimeOptions& each : options) each.device = "null";
  return gpushare::Group::Create(options).value();
}
// A graph of unknown duration.
inline const gpushare::GroupKernel* RegisterUnknown(gpushare::Group& group) {
  gpushare::KernelOptions options;
  options.kind = GPUSHARE_TASK_GRAPH;
  options.name = "unknown";
  return group.RegisterKernel(options).value();
}

// The graph on each GPU, with its duration by GPU; 0 leaves a GPU out.
inline const gpushare::GroupKernel* Register(gpushare::Group& group, const char* name,
                                             const std::vector<int64_t>& duration_ns) {
  return group
      .RegisterKernel(
          name,
          [&](const gpushare::Runtime& runtime, int gpu) -> gpushare::Result<gpushare::Kernel> {
            const int64_t takes_ns = duration_ns[static_cast<size_t>(gpu)];
            if (takes_ns == 0) return gpushare::Kernel();
            return RegisterGraph(runtime, name, takes_ns);
          })
      .value();
}

// Tasks of an app on GPU 0 that are not the group's: they take slots, which the group does not
// know.
class Strangers {
 public:
  Strangers(const gpushare::Group& group, const gpushare::App& app,
            const gpushare::GroupKernel& kernel)
      : group_(group), queue_(app.CreateQueue().value()), kernel_(kernel.On(0)) {}

  void Submit(int count) {
    gpushare::TaskOptions task;
    task.kernel = kernel_.get();
    for (int i = 0; i < count; ++i) {
      const bool is_lc = queue_.SubmitLc(task).ok();
      EXPECT_TRUE(is_lc || queue_.SubmitBe(task).ok());
    }
  }
  // Until everything on GPU 0 has ended, also on a thread that prepares work of the group.
  void Drain() const { EXPECT_STATUS_OK(group_.On(0).PollUntil(group_.On(0).NowNs() + 100 * kMs)); }

 private:
  const gpushare::Group& group_;
  gpushare::Queue queue_;
  gpushare::Kernel kernel_;
};

// How work ended: each one's calls of `done`, its verdict and its GPU, and the order of the ends.
class Ends {
 public:
  explicit Ends(size_t count) : entries_(count) {
    for (size_t i = 0; i < count; ++i) {
      entries_[i].ends = this;
      entries_[i].index = i;
    }
  }

  template <class Work>
  void Watch(size_t index, Work* work) {
    work->done_user = &entries_[index];
    work->done = [](void* user, int gpu, const gpushare_completion_record* record) {
      Entry& entry = *static_cast<Entry*>(user);
      ++entry.calls;
      entry.gpu = gpu;
      entry.verdict = record->verdict;
      entry.ends->order_.push_back(entry.index);
    };
  }

  int calls(size_t index) const { return entries_[index].calls; }
  int gpu(size_t index) const { return entries_[index].gpu; }
  gpushare_verdict verdict(size_t index) const { return entries_[index].verdict; }
  const std::vector<size_t>& order() const { return order_; }
  int On(int gpu) const {
    int count = 0;
    for (const Entry& entry : entries_) count += entry.calls > 0 && entry.gpu == gpu ? 1 : 0;
    return count;
  }
  // Each ended exactly once, with this verdict.
  void ExpectAll(gpushare_verdict verdict) const {
    for (const Entry& entry : entries_) {
      EXPECT_EQ(entry.calls, 1) << "work " << entry.index;
      EXPECT_EQ(entry.verdict, verdict) << "work " << entry.index;
    }
  }

 private:
  struct Entry {
    Ends* ends = nullptr;
    size_t index = 0;
    int calls = 0;
    int gpu = -1;
    gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
  };
  std::vector<Entry> entries_;
  std::vector<size_t> order_;
};

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_GROUP_GROUP_FIXTURE_H_
