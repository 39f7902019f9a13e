// Classes of GPUs and of BE instances; see classes.h.

#include "src/models/placement/classes.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

namespace {

std::vector<GpuClass> GpuClasses(const Problem& problem, const State& state,
                                 const std::vector<int32_t>& gpus) {
  // Kind (empty: no LC app), load, limit, memory, instances, p99.
  using Key = std::tuple<absl::string_view, double, double, int64_t, size_t, double>;
  Table<Key, size_t> known;
  std::vector<GpuClass> classes;
  for (const int32_t gpu : gpus) {
    const GpuLoad& load = state.Load(gpu);
    Key key = {"", 0, 0, state.MemoryLeft(gpu), load.be.size(), state.Of(gpu).p99};
    if (load.lc != kNone) {
      const LcApp& app = problem.cluster().lc[static_cast<size_t>(load.lc)];
      std::get<0>(key) = app.kind;
      std::get<1>(key) = app.load;
      std::get<2>(key) = problem.P99Limit(load.lc);
    }
    const auto [found, is_new] = known.try_emplace(key, classes.size());
    if (is_new) {
      classes.push_back({.lc = load.lc,
                         .memory_left = state.MemoryLeft(gpu),
                         .be = static_cast<int32_t>(load.be.size())});
    }
    classes[found->second].gpus.push_back(gpu);
  }
  return classes;
}

// `memories`: what the classes of GPUs have left, ascending.
std::vector<BeClass> BeClasses(const Problem& problem, const std::vector<int64_t>& memories,
                               const std::vector<Item>& items) {
  // Kind, weight, the first memory that is enough.
  using Key = std::tuple<absl::string_view, double, size_t>;
  const std::vector<BeApp>& apps = problem.cluster().be;
  Table<Key, size_t> known;
  std::vector<BeClass> classes;
  for (const Item& item : items) {
    const BeApp& app = apps[static_cast<size_t>(item.be)];
    const auto enough = std::lower_bound(memories.begin(), memories.end(), app.memory_bytes);
    const Key key = {app.kind, problem.cluster().together == Together::kAtOnce ? app.weight : 1.0,
                     static_cast<size_t>(enough - memories.begin())};
    const auto [found, is_new] = known.try_emplace(key, classes.size());
    if (is_new) classes.push_back({.be = item.be});
    classes[found->second].items.push_back(item);
  }
  for (BeClass& one : classes) {
    std::stable_sort(one.items.begin(), one.items.end(), [&](const Item& a, const Item& b) {
      return apps[static_cast<size_t>(a.be)].memory_bytes >
             apps[static_cast<size_t>(b.be)].memory_bytes;
    });
  }
  return classes;
}

}  // namespace

Classes MakeClasses(const Problem& problem, const State& state, const std::vector<int32_t>& gpus,
                    const std::vector<Item>& items) {
  Classes classes;
  classes.gpus = GpuClasses(problem, state, gpus);
  std::vector<int64_t> memories;
  for (const GpuClass& one : classes.gpus) memories.push_back(one.memory_left);
  std::sort(memories.begin(), memories.end());
  memories.erase(std::unique(memories.begin(), memories.end()), memories.end());
  classes.be = BeClasses(problem, memories, items);
  return classes;
}

std::vector<ClassPair> PairsOf(const Problem& problem, const State& state, const Classes& classes) {
  std::vector<ClassPair> pairs;
  for (size_t b = 0; b < classes.be.size(); ++b) {
    const int32_t be = classes.be[b].be;
    for (size_t g = 0; g < classes.gpus.size(); ++g) {
      const GpuClass& gpu = classes.gpus[g];
      if (!state.Fits(gpu.gpus.front(), be)) continue;
      pairs.push_back({.be = static_cast<int32_t>(b),
                       .gpu = static_cast<int32_t>(g),
                       .value = problem.At(gpu.lc, be).value});
    }
  }
  return pairs;
}

}  // namespace gpushare::models::placement
