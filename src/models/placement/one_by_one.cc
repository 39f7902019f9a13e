// Random and first fit; see one_by_one.h.

#include "src/models/placement/one_by_one.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "src/core/base/random.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

namespace {

// GPUs drawn before all of them are asked in turn from a random one on.
constexpr int kDrawsMax = 32;

// Where to look for instances like this one: of the same kind, memory and weight.
using Like = std::tuple<absl::string_view, int64_t, double>;

Like LikeOf(const Problem& problem, const Item& item) {
  const BeApp& app = problem.cluster().be[static_cast<size_t>(item.be)];
  return {app.kind, app.memory_bytes, app.weight};
}

// The GPUs that have fewer instances than a GPU may: full ones are passed over without a question.
class OpenGpus {
 public:
  OpenGpus(const Problem& problem, const State& state) : problem_(problem), state_(state) {
    for (int32_t gpu = 0; gpu <= problem.gpus(); ++gpu) next_.push_back(gpu);
  }
  // The first from `gpu` on; gpus() where there is none.
  int32_t From(int32_t gpu) {
    while (true) {
      int32_t& next = next_[static_cast<size_t>(gpu)];
      if (next == gpu) {
        if (gpu == problem_.gpus() || !IsFull(gpu)) return gpu;
        next = gpu + 1;
      }
      next = next_[static_cast<size_t>(next)];  // halves the path for the next call
      gpu = next;
    }
  }

 private:
  bool IsFull(int32_t gpu) const {
    return static_cast<int32_t>(state_.Load(gpu).be.size()) >= problem_.cluster().be_per_gpu;
  }

  const Problem& problem_;
  const State& state_;
  std::vector<int32_t> next_;
};

}  // namespace

LeftOver PlaceAtRandom(const Problem& problem, std::vector<Item> items, uint64_t seed,
                       State& state) {
  core::Random random(seed);
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.Next() % i]);
  LeftOver out;
  int64_t questions = 0;
  OpenGpus open(problem, state);
  const auto gpus = static_cast<uint64_t>(problem.gpus());
  // What one does not fit on any GPU, none like it does: GPUs only fill.
  Table<Like, bool> refused;
  for (const Item& item : items) {
    if (refused.contains(LikeOf(problem, item))) {
      out.items.push_back(item);
      continue;
    }
    int32_t found = kNone;
    for (int draw = 0; draw < kDrawsMax && found == kNone; ++draw) {
      const auto gpu = static_cast<int32_t>(random.Next() % gpus);
      if (state.Fits(gpu, item.be)) found = gpu;
    }
    const auto start = static_cast<int32_t>(random.Next() % gpus);
    // From a random one to the last, then from the first to it.
    for (const auto& [begin, end] : {std::pair(start, problem.gpus()), std::pair(0, start)}) {
      for (int32_t gpu = open.From(begin); gpu < end; gpu = open.From(gpu + 1)) {
        if (found != kNone || questions >= kQuestionsMax) break;
        ++questions;
        if (state.Fits(gpu, item.be)) found = gpu;
      }
    }
    if (found != kNone) {
      state.Add(found, item.be);
      continue;
    }
    out.search_ended = out.search_ended || questions >= kQuestionsMax;
    if (questions < kQuestionsMax) refused[LikeOf(problem, item)] = true;
    out.items.push_back(item);
  }
  return out;
}

LeftOver PlaceFirstFit(const Problem& problem, const std::vector<Item>& items, State& state,
                       int64_t placed_max) {
  LeftOver out;
  int64_t questions = 0;
  OpenGpus open(problem, state);
  // A GPU that refused an instance refuses all like it later: GPUs only fill.
  Table<Like, int32_t> from;
  int64_t placed = 0;
  for (const Item& item : items) {
    if (placed == placed_max) {
      out.items.push_back(item);
      continue;
    }
    int32_t& gpu = from[LikeOf(problem, item)];
    gpu = open.From(gpu);
    while (gpu < problem.gpus() && questions < kQuestionsMax && !state.Fits(gpu, item.be)) {
      ++questions;
      gpu = open.From(gpu + 1);
    }
    if (gpu < problem.gpus() && questions < kQuestionsMax) {
      state.Add(gpu, item.be);
      ++placed;
      continue;
    }
    out.search_ended = out.search_ended || questions >= kQuestionsMax;
    out.items.push_back(item);
  }
  return out;
}

}  // namespace gpushare::models::placement
