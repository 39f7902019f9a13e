#include "tools/gpushare/datacenter/placing.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "src/models/placement/cluster.h"
#include "src/models/placement/pair_table.h"
#include "src/models/placement/placer.h"
#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

namespace {

using models::placement::Algorithm;
using models::placement::Cluster;
using models::placement::kNone;

// Memory does not bind: each GPU has room for one LC app and all of its BE instances.
constexpr int64_t kGpuBytes = 1024;

// A service is an LC app and a kind of its own, in the order of the services.
Cluster ClusterOf(const Warehouse& warehouse, const std::vector<std::vector<double>>& be_time) {
  Cluster cluster;
  cluster.gpus.push_back({"gpu", kGpuBytes, static_cast<int32_t>(warehouse.gpus)});
  cluster.be_per_gpu = static_cast<int32_t>(warehouse.be_per_gpu);
  const std::vector<Service>& services = warehouse.services;
  const std::vector<BeApp>& be = warehouse.apps.be;
  const std::vector<int64_t> gpus = Evenly(warehouse.gpus, services.size());
  const std::vector<int64_t> instances = Evenly(warehouse.gpus * warehouse.be_per_gpu, be.size());
  for (size_t i = 0; i < services.size(); ++i) {
    models::placement::LcApp app;
    app.name = "lc" + std::to_string(i);
    app.kind = app.name;
    app.load = services[i].load;
    app.memory_bytes = 1;
    app.replicas = static_cast<int32_t>(gpus[i]);
    cluster.lc.push_back(app);
  }
  for (size_t i = 0; i < be.size(); ++i) {
    models::placement::BeApp app;
    app.name = "be" + std::to_string(i);
    app.kind = app.name;
    app.memory_bytes = 1;
    app.instances = static_cast<int32_t>(instances[i]);
    cluster.be.push_back(app);
  }
  for (size_t i = 0; i < be_time.size(); ++i) {
    for (size_t j = 0; j < be_time[i].size(); ++j) {
      models::placement::PairRow row;
      row.lc = cluster.lc[i].kind;
      row.be = cluster.be[j].kind;
      row.load = services[i].load;
      row.be_rate = std::min(be_time[i][j], 1.0);
      cluster.pairs.push_back(row);
    }
  }
  return cluster;
}

}  // namespace

std::vector<PlacedGpu> PlaceWarehouse(const Warehouse& warehouse, Placing placing,
                                      const std::vector<std::vector<double>>& be_time) {
  const Cluster cluster = ClusterOf(warehouse, be_time);
  models::placement::PlaceOptions options;
  options.algorithm = placing == Placing::kRandom ? Algorithm::kRandom : Algorithm::kAssignment;
  options.seed = warehouse.apps.seed;
  options.valuation.keep_bounds = false;
  options.valuation.risk = 0;
  options.valuation.free_gpu = 0;
  const models::placement::PairTable table(cluster.pairs);
  const auto placement = models::placement::Place(cluster, table, options);
  if (!placement.ok()) throw InputError(std::string(placement.status().message()));
  if (!placement->unplaced.empty()) {
    throw RunError("The placement '" + std::string(NameOf(placing)) + "' leaves " +
                   std::to_string(placement->unplaced.size()) +
                   " apps with instances that have no GPU, and it must place all: " +
                   placement->unplaced.front().reason);
  }
  std::vector<PlacedGpu> out;
  std::vector<int32_t> replicas(warehouse.services.size());
  for (const models::placement::GpuLoad& load : placement->gpus) {
    if (load.lc == kNone) continue;
    PlacedGpu gpu{load.lc, replicas[static_cast<size_t>(load.lc)]++, load.be};
    std::sort(gpu.be.begin(), gpu.be.end());
    out.push_back(std::move(gpu));
  }
  return out;
}

std::vector<size_t> EvenlySpaced(const std::vector<PlacedGpu>& gpus, size_t count) {
  std::vector<size_t> order(gpus.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return std::pair(gpus[left].service, gpus[left].replica) <
           std::pair(gpus[right].service, gpus[right].replica);
  });
  std::vector<size_t> out;
  count = std::min(count, gpus.size());
  for (size_t i = 0; i < count; ++i) out.push_back(order[(2 * i + 1) * gpus.size() / (2 * count)]);
  return out;
}

}  // namespace gpushare::tool
