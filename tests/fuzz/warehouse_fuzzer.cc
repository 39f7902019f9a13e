// Fuzzes the parser of datacenter scenarios, and places what it takes: any bytes end in a placement
// of every instance, or in an InputError with one line of text.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/datacenter/placing.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace {

using gpushare::tool::PlacedGpu;
using gpushare::tool::Placing;
using gpushare::tool::Warehouse;

// Few, so that an input takes milliseconds.
constexpr int64_t kInstancesMax = 500;

void ExpectAllPlaced(const Warehouse& warehouse, Placing placing) {
  const std::vector<std::vector<double>> be_time(
      warehouse.services.size(), std::vector<double>(warehouse.apps.be.size(), 0.5));
  int64_t instances = 0;
  for (const PlacedGpu& gpu : PlaceWarehouse(warehouse, placing, be_time)) {
    if (static_cast<int64_t>(gpu.be.size()) > warehouse.be_per_gpu) std::abort();
    instances += static_cast<int64_t>(gpu.be.size());
  }
  if (instances != warehouse.gpus * warehouse.be_per_gpu) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Warehouse warehouse = gpushare::tool::ParseWarehouse(text, "fuzz.json");
    if (warehouse.gpus * warehouse.be_per_gpu > kInstancesMax) return 0;
    ExpectAllPlaced(warehouse, Placing::kRandom);
    ExpectAllPlaced(warehouse, Placing::kAssigned);
  } catch (const gpushare::tool::InputError& error) {
    const std::string message = error.what();
    if (message.empty() || message.back() != '.') std::abort();
  }
  return 0;
}
