// Fuzzes the reader of clusters, and places what it takes: any bytes end in a placement or in one
// sentence.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/models/placement/cluster_file.h"
#include "src/models/placement/placer.h"

namespace {

using gpushare::models::placement::Algorithm;
using gpushare::models::placement::Cluster;
using gpushare::models::placement::Placement;

// Few, so that an input takes milliseconds.
constexpr int64_t kInstancesMax = 500;

int64_t InstancesOf(const Cluster& cluster) {
  int64_t count = 0;
  for (const auto& group : cluster.gpus) count += group.count;
  for (const auto& app : cluster.lc) count += app.replicas;
  for (const auto& app : cluster.be) count += app.instances;
  return count;
}

// Each instance has a GPU or is named, within the bounds of a placement.
void Expect(const Cluster& cluster, const Placement& placement, int64_t moves_max) {
  int64_t stated = 0;
  int64_t seen = placement.lc_placed + placement.be_placed;
  for (const auto& app : cluster.lc) stated += app.replicas;
  for (const auto& app : cluster.be) stated += app.instances;
  for (const auto& app : placement.unplaced) {
    seen += app.count;
    if (app.reason.empty() || app.reason.back() != '.') std::abort();
  }
  if (seen != stated || placement.moved > moves_max) std::abort();
  if (placement.value > placement.upper_bound + 1e-4) std::abort();
  for (const auto& load : placement.gpus) {
    if (static_cast<int64_t>(load.be.size()) > cluster.be_per_gpu) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace placement = gpushare::models::placement;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cluster = placement::ParseCluster({text.data(), text.size()});
  if (!cluster.ok()) {
    const std::string message(cluster.status().message());
    if (message.empty() || message.back() != '.') std::abort();
    return 0;
  }
  if (InstancesOf(*cluster) > kInstancesMax) return 0;
  const placement::PairTable table(cluster->pairs);
  for (const Algorithm algorithm :
       {Algorithm::kRandom, Algorithm::kFirstFit, Algorithm::kGreedy, Algorithm::kAssignment}) {
    placement::PlaceOptions options;
    options.algorithm = algorithm;
    options.moves_max = 3;
    const auto placed = placement::Place(*cluster, table, options);
    if (!placed.ok()) {  // what runs does not fit
      if (placed.status().message().empty()) std::abort();
      return 0;
    }
    Expect(*cluster, *placed, options.moves_max);
  }
  return 0;
}
