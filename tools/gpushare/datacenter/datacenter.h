// `gpushare datacenter`: runs a warehouse of simulated GPUs under each policy with each placement.
//
// Order: queries and BE work alone -> services alone -> for each policy its pairs, then for each
// placement its GPUs -> the check. A GPU is simulated slot by slot, or drawn from the runs of its
// pairs (`tables`). Runs are independent, and a small pool of threads shares them; results do not
// depend on the number of threads.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_DATACENTER_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_DATACENTER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/datacenter/finished_gpus.h"
#include "tools/gpushare/datacenter/row_summary.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

// A check is a simulation with each SM by itself, several times the work of the others.
inline constexpr int64_t kCheckedGpusMax = 1'000;

struct DatacenterOptions {
  std::string tier = "kernel";        // of the simulated device
  std::vector<std::string> policies;  // empty: the scenario's
  bool tables = false;                // draw GPUs from the runs of pairs
  int64_t checked = 0;                // GPUs of the random placement to simulate again, tier block
  unsigned threads = 0;               // 0: as many as there are processors
  bool quiet = false;
  // Asked once the device is open, with what the results are made with; empty: nothing is finished.
  std::function<FinishedGpus(const std::string& made_with)> resume;
  // Called now and then, and when the run stops early; empty: not called.
  std::function<void(const FinishedGpus&, const std::string& made_with)> save;
};

struct ServiceFacts {
  std::string name;
  std::string app;
  double load = 0;
  int64_t gpus = 0;
  int64_t solo_ns = 0;
  int64_t p99_alone_ns = 0;  // pooled over the table's runs
};

struct DatacenterResult {
  DeviceFacts device;
  std::string tier;
  bool tables = false;
  uint64_t seed = 0;
  std::vector<std::string> policies;
  std::vector<ServiceFacts> services;
  std::vector<RowSummary> rows;  // by policy, then by placement
  std::vector<CheckSummary> checks;
};

// Throws InputError before the first run for names that the library or the profile does not know;
// else what the failed run throws, after `save`.
DatacenterResult RunDatacenter(const Warehouse& warehouse, const DatacenterOptions& options);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_DATACENTER_H_
