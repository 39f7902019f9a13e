// The devices that the contract suite runs on.

#include "src/null/null_device.h"
#include "tests/contract/device_contract.h"

#ifdef GPUSHARE_CONTRACT_SIM
#include "src/sim/sim_device.h"
#endif

namespace gpushare::contract {

std::vector<DeviceFactory> DeviceFactories() {
  std::vector<DeviceFactory> factories;
  factories.push_back({"null", [] { return null::MakeNullDevice(); }, false});
#ifdef GPUSHARE_CONTRACT_SIM
  factories.push_back({"sim_kernel_tier",
                       [] {
                         sim::SimOptions options;
                         options.tier = sim::Tier::kKernel;
                         return sim::MakeSimDevice(options);
                       },
                       true});
  factories.push_back({"sim_block_tier",
                       [] {
                         sim::SimOptions options;
                         options.tier = sim::Tier::kBlock;
                         return sim::MakeSimDevice(options);
                       },
                       true});
#endif
  return factories;
}

}  // namespace gpushare::contract
