// Several GPUs in one process: a group of runtimes, one a GPU. Header-only, C++17, over
// <gpushare/gpushare.hpp>; docs/several-gpus.md says how each choice is made.
//
//   auto group = gpushare::Group::OfGpus(2, runtime_options);          // a Result: check ok()
//   auto kernel = (*group)->RegisterKernel("decode", factory);          // on each GPU
//   auto service = (*group)->CreateLcQueue(lc_options);                 // one queue for all GPUs
//   auto training = (*group)->CreateBeQueue(be_options);                // goes where room is
//   service->Submit(work);
//   (*group)->Drain(deadline_ns);
//
// The group owns runtimes, apps, queues and kernels; handles of its parts must not outlive it.
// Threads: any, unless a call says otherwise.
#ifndef GPUSHARE_GROUP_GROUP_HPP_
#define GPUSHARE_GROUP_GROUP_HPP_

#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <gpushare/group/be_queue.hpp>
#include <gpushare/group/kernel.hpp>
#include <gpushare/group/lc_queue.hpp>
#include <gpushare/group/state.hpp>
#include <gpushare/group/steps.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gpushare {

class Group {
 public:
  // Opens a runtime for each of the options, in their order; GPU i of the group is the i-th. All
  // are driven in one way, and all are in real time or all in virtual time. If one cannot be
  // opened, none stays open, and the message names it.
  static Result<std::unique_ptr<Group>> Create(const std::vector<RuntimeOptions>& options) {
    if (options.empty() || options.size() > static_cast<size_t>(kGroupGpusMax)) {
      return Status(GPUSHARE_INVALID_ARGUMENT, "A group has " + std::to_string(options.size()) +
                                                   " GPUs, and it may have 1 to " +
                                                   std::to_string(kGroupGpusMax) + ".");
    }
    std::vector<Runtime> runtimes;
    gpushare_bool virtual_time = 0;
    for (const RuntimeOptions& each : options) {
      const std::string gpu = "GPU " + std::to_string(runtimes.size());
      Result<Runtime> runtime = Runtime::Create(each);
      if (!runtime.ok()) {
        return Status(runtime.status().code(), gpu + ": " + runtime.status().message());
      }
      Result<DeviceInfo> device = runtime->Device();
      if (!device.ok()) return device.status();
      if (runtimes.empty()) virtual_time = device->virtual_time;
      if (device->virtual_time != virtual_time || each.drive != options[0].drive) {
        return Status(GPUSHARE_INVALID_ARGUMENT,
                      gpu +
                          " is driven in another way than GPU 0, or only one of them is in "
                          "virtual time.");
      }
      runtimes.push_back(std::move(runtime).value());
    }
    const bool polled = options[0].drive == GPUSHARE_DRIVE_POLL;
    return std::unique_ptr<Group>(new Group(std::move(runtimes), polled, virtual_time == 1));
  }

  // GPUs 0 to count - 1 of the host, or as many simulated ones, whose seeds differ.
  static Result<std::unique_ptr<Group>> OfGpus(int count,
                                               const RuntimeOptions& each = RuntimeOptions()) {
    std::vector<RuntimeOptions> options;
    for (int gpu = 0; gpu < count && gpu <= kGroupGpusMax; ++gpu) {
      options.push_back(each);
      options.back().device_ordinal = gpu;
      options.back().seed = (each.seed == 0 ? 1 : each.seed) + static_cast<uint64_t>(gpu);
    }
    return Create(options);
  }

  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Shuts down within 10 s. Not in a callback.
  ~Group() { static_cast<void>(Shutdown(NowNs() + kShutdownNs)); }

  int size() const { return state_.gpus; }
  const Runtime& On(int gpu) const { return state_.On(gpu); }
  // The clock of GPU 0, which deadlines of the group are on.
  int64_t NowNs() const { return state_.On(0).NowNs(); }
  // Whether work has shown that the GPU is lost. It gets no more.
  bool IsLost(int gpu) const { return state_.IsLost(gpu); }

  // Registers a kernel on each GPU through the factory, which gives it this name there. Errors:
  // those of the factory, with the GPU; then it stays registered on no GPU.
  Result<const GroupKernel*> RegisterKernel(const std::string& name, const KernelFactory& factory) {
    auto kernel = std::make_unique<GroupKernel>();
    bool on_any = false;
    for (int gpu = 0; gpu < size(); ++gpu) {
      if (IsLost(gpu)) continue;
      Result<Kernel> made = factory(On(gpu), gpu);
      if (!made.ok()) {
        return Status(made.status().code(),
                      "GPU " + std::to_string(gpu) + ": " + made.status().message());
      }
      on_any |= static_cast<bool>(*made);
      kernel->Set(On(gpu), gpu, std::move(made).value(), name);
    }
    if (!on_any) {
      return Status(GPUSHARE_INVALID_ARGUMENT,
                    "The factory of kernel '" + name + "' registers it on no GPU.");
    }
    const std::lock_guard<std::mutex> lock(state_.mutex);
    kernels_.push_back(std::move(kernel));
    return static_cast<const GroupKernel*>(kernels_.back().get());
  }
  // The same registration on each GPU.
  Result<const GroupKernel*> RegisterKernel(const gpushare_kernel_options& options) {
    return RegisterKernel(
        options.name == nullptr ? "" : options.name,
        [&](const Runtime& runtime, int) { return runtime.RegisterKernel(options); });
  }

  // An LC app with these options on each GPU, and one queue in front of it.
  Result<GroupLcQueue> CreateLcQueue(const gpushare_app_options& app,
                                     const LcQueueOptions& options = {}) {
    if (options.queues_per_gpu < 1 || options.queues_per_gpu > 64 || options.clients_max < 0 ||
        options.clients_max > 1023) {
      return Status(GPUSHARE_INVALID_ARGUMENT,
                    "An LC queue of a group has " + std::to_string(options.queues_per_gpu) +
                        " queues a GPU and " + std::to_string(options.clients_max) +
                        " clients; it may have 1 to 64 and 0 to 1023.");
    }
    if (app.app_class != GPUSHARE_CLASS_LATENCY_CRITICAL) return OfAnotherClass("An LC queue");
    // The runtimes check the options, among them tasks_max, before anything is sized by them.
    group_detail::AppOnAll apps;
    Status status = apps.Create(state_, app, options.queues_per_gpu);
    if (!status.ok()) return status;
    const int32_t queries_max = app.tasks_max > 0 ? app.tasks_max : kTasksMax;
    auto core = std::make_unique<group_detail::LcQueueCore>(&state_, queries_max, options);
    core->apps() = std::move(apps);
    const std::lock_guard<std::mutex> lock(state_.mutex);
    lc_.push_back(std::move(core));
    return GroupLcQueue(lc_.back().get());
  }

  // A BE app with these options on each GPU, and one queue in front of it.
  Result<GroupBeQueue> CreateBeQueue(const gpushare_app_options& app,
                                     const BeQueueOptions& options = {}) {
    if (options.window < 1 || options.window > 64 || options.items_max < 1 ||
        options.items_max > 65536) {
      return Status(GPUSHARE_INVALID_ARGUMENT, "A BE queue of a group has a window of " +
                                                   std::to_string(options.window) + " and " +
                                                   std::to_string(options.items_max) +
                                                   " items; it may have 1 to 64 and 1 to 65536.");
    }
    if (app.app_class != GPUSHARE_CLASS_BEST_EFFORT) return OfAnotherClass("A BE queue");
    if (app.tasks_max > 0 && app.tasks_max < options.window) {
      return Status(GPUSHARE_INVALID_ARGUMENT,
                    "The app of a BE queue has tasks_max " + std::to_string(app.tasks_max) +
                        ", and the window of the queue is " + std::to_string(options.window) +
                        ": tasks_max may not be less.");
    }
    auto core = std::make_unique<group_detail::BeQueueCore>(&state_, options);
    Status status = core->apps().Create(state_, app, 1);
    if (!status.ok()) return status;
    const std::lock_guard<std::mutex> lock(state_.mutex);
    be_.push_back(std::move(core));
    state_.waiting.push_back(be_.back().get());
    return GroupBeQueue(be_.back().get());
  }

  // An app with these options on each GPU, whose steps start on all of `options.gpus` or on none.
  Result<GroupSteps> CreateSteps(const gpushare_app_options& app, StepsOptions options = {}) {
    if (options.gpus.empty()) {
      for (int gpu = 0; gpu < size(); ++gpu) options.gpus.push_back(gpu);
    }
    int before = -1;
    for (const int gpu : options.gpus) {
      if (gpu <= before || gpu >= size()) {
        return Status(GPUSHARE_INVALID_ARGUMENT, "The GPUs of steps are ascending and below " +
                                                     std::to_string(size()) + ", and GPU " +
                                                     std::to_string(gpu) + " is not.");
      }
      before = gpu;
    }
    // Work of unknown duration counts with kSoloNsMax, which no hold may let pass.
    if (options.be_beside_ns < 0 || options.be_beside_ns >= group_detail::kSoloNsMax) {
      return Status(GPUSHARE_INVALID_ARGUMENT,
                    "BE work may stay " + std::to_string(options.be_beside_ns) +
                        " ns beside steps (be_beside_ns); it may be 0 to less than " +
                        std::to_string(group_detail::kSoloNsMax) + " (1 h).");
    }
    auto core = std::make_unique<group_detail::StepsCore>(&state_, &turn_, std::move(options));
    Status status = core->apps().Create(state_, app, 1);
    if (!status.ok()) return status;
    const std::lock_guard<std::mutex> lock(state_.mutex);
    steps_.push_back(std::move(core));
    return GroupSteps(steps_.back().get());
  }

  // Runs all runtimes until their clocks stand at `time_ns`; GPUSHARE_DRIVE_POLL only. One thread
  // drives at a time, and others wait for it. Not in a callback.
  Status PollUntil(int64_t time_ns) { return state_.PollUntil(time_ns); }

  // Waits until no query, item and step of the group is pending. Not in a callback.
  Status Drain(int64_t deadline_ns = kNever) {
    Status refusal = group_detail::InCallback::Refuse("Group::Drain");
    if (!refusal.ok()) return refusal;
    if (state_.WaitFor(deadline_ns, [this] { return state_.pending == 0; })) return Status();
    const std::lock_guard<std::mutex> lock(state_.mutex);
    return Status(GPUSHARE_DEADLINE_EXCEEDED, "At the deadline " + std::to_string(state_.pending) +
                                                  " queries, items and steps are pending.");
  }

  // Refuses new work and shuts the runtimes down, one after another. What a runtime has runs; items
  // that wait in front of them end with VERDICT_SHUTDOWN: drain first to run them. Every `done` has
  // returned then. Not in a callback.
  Status Shutdown(int64_t deadline_ns) {
    Status refusal = group_detail::InCallback::Refuse("Group::Shutdown");
    if (!refusal.ok()) return refusal;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      state_.closing = true;
      state_.changed.notify_all();
    }
    state_.PumpAll();
    Status first;
    for (int gpu = 0; gpu < size(); ++gpu) {
      Status status = On(gpu).Shutdown(deadline_ns);
      if (first.ok() && !status.ok()) first = std::move(status);
    }
    return first;
  }

 private:
  static constexpr int64_t kShutdownNs = 10'000'000'000;
  static constexpr int32_t kTasksMax = 1024;  // the default of tasks_max

  static Status OfAnotherClass(const char* what) {
    return Status(GPUSHARE_INVALID_ARGUMENT,
                  std::string(what) + " of a group has an app of the other class.");
  }

  Group(std::vector<Runtime> runtimes, bool polled, bool virtual_time)
      : state_(std::move(runtimes), polled, virtual_time) {}

  // Destroyed from the end: apps and kernels before their runtimes.
  group_detail::GroupState state_;
  group_detail::StepTurn turn_;
  std::vector<std::unique_ptr<GroupKernel>> kernels_;
  std::vector<std::unique_ptr<group_detail::LcQueueCore>> lc_;
  std::vector<std::unique_ptr<group_detail::BeQueueCore>> be_;
  std::vector<std::unique_ptr<group_detail::StepsCore>> steps_;
};

}  // namespace gpushare

#endif  // GPUSHARE_GROUP_GROUP_HPP_
