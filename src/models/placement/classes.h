// GPUs and BE instances that a placement need not tell apart, and what a pair of them is worth.
//
// A cluster has few kinds and many of each, so that an assignment over classes is small. GPUs of a
// class have the same LC kind, load and bound, the same memory left, and the same BE already.
// Instances of a class have the same kind and fit into the same classes of GPUs by memory.
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_CLASSES_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_CLASSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/models/placement/state.h"

namespace gpushare::models::placement {

// A BE instance that wants a GPU.
struct Item {
  int32_t be = 0;
  int32_t stays = kNone;  // the GPU that it runs on and may leave
};

struct GpuClass {
  std::vector<int32_t> gpus = {};
  int32_t lc = kNone;  // one of its LC apps
  int64_t memory_left = 0;
  int32_t be = 0;  // instances on each already
};

struct BeClass {
  std::vector<Item> items = {};  // the largest memory first
  int32_t be = 0;                // one of its apps
};

// A pair of classes that may meet.
struct ClassPair {
  int32_t be = 0;
  int32_t gpu = 0;
  double value = 0;  // of an instance in its turn
};

struct Classes {
  std::vector<GpuClass> gpus;
  std::vector<BeClass> be;

  size_t pairs_max() const { return gpus.size() * be.size(); }
};

Classes MakeClasses(const Problem& problem, const State& state, const std::vector<int32_t>& gpus,
                    const std::vector<Item>& items);

// Those that the memory and the bound allow, by BE class, then by GPU class.
std::vector<ClassPair> PairsOf(const Problem& problem, const State& state, const Classes& classes);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_CLASSES_H_
