// Small random clusters, and the best placement of one by trying all. Threads: any.

#ifndef GPUSHARE_TESTS_MODELS_PLACEMENT_RANDOM_CLUSTERS_H_
#define GPUSHARE_TESTS_MODELS_PLACEMENT_RANDOM_CLUSTERS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/core/base/random.h"
#include "src/models/placement/cluster.h"
#include "src/models/placement/state.h"

namespace gpushare::models::placement {

struct ClusterShape {
  int gpus = 4;
  int lc = 3;
  int be = 4;
  int32_t be_per_gpu = 1;
  bool memory_binds = true;
  Together together = Together::kInTurns;
};

// Each app is of its own kind, so that nothing is alike.
inline Cluster RandomCluster(const ClusterShape& shape, uint64_t seed) {
  core::Random random(seed);
  Cluster cluster;
  cluster.be_per_gpu = shape.be_per_gpu;
  cluster.together = shape.together;
  const auto name = [](const char* what, int i) { return what + std::to_string(i); };
  for (int i = 0; i < shape.gpus; ++i) {
    cluster.gpus.push_back({name("g", i), shape.memory_binds ? 60 + 20 * (i % 3) : 1'000'000, 1});
  }
  for (int i = 0; i < shape.lc; ++i) {
    cluster.lc.push_back({.name = name("lc", i),
                          .kind = name("s", i),
                          .load = random.Uniform(0.1, 0.8),
                          .memory_bytes = 10 + 10 * i,
                          .p99_bound = random.Uniform(1.0, 1.3)});
  }
  for (int i = 0; i < shape.be; ++i) {
    cluster.be.push_back({.name = name("be", i),
                          .kind = name("b", i),
                          .memory_bytes = 10 + static_cast<int64_t>(random.Next() % 50),
                          .weight = random.Uniform(0.5, 2)});
    for (int j = 0; j < shape.lc; ++j) {
      cluster.pairs.push_back({.lc = name("s", j),
                               .be = name("b", i),
                               .load = 0.9,
                               .p99_ratio = random.Uniform(0.95, 1.25),
                               .p99_error = random.Uniform(0, 0.05),
                               .be_rate = random.Uniform(0.1, 0.9),
                               .be_error = random.Uniform(0, 0.1)});
    }
  }
  return cluster;
}

// Instances placed, then the value; LC replicas stand as in `base`, which has no BE.
inline std::pair<int64_t, double> BestOfAll(const Problem& problem, const State& base,
                                            const std::vector<int32_t>& items) {
  std::pair<int64_t, double> best = {base.be_placed(), base.Value()};
  const auto search = [&](const auto& self, const State& state, size_t next) -> void {
    if (next == items.size()) {
      best = std::max(best, std::pair(state.be_placed(), state.Value()));
      return;
    }
    self(self, state, next + 1);
    for (int32_t gpu = 0; gpu < problem.gpus(); ++gpu) {
      if (!state.Fits(gpu, items[next])) continue;
      State with = state;
      with.Add(gpu, items[next]);
      self(self, with, next + 1);
    }
  };
  search(search, base, 0);
  return best;
}

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_TESTS_MODELS_PLACEMENT_RANDOM_CLUSTERS_H_
