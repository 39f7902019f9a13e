// Tasks of the soak on the simulated device: kernels of the built-in profile. An answer is what the
// completion record says: how many block tasks were executed.

#include <algorithm>
#include <map>
#include <string>

#include "benchmarks/soak/soak_work.h"

namespace gpushare::soak {
namespace {

constexpr int64_t kCopyBytes = 4 << 20;
constexpr int64_t kOpaqueNs = 500'000;

class SimulatedTask final : public Task {
 public:
  explicit SimulatedTask(const TaskOptions& options) : options_(options) {}

  std::string Fill(TaskOptions& options) override {
    options = options_;
    spoilt_ = 0;
    return {};
  }
  std::string Check(const gpushare_completion_record& record) override {
    const int64_t executed = record.block_tasks + spoilt_;
    if (options_.block_tasks == 0 || executed == options_.block_tasks) return {};
    return "The record says " + std::to_string(executed) + " block tasks, and the task has " +
           std::to_string(options_.block_tasks) + ".";
  }
  void Spoil() override {
    if (options_.block_tasks > 0) spoilt_ = 1;
  }

 private:
  const TaskOptions options_;
  int64_t spoilt_ = 0;
};

class SimulatedWork final : public Work {
 public:
  std::string Make(const Runtime& runtime, Kind kind, double solo_ms, uint32_t /*seed*/,
                   std::unique_ptr<Task> (&made)[2]) override {
    TaskOptions options;
    if (kind == Kind::kCopyPinned || kind == Kind::kCopyPageable) {
      options.kind = GPUSHARE_TASK_MEMCPY;
      options.copy_size_bytes = kCopyBytes;
      options.copy_pageable = kind == Kind::kCopyPageable ? 1 : 0;
      options.copy_direction = GPUSHARE_COPY_HOST_TO_DEVICE;
      made[0] = std::make_unique<SimulatedTask>(options);
      options.copy_direction = GPUSHARE_COPY_DEVICE_TO_HOST;
      made[1] = std::make_unique<SimulatedTask>(options);
      return {};
    }
    if (kind == Kind::kOpaque) {
      options.kind = GPUSHARE_TASK_OPAQUE;
      options.declared_ns = kOpaqueNs;
      options.enqueue = [](void*, void*) {};
      made[0] = std::make_unique<SimulatedTask>(options);
      return {};
    }
    const std::string name = NamesOf(kind).profile;
    if (const std::string error = Register(runtime, name); !error.empty()) return error;
    options.kernel = kernels_[name].get();
    if (kind != Kind::kGraph) {
      const KernelInfo& info = infos_[name];
      const double per_ms = 1e6 / static_cast<double>(std::max<int64_t>(1, info.block_task_ns)) *
                            static_cast<double>(info.workers_per_sm_max) *
                            runtime.Device().value().sm_count;
      options.block_tasks = std::max<int64_t>(1, static_cast<int64_t>(solo_ms * per_ms));
    }
    made[0] = std::make_unique<SimulatedTask>(options);
    return {};
  }

  int64_t FreeDeviceBytes() override { return 0; }

 private:
  std::string Register(const Runtime& runtime, const std::string& name) {
    if (kernels_.count(name) != 0) return {};
    KernelOptions options;
    options.name = name.c_str();
    auto kernel = runtime.RegisterKernel(options);
    if (!kernel.ok()) return kernel.status().ToString();
    auto info = runtime.FindKernel(name);
    if (!info.ok()) return info.status().ToString();
    kernels_[name] = *kernel;
    infos_[name] = *info;
    return {};
  }

  std::map<std::string, Kernel> kernels_;
  std::map<std::string, KernelInfo> infos_;
};

}  // namespace

std::unique_ptr<Work> MakeSimulatedWork() { return std::make_unique<SimulatedWork>(); }

}  // namespace gpushare::soak
