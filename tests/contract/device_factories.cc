// The devices that the contract suite tests.

#include <atomic>
#include <memory>
#include <utility>

#include "src/null/null_device.h"
#include "tests/contract/device_contract.h"

#ifdef GPUSHARE_CONTRACT_SIM
#include "src/sim/sim_device.h"
#endif
#ifdef GPUSHARE_CONTRACT_CUDA
#include "src/cuda/cuda_device.h"
#include "tests/contract/cuda_contract.h"
#endif

namespace gpushare::contract {

#ifdef GPUSHARE_CONTRACT_SIM
namespace {

// Real time that passes with each look at it, and not while this machine does something else.
class TickingClock final : public core::Clock {
 public:
  core::TimeNs NowNs() const override { return now_ns_.fetch_add(kTickNs); }

 private:
  static constexpr int64_t kTickNs = 200;
  mutable std::atomic<core::TimeNs> now_ns_{1'000'000'000};
};

}  // namespace
#endif

#ifdef GPUSHARE_CONTRACT_CUDA
namespace {

// Adds the first GPU. Without a GPU the suite has no instance for CUDA, and the list of tests shows
// that.
void AddCuda(std::vector<DeviceFactory>& factories) {
  const CudaContractKernels* const kernels = FindCudaContractKernels();
  if (kernels == nullptr) return;
  DeviceFactory factory;
  factory.name = "cuda";
  factory.make = [] { return cuda::MakeCudaDevice(0, core::DeviceProfile()); };
  factory.work_takes_time = true;
  factory.fill_kernels = [kernels](core::KernelDesc& kernel, core::KernelDesc& graph) {
    kernel.functions()->original = kernels->original_function;
    kernel.functions()->worker = kernels->worker_function;
    kernel.functions()->slice = kernels->slice_function;
    graph.graph()->capture = &CaptureContractGraph;
  };
  factory.fill_long_graph = [](core::KernelDesc& long_graph) {
    long_graph.graph()->capture = &CaptureContractLongGraph;
  };
  factory.fill_fused = [kernels](core::KernelDesc& partner, core::FusedKernelDesc& fused) {
    partner.functions()->original = kernels->partner_original_function;
    partner.functions()->worker = kernels->partner_worker_function;
    fused.function = kernels->fused_function;
  };
  factory.direct_function = kernels->direct_function;
  factory.pinned = kernels->pinned;
  factory.pageable = kernels->pageable;
  factory.device_memory = kernels->device;
  const uint32_t wait_ns = 10'000;
  factory.arguments.assign(reinterpret_cast<const char*>(&wait_ns), sizeof(wait_ns));
  factories.push_back(std::move(factory));
}

}  // namespace
#endif

std::vector<DeviceFactory> DeviceFactories() {
  std::vector<DeviceFactory> factories;
  factories.push_back({.name = "null", .make = [] { return null::MakeNullDevice(); }});
#ifdef GPUSHARE_CONTRACT_SIM
  struct Sim {
    const char* name;
    sim::Tier tier;
    bool real_time;
  };
  for (const Sim sim : {Sim{"sim_kernel_tier", sim::Tier::kKernel, false},
                        Sim{"sim_block_tier", sim::Tier::kBlock, false},
                        Sim{"sim_real_time", sim::Tier::kKernel, true}}) {
    DeviceFactory factory;
    factory.name = sim.name;
    factory.make = [sim] {
      sim::SimOptions options;
      options.tier = sim.tier;
      options.real_time = sim.real_time;
      return sim::MakeSimDevice(options, std::make_unique<TickingClock>());
    };
    factory.work_takes_time = true;
    factories.push_back(std::move(factory));
  }
#endif
#ifdef GPUSHARE_CONTRACT_CUDA
  AddCuda(factories);
#endif
  return factories;
}

}  // namespace gpushare::contract
