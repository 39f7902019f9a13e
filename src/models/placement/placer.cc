// The facade of placement; see placer.h.

#include "src/models/placement/placer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/core/base/random.h"
#include "src/models/placement/assign.h"
#include "src/models/placement/classes.h"
#include "src/models/placement/one_by_one.h"
#include "src/models/placement/running.h"

namespace gpushare::models::placement {

namespace {

// What an instance that stays may be worth, from a tie to more than any BE rate, by factors of 4.
constexpr std::array<double, 13> kStayValues = {1e-6, 1e-3, 2e-3, 4e-3, 0.008, 0.016, 0.03,
                                                0.06, 0.12, 0.25, 0.5,  1,     2.5};
// GPUs and apps that the search for reasons looks at; others of the same cause are many.
constexpr int32_t kReasonGpusMax = 4'096;
constexpr int64_t kReasonQuestionsMax = 2'000'000;

absl::Status CheckOptions(const PlaceOptions& options) {
  const Valuation& valuation = options.valuation;
  for (const auto& [name, value] :
       {std::pair("number of error bars", valuation.error_bars), std::pair("risk", valuation.risk),
        std::pair("worth of a free GPU", valuation.free_gpu)}) {
    if (std::isfinite(value) && value >= 0 && value <= kValuationMax) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "The ", name, " is ", value, ", and it must be from 0 to ", kValuationMax, "."));
  }
  if (options.moves_max < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("The number of moves is ", options.moves_max, ", and it must be 0 or more."));
  }
  return absl::OkStatus();
}

class Placer {
 public:
  Placer(const Problem& problem, const PlaceOptions& options, RunningNow now)
      : problem_(problem), options_(options), now_(std::move(now)), base_(problem) {}

  Placement Place();

 private:
  void PlaceLc();
  void SplitRunning();
  std::vector<Item> Arriving() const;
  State Kept() const;
  State PlaceBe(bool& search_ended) const;
  void MoveOthers(State& state, bool& search_ended) const;
  void AssignWithMoves(const std::vector<Item>& arriving, State& best, LeftOver& rest) const;
  bool MayChange(const State& state) const;
  bool IsBetter(const State& state, const State& than) const;
  void ExplainLc(Placement& out) const;
  void ExplainStops(const std::vector<Change>& changes, std::vector<int64_t>& count,
                    Placement& out) const;
  void ExplainBe(const State& state, const std::vector<Change>& changes, bool search_ended,
                 Placement& out) const;
  Placement Finish(State state, bool search_ended) const;

  const Problem& problem_;
  const PlaceOptions& options_;
  RunningNow now_;
  State base_;                              // LC replicas alone
  std::vector<int32_t> lc_left_;            // by app
  std::vector<std::vector<int32_t>> stay_;  // by GPU: running BE instances that still fit
  std::vector<int32_t> displaced_;  // running BE instances that no longer fit where they are
};

// The smallest memory first, on the smallest GPU that has it: that places the most. Of equal GPUs
// the one with the fewest BE instances, or a random one.
void Placer::PlaceLc() {
  core::Random random(options_.seed);
  std::set<std::tuple<int64_t, uint64_t, int32_t>> open;
  for (int32_t gpu = 0; gpu < problem_.gpus(); ++gpu) {
    const GpuLoad& load = now_.gpus[static_cast<size_t>(gpu)];
    if (load.lc != kNone) {
      base_.PutLc(gpu, load.lc);
      continue;
    }
    const uint64_t order =
        options_.algorithm == Algorithm::kRandom ? random.Next() : load.be.size();
    open.insert({problem_.MemoryOf(gpu), order, gpu});
  }
  const std::vector<LcApp>& apps = problem_.cluster().lc;
  std::vector<int32_t> order(apps.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return apps[static_cast<size_t>(a)].memory_bytes < apps[static_cast<size_t>(b)].memory_bytes;
  });
  lc_left_ = now_.lc_arriving;
  for (const int32_t lc : order) {
    int32_t& left = lc_left_[static_cast<size_t>(lc)];
    while (left > 0) {
      const auto gpu = open.lower_bound({apps[static_cast<size_t>(lc)].memory_bytes, 0, 0});
      if (gpu == open.end()) break;
      base_.PutLc(std::get<2>(*gpu), lc);
      open.erase(gpu);
      --left;
    }
  }
}

// A new LC replica, a higher load or a lower bound may leave no room for what runs.
void Placer::SplitRunning() {
  State state = base_;
  stay_.resize(now_.gpus.size());
  for (int32_t gpu = 0; gpu < problem_.gpus(); ++gpu) {
    for (const int32_t be : now_.gpus[static_cast<size_t>(gpu)].be) {
      if (state.Fits(gpu, be)) {
        state.Add(gpu, be);
        stay_[static_cast<size_t>(gpu)].push_back(be);
      } else {
        displaced_.push_back(be);
      }
    }
  }
}

State Placer::Kept() const {
  State state = base_;
  for (int32_t gpu = 0; gpu < problem_.gpus(); ++gpu) {
    for (const int32_t be : stay_[static_cast<size_t>(gpu)]) state.Add(gpu, be);
  }
  return state;
}

// New instances, and as many displaced ones as may move.
std::vector<Item> Placer::Arriving() const {
  std::vector<Item> items;
  const auto moving = std::min<size_t>(displaced_.size(), static_cast<size_t>(options_.moves_max));
  for (size_t i = 0; i < moving; ++i) items.push_back({.be = displaced_[i]});
  for (size_t i = 0; i < now_.be_arriving.size(); ++i) {
    items.insert(items.end(), static_cast<size_t>(now_.be_arriving[i]),
                 Item{.be = static_cast<int32_t>(i)});
  }
  return items;
}

// Few enough running instances move, and each that leaves a GPU on which it fits has another.
bool Placer::MayChange(const State& state) const {
  int64_t moves = 0;
  for (const Change& change : ChangesOf(now_, stay_, state.loads())) {
    if (change.come.size() < change.left_fitting.size()) return false;
    moves += change.moves();
  }
  return moves <= options_.moves_max;
}

bool Placer::IsBetter(const State& state, const State& than) const {
  return std::pair(state.be_placed(), state.Value()) > std::pair(than.be_placed(), than.Value());
}

// The assignment may move what runs: the more an instance that stays is worth, the fewer move. The
// least worth with which the moves are few enough is searched for by halving.
void Placer::AssignWithMoves(const std::vector<Item>& arriving, State& best, LeftOver& rest) const {
  std::vector<Item> items = arriving;
  for (int32_t gpu = 0; gpu < problem_.gpus(); ++gpu) {
    for (const int32_t be : stay_[static_cast<size_t>(gpu)]) {
      items.push_back({.be = be, .stays = gpu});
    }
  }
  size_t low = 0;
  size_t high = kStayValues.size();
  while (low < high) {
    // Often the bound does not bind.
    const size_t at = low == 0 && high == kStayValues.size() ? 0 : (low + high) / 2;
    State state = base_;
    LeftOver left = PlaceFirstFit(
        problem_,
        Assign(problem_, items, {.stay_value = kStayValues[at], .seed = options_.seed}, state),
        state);
    const bool drops = std::any_of(left.items.begin(), left.items.end(),
                                   [](const Item& item) { return item.stays != kNone; });
    if (drops || !MayChange(state)) {
      low = at + 1;
      continue;
    }
    high = at;
    if (!IsBetter(state, best)) continue;
    best = std::move(state);
    rest = std::move(left);
  }
}

// Only the first moves_max displaced instances were to move. Where fewer moved, others may.
void Placer::MoveOthers(State& state, bool& search_ended) const {
  if (static_cast<int64_t>(displaced_.size()) <= options_.moves_max) return;
  const auto moves = static_cast<int64_t>(
      MovesOf(now_, ChangesOf(now_, stay_, state.loads()), options_.moves_max).size());
  if (moves == options_.moves_max) return;
  std::vector<Item> others;
  for (size_t i = static_cast<size_t>(options_.moves_max); i < displaced_.size(); ++i) {
    others.push_back({.be = displaced_[i]});
  }
  const LeftOver left = PlaceFirstFit(problem_, others, state, options_.moves_max - moves);
  search_ended = search_ended || left.search_ended;
}

State Placer::PlaceBe(bool& search_ended) const {
  const std::vector<Item> arriving = Arriving();
  State state = Kept();
  LeftOver rest;
  switch (options_.algorithm) {
    case Algorithm::kRandom:
      rest = PlaceAtRandom(problem_, arriving, options_.seed, state);
      break;
    case Algorithm::kFirstFit:
      rest = PlaceFirstFit(problem_, arriving, state);
      break;
    case Algorithm::kGreedy:
    case Algorithm::kAssignment: {
      const State kept = state;
      const AssignOptions greedy = {.greedy = true, .seed = options_.seed};
      rest = PlaceFirstFit(problem_, Assign(problem_, arriving, greedy, state), state);
      if (options_.algorithm == Algorithm::kGreedy) break;
      // By flow around what runs, then with moves; the best of all counts.
      State flow = kept;
      LeftOver flow_rest =
          PlaceFirstFit(problem_, Assign(problem_, arriving, {.seed = options_.seed}, flow), flow);
      if (!IsBetter(state, flow)) {
        state = std::move(flow);
        rest = std::move(flow_rest);
      }
      const auto free_moves =
          options_.moves_max -
          std::min<int64_t>(options_.moves_max, static_cast<int64_t>(displaced_.size()));
      if (free_moves == 0 || kept.be_placed() == 0) break;
      AssignWithMoves(arriving, state, rest);
      break;
    }
  }
  search_ended = rest.search_ended;
  MoveOthers(state, search_ended);
  return state;
}

void Placer::ExplainLc(Placement& out) const {
  int64_t largest = 0;
  for (const GpuGroup& group : problem_.cluster().gpus) {
    largest = std::max(largest, group.memory_bytes);
  }
  for (size_t i = 0; i < lc_left_.size(); ++i) {
    if (lc_left_[i] == 0) continue;
    const LcApp& app = problem_.cluster().lc[i];
    std::string reason = app.memory_bytes > largest
                             ? absl::StrCat("A replica needs ", app.memory_bytes,
                                            " bytes, and the largest GPU has ", largest, ".")
                             : absl::StrCat("Each of the GPUs with ", app.memory_bytes,
                                            " bytes has an LC replica already.");
    out.unplaced.push_back({app.name, true, lc_left_[i], std::move(reason)});
  }
}

// Takes those that a larger number of moves would have moved, or looked at, off `count`.
void Placer::ExplainStops(const std::vector<Change>& changes, std::vector<int64_t>& count,
                          Placement& out) const {
  if (out.moved < options_.moves_max) return;
  std::vector<int64_t> bounded(count.size(), 0);
  for (auto i = static_cast<size_t>(options_.moves_max); i < displaced_.size(); ++i) {
    ++bounded[static_cast<size_t>(displaced_[i])];
  }
  std::vector<int64_t> moved(count.size(), 0);
  for (const Move& move : out.moves) ++moved[static_cast<size_t>(move.be)];
  for (size_t be = 0; be < count.size(); ++be) {
    const int64_t number = std::min(bounded[be], changes[be].left() - moved[be]);
    if (number == 0) continue;
    count[be] -= number;
    out.unplaced.push_back(
        {problem_.cluster().be[be].name, false, number,
         absl::StrCat("It no longer fits where it runs, and the number of moves is bounded by ",
                      options_.moves_max, ".")});
  }
}

void Placer::ExplainBe(const State& state, const std::vector<Change>& changes, bool search_ended,
                       Placement& out) const {
  std::vector<int64_t> count;  // by app: instances without a GPU
  for (const BeApp& app : problem_.cluster().be) count.push_back(app.instances);
  for (const GpuLoad& load : state.loads()) {
    for (const int32_t be : load.be) --count[static_cast<size_t>(be)];
  }
  ExplainStops(changes, count, out);
  int64_t questions = 0;
  for (int32_t be = 0; be < static_cast<int32_t>(count.size()); ++be) {
    const int64_t number = count[static_cast<size_t>(be)];
    if (number == 0) continue;
    const BeApp& app = problem_.cluster().be[static_cast<size_t>(be)];
    std::array<int64_t, 5> answers = {};
    const int32_t asked = std::min(problem_.gpus(), kReasonGpusMax);
    std::string reason = absl::StrCat("Its reason is not known: the search for reasons ends after ",
                                      kReasonQuestionsMax, " checks of an app on a GPU.");
    if (questions + asked <= kReasonQuestionsMax) {
      questions += asked;
      for (int32_t gpu = 0; gpu < asked; ++gpu) {
        ++answers[static_cast<size_t>(state.Ask(gpu, be))];
      }
      std::vector<std::string> causes;
      const auto say = [&](State::Answer answer, absl::string_view text) {
        const int64_t gpus = answers[static_cast<size_t>(answer)];
        if (gpus > 0) causes.push_back(absl::StrCat(gpus, gpus == 1 ? " has " : " have ", text));
      };
      const int32_t full = problem_.cluster().be_per_gpu;
      say(State::Answer::kFull, absl::StrCat(full, full == 1 ? " BE instance" : " BE instances"));
      say(State::Answer::kMemory, absl::StrCat("less than its ", app.memory_bytes, " bytes left"));
      say(State::Answer::kBreaksBound, "an LC app whose bound would break");
      say(State::Answer::kUnknown, "an LC app beside which it is not predicted");
      say(State::Answer::kFits, search_ended ? "room that the search did not reach"
                                             : "room that the placement did not use");
      reason = absl::StrCat("Of ", asked == problem_.gpus() ? "" : "the first ", asked,
                            asked == 1 ? " GPU, " : " GPUs, ", absl::StrJoin(causes, ", "), ".");
    }
    out.unplaced.push_back({app.name, false, number, std::move(reason)});
  }
}

Placement Placer::Finish(State state, bool search_ended) const {
  Placement out;
  const std::vector<Change> changes = ChangesOf(now_, stay_, state.loads());
  out.moves = MovesOf(now_, changes, options_.moves_max);
  out.moved = static_cast<int64_t>(out.moves.size());
  if (options_.explain) {
    ExplainLc(out);
    ExplainBe(state, changes, search_ended, out);
  }
  out.be_placed = state.be_placed();
  for (int32_t gpu = 0; gpu < problem_.gpus(); ++gpu) {
    const GpuLoad& load = state.Load(gpu);
    const GpuEffect effect = state.Of(gpu);
    out.effects.push_back(effect);
    out.be_rate += effect.be_rate;
    out.value += effect.value;
    if (load.lc == kNone && load.be.empty()) ++out.free_gpus;
    if (load.lc == kNone) continue;
    ++out.lc_placed;
    const bool broken = std::any_of(load.be.begin(), load.be.end(), [&](int32_t be) {
      return problem_.At(load.lc, be).verdict != Problem::Verdict::kAllowed;
    });
    if (broken || effect.p99 > std::max(1.0, problem_.P99Limit(load.lc)) + 1e-9) {
      ++out.bounds_broken;
    }
  }
  std::vector<Item> all;
  for (size_t i = 0; i < problem_.cluster().be.size(); ++i) {
    all.insert(all.end(), static_cast<size_t>(problem_.cluster().be[i].instances),
               Item{.be = static_cast<int32_t>(i)});
  }
  out.upper_bound = UpperBound(problem_, base_, all);
  out.gpus = state.Take();
  return out;
}

Placement Placer::Place() {
  PlaceLc();
  SplitRunning();
  bool search_ended = false;
  State state = PlaceBe(search_ended);
  return Finish(std::move(state), search_ended);
}

}  // namespace

absl::StatusOr<Placement> Place(const Cluster& cluster, const PairSource& pairs,
                                const PlaceOptions& options) {
  if (absl::Status status = Check(cluster); !status.ok()) return status;
  return PlaceChecked(cluster, pairs, options);
}

absl::StatusOr<Placement> PlaceChecked(const Cluster& cluster, const PairSource& pairs,
                                       const PlaceOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  const Problem problem(cluster, pairs, options.valuation);
  absl::StatusOr<RunningNow> now = ReadRunning(problem);
  if (!now.ok()) return now.status();
  return Placer(problem, options, *std::move(now)).Place();
}

}  // namespace gpushare::models::placement
