// The work of a device that computes nothing: only durations are simulated.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/servers/model/work.h"

namespace gpushare::example {
namespace {

constexpr int kNodes = 8;
constexpr int kBlocks = 16;  // of a node, as of a matrix product of 256 by 1024 in tiles of 128

class SimulatedWork : public Work {
 public:
  Kernel RegisterModel(const Runtime& runtime, const char* name, int64_t graph_ns) override {
    gpushare_graph_node node = {};
    node.duration_ns = graph_ns / kNodes;
    node.blocks = kBlocks;
    node.repeat = kNodes;
    SimulationRecord record;
    record.nodes = &node;
    record.node_count = 1;
    KernelOptions options;
    options.name = name;
    options.kind = GPUSHARE_TASK_GRAPH;
    options.solo_ns = graph_ns;
    options.simulation = &record;
    return runtime.RegisterKernel(options).value();
  }

  Kernel RegisterBe(const Runtime& runtime, const char* name) override {
    SimulationRecord record;
    record.block_task_ns = 27'000;
    KernelOptions options;
    options.name = name;
    options.evictable = GPUSHARE_CHOICE_YES;
    options.simulation = &record;
    return runtime.RegisterKernel(options).value();
  }

  TaskOptions BeTask() const override {
    TaskOptions task;
    task.block_tasks = 20'000;
    return task;
  }

  void* input() const override { return nullptr; }
  void* output() const override { return nullptr; }

  void* HostMemory(size_t bytes) override {
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    return memory_.back().get();
  }

  int Shift() const override { return kNodes; }

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace

std::unique_ptr<Work> MakeSimulatedWork() { return std::make_unique<SimulatedWork>(); }

std::unique_ptr<Work> MakeWork(const Runtime& runtime) {
  const DeviceInfo device = runtime.Device().value();
  std::unique_ptr<Work> work =
      std::string(device.name) == "cuda" ? MakeGpuWork() : MakeSimulatedWork();
  if (work == nullptr) throw std::runtime_error("This build has no kernels for a GPU.");
  return work;
}

}  // namespace gpushare::example
