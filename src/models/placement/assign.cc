// Greedy and assignment; see assign.h.

#include "src/models/placement/assign.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "src/core/base/random.h"
#include "src/models/placement/flow.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

namespace {

// Values are at most 1; a large risk or stay value counts as this.
constexpr double kValueMax = 7;
// GPUs that an instance asks before it is left over: in a class they differ in memory alone.
constexpr int kAsksMax = 64;

int64_t Whole(double value) {
  return std::llround(std::clamp(value, -kValueMax, kValueMax) * kValueUnits);
}

// How many instances of a BE class go to a class of GPUs.
struct Amount {
  int32_t be = 0;
  int32_t gpu = 0;
  int64_t stay = 0;
  int64_t come = 0;
};

struct Amounts {
  std::vector<Amount> amounts;
  int64_t placed = 0;
};

// One block of GPUs and instances.
class Block {
 public:
  Block(const Problem& problem, const AssignOptions& options, State& state)
      : problem_(problem), options_(options), state_(state) {}

  void Assign(const std::vector<int32_t>& gpus, const std::vector<Item>& items,
              std::vector<Item>& left);

 private:
  using Stays = Table<std::pair<int32_t, int32_t>, int64_t>;

  bool Packs() const { return problem_.valuation().free_gpu > 1; }
  double FirstValue(const GpuClass& gpu) const {
    return gpu.lc == kNone ? 1 - problem_.valuation().free_gpu : 1;
  }
  std::vector<FlowLayer> LayersOf(const GpuClass& gpu, int32_t most) const;
  Amounts ByFlow(int32_t most) const;
  Amounts ByGreed(int32_t most) const;
  Amounts Solve(int32_t most) const { return options_.greedy ? ByGreed(most) : ByFlow(most); }
  Amounts Choose(size_t gpus, size_t items) const;
  void CountStays();
  void Carry(const Amounts& amounts, std::vector<Item>& left);

  const Problem& problem_;
  const AssignOptions& options_;
  State& state_;
  Classes classes_;
  std::vector<ClassPair> pairs_;
  std::vector<int32_t> class_of_gpu_;  // by GPU of the cluster; kNone outside the block
  Stays stays_;                        // by BE class and GPU class
};

// With at most `most` instances on a GPU.
std::vector<FlowLayer> Block::LayersOf(const GpuClass& gpu, int32_t most) const {
  const auto count = static_cast<int64_t>(gpu.gpus.size());
  const int64_t room = std::max(0, most - gpu.be) * count;
  if (Packs() && gpu.lc == kNone) {
    // A free GPU is opened only to place more, and is then filled.
    return {{.capacity = room, .value = Whole(FirstValue(gpu) / most)}};
  }
  if (gpu.be > 0) return {{.capacity = room, .value = 0}};
  const int64_t first = std::min(room, count);
  return {{.capacity = first, .value = Whole(FirstValue(gpu))},
          {.capacity = room - first, .value = 0}};
}

Amounts Block::ByFlow(int32_t most) const {
  FlowProblem flow;
  for (const BeClass& one : classes_.be) {
    flow.supplies.push_back(static_cast<int64_t>(one.items.size()));
  }
  for (const GpuClass& one : classes_.gpus) flow.sinks.push_back({LayersOf(one, most)});
  for (const ClassPair& pair : pairs_) {
    const int64_t supply = flow.supplies[static_cast<size_t>(pair.be)];
    flow.arcs.push_back({pair.be, pair.gpu, supply, Whole(pair.value)});
  }
  std::vector<std::pair<size_t, size_t>> stay_arcs;  // arc, and the pair that it stands for
  for (size_t i = 0; !stays_.empty() && i < pairs_.size(); ++i) {
    const auto found = stays_.find({pairs_[i].be, pairs_[i].gpu});
    if (found == stays_.end()) continue;
    stay_arcs.emplace_back(flow.arcs.size(), i);
    flow.arcs.push_back(
        {pairs_[i].be, pairs_[i].gpu, found->second, Whole(pairs_[i].value + options_.stay_value)});
  }
  const std::vector<int64_t> units = placement::Solve(flow);
  std::vector<int64_t> stay(pairs_.size(), 0);
  for (const auto& [arc, pair] : stay_arcs) stay[pair] = units[arc];
  Amounts out;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (units[i] + stay[i] == 0) continue;
    out.amounts.push_back({pairs_[i].be, pairs_[i].gpu, stay[i], units[i]});
    out.placed += units[i] + stay[i];
  }
  return out;
}

Amounts Block::ByGreed(int32_t most) const {
  std::vector<int64_t> supply;
  for (const BeClass& one : classes_.be) supply.push_back(static_cast<int64_t>(one.items.size()));
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const GpuClass& gpu = classes_.gpus[static_cast<size_t>(pairs_[i].gpu)];
    order.emplace_back(-(pairs_[i].value + FirstValue(gpu)), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Amount> taken(pairs_.size());
  Amounts out;
  for (int32_t layer = 0; layer < most; ++layer) {
    std::vector<int64_t> room;
    for (const GpuClass& one : classes_.gpus) {
      room.push_back(one.be <= layer ? static_cast<int64_t>(one.gpus.size()) : 0);
    }
    for (const auto& [key, i] : order) {
      int64_t& here = room[static_cast<size_t>(pairs_[i].gpu)];
      int64_t& wanting = supply[static_cast<size_t>(pairs_[i].be)];
      const int64_t units = std::min(here, wanting);
      here -= units;
      wanting -= units;
      taken[i].come += units;
      out.placed += units;
    }
  }
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (taken[i].come > 0) out.amounts.push_back({pairs_[i].be, pairs_[i].gpu, 0, taken[i].come});
  }
  return out;
}

// The least number of instances on a GPU, doubled while that places more.
Amounts Block::Choose(size_t gpus, size_t items) const {
  const int32_t limit = problem_.cluster().be_per_gpu;
  auto most =
      static_cast<int32_t>(std::min<size_t>((items + gpus - 1) / gpus, static_cast<size_t>(limit)));
  for (const GpuClass& one : classes_.gpus) most = std::max(most, std::min(one.be, limit));
  if (Packs()) most = limit;
  Amounts best = Solve(most);
  while (best.placed < static_cast<int64_t>(items) && most < limit) {
    most = std::min(limit, 2 * most);
    Amounts next = Solve(most);
    if (next.placed > best.placed) best = std::move(next);
  }
  return best;
}

void Block::CountStays() {
  for (size_t b = 0; b < classes_.be.size(); ++b) {
    for (const Item& item : classes_.be[b].items) {
      if (item.stays == kNone) continue;
      const int32_t gpu = class_of_gpu_[static_cast<size_t>(item.stays)];
      if (gpu != kNone) ++stays_[{static_cast<int32_t>(b), gpu}];
    }
  }
}

// Onto the GPUs of each class: those that stay first, then the others, the largest memory first, to
// the GPU with the fewest instances (or the most, where free GPUs shall stay free).
void Block::Carry(const Amounts& amounts, std::vector<Item>& left) {
  std::vector<std::vector<Item>> others(classes_.be.size());
  Stays may_stay;
  for (const Amount& amount : amounts.amounts) {
    if (amount.stay > 0) may_stay[{amount.be, amount.gpu}] = amount.stay;
  }
  for (size_t b = 0; b < classes_.be.size(); ++b) {
    for (const Item& item : classes_.be[b].items) {
      const int32_t gpu =
          item.stays == kNone ? kNone : class_of_gpu_[static_cast<size_t>(item.stays)];
      const auto found = may_stay.find({static_cast<int32_t>(b), gpu});
      if (gpu != kNone && found != may_stay.end() && found->second > 0 &&
          state_.Fits(item.stays, item.be)) {
        --found->second;
        state_.Add(item.stays, item.be);
      } else {
        others[b].push_back(item);
      }
    }
  }
  // By GPU class: its GPUs as instances, less memory, GPU.
  using Place = std::tuple<int64_t, int64_t, int32_t>;
  std::vector<std::set<Place>> places(classes_.gpus.size());
  const auto place_of = [&](int32_t gpu) -> Place {
    const auto count = static_cast<int64_t>(state_.Load(gpu).be.size());
    const bool pack = Packs() && state_.Load(gpu).lc == kNone;
    return {pack ? -count : count, -state_.MemoryLeft(gpu), gpu};
  };
  std::vector<size_t> next(classes_.be.size(), 0);
  for (const Amount& amount : amounts.amounts) {
    const auto b = static_cast<size_t>(amount.be);
    const auto g = static_cast<size_t>(amount.gpu);
    if (places[g].empty()) {
      for (const int32_t gpu : classes_.gpus[g].gpus) places[g].insert(place_of(gpu));
    }
    for (int64_t unit = 0; unit < amount.come && next[b] < others[b].size(); ++unit) {
      const Item item = others[b][next[b]++];
      int asked = 0;
      auto place = places[g].begin();
      while (place != places[g].end() && asked < kAsksMax &&
             !state_.Fits(std::get<2>(*place), item.be)) {
        ++asked;
        ++place;
      }
      if (place == places[g].end() || asked == kAsksMax) {
        left.push_back(item);
        continue;
      }
      const int32_t gpu = std::get<2>(*place);
      places[g].erase(place);
      state_.Add(gpu, item.be);
      places[g].insert(place_of(gpu));
    }
  }
  for (size_t b = 0; b < classes_.be.size(); ++b) {
    left.insert(left.end(), others[b].begin() + static_cast<ptrdiff_t>(next[b]), others[b].end());
  }
}

void Block::Assign(const std::vector<int32_t>& gpus, const std::vector<Item>& items,
                   std::vector<Item>& left) {
  if (gpus.empty() || items.empty()) {
    left.insert(left.end(), items.begin(), items.end());
    return;
  }
  classes_ = MakeClasses(problem_, state_, gpus, items);
  pairs_ = PairsOf(problem_, state_, classes_);
  class_of_gpu_.assign(static_cast<size_t>(problem_.gpus()), kNone);
  for (size_t g = 0; g < classes_.gpus.size(); ++g) {
    for (const int32_t gpu : classes_.gpus[g].gpus) {
      class_of_gpu_[static_cast<size_t>(gpu)] = static_cast<int32_t>(g);
    }
  }
  stays_.clear();
  CountStays();
  Carry(Choose(gpus.size(), items.size()), left);
}

template <class T>
void Shuffle(std::vector<T>& all, core::Random& random) {
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.Next() % i]);
}

std::vector<int32_t> AllGpus(const Problem& problem) {
  std::vector<int32_t> gpus(static_cast<size_t>(problem.gpus()));
  for (size_t i = 0; i < gpus.size(); ++i) gpus[i] = static_cast<int32_t>(i);
  return gpus;
}

// So that each block has about as many pairs of classes as a flow takes.
size_t BlocksOf(const Classes& classes, size_t gpus, size_t items) {
  size_t blocks = 1;
  while (std::min(classes.gpus.size(), gpus / blocks + 1) *
             std::min(classes.be.size(), items / blocks + 1) >
         kPairsOfBlockMax) {
    blocks *= 2;
  }
  return blocks;
}

}  // namespace

std::vector<Item> Assign(const Problem& problem, std::vector<Item> items,
                         const AssignOptions& options, State& state) {
  std::vector<Item> left;
  if (items.empty()) return left;
  std::vector<int32_t> gpus = AllGpus(problem);
  const size_t blocks =
      BlocksOf(MakeClasses(problem, state, gpus, items), gpus.size(), items.size());
  Block block(problem, options, state);
  if (blocks == 1) {
    block.Assign(gpus, items, left);
    return left;
  }
  core::Random random(options.seed);
  Shuffle(gpus, random);
  Shuffle(items, random);
  std::vector<std::vector<int32_t>> gpus_of(blocks);
  std::vector<std::vector<Item>> items_of(blocks);
  std::vector<size_t> block_of(gpus.size());
  for (size_t i = 0; i < gpus.size(); ++i) {
    gpus_of[i % blocks].push_back(gpus[i]);
    block_of[static_cast<size_t>(gpus[i])] = i % blocks;
  }
  size_t turn = 0;
  for (const Item& item : items) {
    const size_t at =
        item.stays == kNone ? turn++ % blocks : block_of[static_cast<size_t>(item.stays)];
    items_of[at].push_back(item);
  }
  for (size_t i = 0; i < blocks; ++i) block.Assign(gpus_of[i], items_of[i], left);
  return left;
}

double UpperBound(const Problem& problem, const State& state, const std::vector<Item>& items) {
  const double free_gpu = problem.valuation().free_gpu;
  const std::vector<int32_t> gpus = AllGpus(problem);
  double bound = 0;
  for (const int32_t gpu : gpus) bound += state.Load(gpu).lc == kNone ? free_gpu : 0;
  if (items.empty()) return bound;
  const Classes classes = MakeClasses(problem, state, gpus, items);
  if (classes.pairs_max() > kPairsOfBlockMax) {
    for (const int32_t gpu : gpus) {
      bound += state.Load(gpu).lc == kNone ? std::max(0.0, 1 - free_gpu) : 1;
    }
    return bound;
  }
  FlowProblem flow;
  flow.as_many_as_possible = false;
  for (const BeClass& one : classes.be) {
    flow.supplies.push_back(static_cast<int64_t>(one.items.size()));
  }
  for (const GpuClass& one : classes.gpus) {
    flow.sinks.push_back({{{.capacity = static_cast<int64_t>(one.gpus.size()), .value = 0}}});
  }
  for (const ClassPair& pair : PairsOf(problem, state, classes)) {
    const bool is_free = classes.gpus[static_cast<size_t>(pair.gpu)].lc == kNone;
    const double value = pair.value - (is_free ? free_gpu : 0);
    if (!(value > 0)) continue;
    flow.arcs.push_back(
        {pair.be, pair.gpu, flow.supplies[static_cast<size_t>(pair.be)],
         // Rounded up, so that the bound is one.
         static_cast<int64_t>(std::ceil(std::min(value, kValueMax) * kValueUnits))});
  }
  const std::vector<int64_t> units = Solve(flow);
  for (size_t i = 0; i < units.size(); ++i) {
    bound += static_cast<double>(units[i]) * static_cast<double>(flow.arcs[i].value) / kValueUnits;
  }
  return bound;
}

}  // namespace gpushare::models::placement
