// BE instances one by one: random and first fit, which are the baselines, and what an assignment
// left over.
//
// Bounded by questions whether an instance fits, not by time, so that a placement is the same on
// every machine. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_ONE_BY_ONE_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_ONE_BY_ONE_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "src/models/placement/classes.h"
#include "src/models/placement/state.h"

namespace gpushare::models::placement {

// Questions of one call. A question takes about 0.1 us.
inline constexpr int64_t kQuestionsMax = 20'000'000;

struct LeftOver {
  std::vector<Item> items;
  bool search_ended = false;  // by kQuestionsMax: some of them might still fit
};

// Each in a random order to a random GPU that takes it.
LeftOver PlaceAtRandom(const Problem& problem, std::vector<Item> items, uint64_t seed,
                       State& state);

// Each to the first GPU that takes it, and no more than placed_max of them.
LeftOver PlaceFirstFit(const Problem& problem, const std::vector<Item>& items, State& state,
                       int64_t placed_max = std::numeric_limits<int64_t>::max());

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_ONE_BY_ONE_H_
