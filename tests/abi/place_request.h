// A cluster as the arrays of gpushare_place, and one call with them. The cluster outlives it.

#ifndef GPUSHARE_TESTS_ABI_PLACE_REQUEST_H_
#define GPUSHARE_TESTS_ABI_PLACE_REQUEST_H_

#include <gpushare/gpushare.h>

#include <cstdint>
#include <vector>

#include "src/models/placement/cluster.h"

namespace gpushare_test {

struct PlaceRequest {
  explicit PlaceRequest(const gpushare::models::placement::Cluster& cluster) {
    options.be_per_gpu = cluster.be_per_gpu;
    options.together = static_cast<int32_t>(cluster.together);
    for (const auto& group : cluster.gpus) {
      gpus.push_back(GPUSHARE_PLACE_GPU_INIT);
      gpus.back().count = group.count;
      gpus.back().name = group.name.c_str();
      gpus.back().memory_bytes = group.memory_bytes;
    }
    for (const auto& app : cluster.lc) {
      lc.push_back(GPUSHARE_PLACE_LC_INIT);
      lc.back().replicas = app.replicas;
      lc.back().name = app.name.c_str();
      lc.back().kind = app.kind.c_str();
      lc.back().load = app.load;
      lc.back().memory_bytes = app.memory_bytes;
      lc.back().p99_bound = app.p99_bound;
      lc.back().target_ns = app.target_ns;
      lc.back().p99_alone_ns = app.p99_alone_ns;
      out.insert(out.end(), static_cast<size_t>(app.replicas), kUnwritten);
    }
    for (const auto& app : cluster.be) {
      be.push_back(GPUSHARE_PLACE_BE_INIT);
      be.back().instances = app.instances;
      be.back().name = app.name.c_str();
      be.back().kind = app.kind.c_str();
      be.back().memory_bytes = app.memory_bytes;
      be.back().weight = app.weight;
      out.insert(out.end(), static_cast<size_t>(app.instances), kUnwritten);
    }
    for (const auto& row : cluster.pairs) {
      pairs.push_back(GPUSHARE_PLACE_PAIR_INIT);
      pairs.back().lc = row.lc.c_str();
      pairs.back().be = row.be.c_str();
      pairs.back().load = row.load;
      pairs.back().p99_ratio = row.p99_ratio;
      pairs.back().p99_error = row.p99_error;
      pairs.back().be_rate = row.be_rate;
      pairs.back().be_error = row.be_error;
    }
  }

  gpushare_status Place() {
    return gpushare_place(&options, gpus.data(), gpus.size(), lc.data(), lc.size(), be.data(),
                          be.size(), pairs.data(), pairs.size(),
                          running.empty() ? nullptr : running.data(), out.data(), out.size(),
                          &result);
  }

  static constexpr int32_t kUnwritten = -77;

  gpushare_place_options options = GPUSHARE_PLACE_OPTIONS_INIT;
  std::vector<gpushare_place_gpu> gpus;
  std::vector<gpushare_place_lc> lc;
  std::vector<gpushare_place_be> be;
  std::vector<gpushare_place_pair> pairs;
  std::vector<int32_t> running;
  std::vector<int32_t> out;
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
};

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_ABI_PLACE_REQUEST_H_
