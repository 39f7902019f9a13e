// The soak in a build without CUDA: only the simulated device.

#include "benchmarks/soak/soak_work.h"

namespace gpushare::soak {

std::unique_ptr<Work> MakeCudaWork(std::string* why) {
  *why = "This soak was built without CUDA and runs on the simulated device only.";
  return nullptr;
}

}  // namespace gpushare::soak
