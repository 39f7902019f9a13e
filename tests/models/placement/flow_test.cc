// The flow against trying all.

#include "src/models/placement/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/core/base/random.h"

namespace gpushare::models::placement {
namespace {

struct Total {
  int64_t units = 0;
  int64_t value = 0;
  bool operator<(const Total& other) const {
    return std::pair(units, value) < std::pair(other.units, other.value);
  }
};

Total TotalOf(const FlowProblem& flow, const std::vector<int64_t>& units) {
  Total total;
  std::vector<int64_t> into(flow.sinks.size(), 0);
  for (size_t i = 0; i < units.size(); ++i) {
    total.units += units[i];
    total.value += units[i] * flow.arcs[i].value;
    into[static_cast<size_t>(flow.arcs[i].sink)] += units[i];
  }
  for (size_t sink = 0; sink < into.size(); ++sink) {
    int64_t left = into[sink];
    for (const FlowLayer& layer : flow.sinks[sink].layers) {
      total.value += std::min(left, layer.capacity) * layer.value;
      left -= std::min(left, layer.capacity);
    }
    EXPECT_EQ(left, 0) << "sink " << sink << " has more than its layers hold";
  }
  return total;
}

Total BestOfAll(const FlowProblem& flow, std::vector<int64_t>& units, std::vector<int64_t> supply,
                std::vector<int64_t> room, size_t arc) {
  if (arc == flow.arcs.size()) return TotalOf(flow, units);
  Total best = {-1, 0};
  const auto from = static_cast<size_t>(flow.arcs[arc].supply);
  const auto to = static_cast<size_t>(flow.arcs[arc].sink);
  const int64_t most = std::min({flow.arcs[arc].capacity, supply[from], room[to]});
  for (int64_t count = 0; count <= most; ++count) {
    units[arc] = count;
    supply[from] -= count;
    room[to] -= count;
    best = std::max(best, BestOfAll(flow, units, supply, room, arc + 1));
    supply[from] += count;
    room[to] += count;
  }
  units[arc] = 0;
  return best;
}

TEST(FlowTest, PlacesAsManyAsTryingAllAndOfNoLessValue) {
  core::Random random(7);
  for (int round = 0; round < 300; ++round) {
    FlowProblem flow;
    std::vector<int64_t> room;
    for (int i = 0; i < 3; ++i) {
      flow.supplies.push_back(static_cast<int64_t>(random.Next() % 3));
      const FlowLayer first = {static_cast<int64_t>(random.Next() % 2), 500};
      const FlowLayer second = {static_cast<int64_t>(random.Next() % 2), -100};
      flow.sinks.push_back({{first, second}});
      room.push_back(first.capacity + second.capacity);
    }
    for (int32_t i = 0; i < 3; ++i) {
      for (int32_t j = 0; j < 3; ++j) {
        if (random.Uniform() < 0.3) continue;
        flow.arcs.push_back({i, j, 2, static_cast<int64_t>(random.Next() % 2000) - 800});
      }
    }
    std::vector<int64_t> units(flow.arcs.size(), 0);
    const Total best = BestOfAll(flow, units, flow.supplies, room, 0);
    const Total found = TotalOf(flow, Solve(flow));
    EXPECT_EQ(found.units, best.units) << "round " << round;
    EXPECT_EQ(found.value, best.value) << "round " << round;
  }
}

TEST(FlowTest, AUnitThatAddsNothingStaysUnlessAsManyAsPossibleGo) {
  FlowProblem flow;
  flow.supplies = {1};
  flow.sinks = {{{{.capacity = 1, .value = 0}}}};
  flow.arcs = {{.supply = 0, .sink = 0, .capacity = 1, .value = -5}};
  EXPECT_EQ(Solve(flow), std::vector<int64_t>{1});
  flow.as_many_as_possible = false;
  EXPECT_EQ(Solve(flow), std::vector<int64_t>{0});
}

TEST(FlowTest, NothingToPlaceIsNoFlow) {
  EXPECT_TRUE(Solve({}).empty());
  FlowProblem flow;
  flow.supplies = {0};
  flow.sinks = {{{{.capacity = 1}}}};
  flow.arcs = {{.capacity = 1, .value = 3}};
  EXPECT_EQ(Solve(flow), std::vector<int64_t>{0});
}

}  // namespace
}  // namespace gpushare::models::placement
