// Algorithms 1 to 3 of the thesis. See heuristic.h.

#include "src/models/partition/heuristic.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gpushare::models::partition {
namespace {

// Utilisations of a partition at every size, so that those of a union are sums.
class Shares {
 public:
  Shares(const Tester& tester, int32_t task)
      : concurrent_(tester.analysis() == Analysis::kConcurrent) {
    const Workload& workload = tester.workload();
    const auto kind = static_cast<size_t>(workload.task(task).kind);
    count_[kind] = 1;
    table_.resize(static_cast<size_t>(workload.sizes()));
    for (int size = 1; size <= workload.sizes(); ++size) {
      AtSize& row = table_[static_cast<size_t>(size) - 1];
      for (const bool conflict : {false, true}) {
        row[kind][conflict ? 1 : 0] = workload.Share(task, size, conflict);
      }
    }
  }

  void Add(const Shares& other) {
    for (size_t i = 0; i < table_.size(); ++i) {
      for (size_t kind = 0; kind < kKinds; ++kind) {
        table_[i][kind][0] += other.table_[i][kind][0];
        table_[i][kind][1] += other.table_[i][kind][1];
      }
    }
    for (size_t kind = 0; kind < kKinds; ++kind) count_[kind] += other.count_[kind];
  }

  static double OfUnion(const Shares& one, const Shares& other, int size) {
    double sum = 0;
    const auto at = static_cast<size_t>(size) - 1;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      const bool conflict = one.concurrent_ && one.count_[kind] + other.count_[kind] > 1;
      sum += one.table_[at][kind][conflict ? 1 : 0] + other.table_[at][kind][conflict ? 1 : 0];
    }
    return sum;
  }

 private:
  using AtSize = std::array<std::array<double, 2>, kKinds>;  // by kind, with and without conflict
  bool concurrent_;
  std::array<int, kKinds> count_ = {};
  std::vector<AtSize> table_;
};

struct Entry {
  Partition partition;
  int id = 0;
  double utilisation = 0;
  bool exhausted = false;                       // no other may be merged with it
  std::optional<Apart> apart = std::nullopt;    // ACT alone
  std::optional<Shares> shares = std::nullopt;  // BF alone
};

class Merger {
 public:
  Merger(Tester& tester, const std::vector<Partition>& singles, const PairFlags* pairs,
         const HeuristicOptions& options)
      : tester_(tester),
        pairs_(pairs),
        options_(options),
        failed_(2 * static_cast<int>(singles.size())) {
    for (const Partition& one : singles) {
      std::optional<Shares> shares;
      if (!MergesWhileSorting()) shares.emplace(tester, one.tasks.front());
      Insert(one, std::move(shares));
    }
    size_ = SizeOf(singles);
  }

  // Algorithm 1.
  std::vector<Partition> Run() {
    while (size_ > options_.size_goal && tester_.tests() < options_.tests_max) {
      const size_t chosen = SelectPartition();
      if (chosen == list_.size()) break;
      if (MergesWhileSorting()) {
        MergeWithBest(chosen);
      } else {
        MergeWithFirst(chosen);
      }
    }
    std::vector<Partition> out;
    out.reserve(list_.size());
    for (Entry& entry : list_) out.push_back(std::move(entry.partition));
    return out;
  }

 private:
  bool MergesWhileSorting() const {
    return options_.order == Order::kSmallest || options_.order == Order::kMostSaved;
  }

  // Keeps the list sorted; ties in the order of making.
  void Insert(Partition partition, std::optional<Shares> shares) {
    Entry entry = {
        .partition = std::move(partition), .id = next_id_++, .shares = std::move(shares)};
    entry.utilisation = tester_.Utilisation(entry.partition.tasks, entry.partition.size);
    if (pairs_ != nullptr) entry.apart.emplace(*pairs_, entry.partition.tasks);
    for (Entry& other : list_) {
      if (other.exhausted && !IsForbidden(entry, other)) other.exhausted = false;
    }
    const auto at = std::upper_bound(
        list_.begin(), list_.end(), entry, [&](const Entry& one, const Entry& other) {
          return options_.increasing ? one.utilisation < other.utilisation
                                     : one.utilisation > other.utilisation;
        });
    list_.insert(at, std::move(entry));
  }

  // Algorithm 3: the first partition with eligible ones, which go to eligible_; list_.size(): none.
  size_t SelectPartition() {
    for (size_t i = 0; i < list_.size(); ++i) {
      if (list_[i].exhausted) continue;
      eligible_.clear();
      for (size_t j = 0; j < list_.size(); ++j) {
        if (j != i && !IsForbidden(list_[i], list_[j])) eligible_.push_back(j);
      }
      if (!eligible_.empty()) return i;
      list_[i].exhausted = true;
    }
    return list_.size();
  }

  bool IsForbidden(const Entry& one, const Entry& other) {
    if (failed_.Has(one.id, other.id)) return true;
    if (pairs_ == nullptr || !one.apart->Forbids(*other.apart)) return false;
    failed_.Set(one.id, other.id);
    return true;
  }

  // Algorithm 2 with sizes of at most `most`: 0, or the size of the union, whose tasks are then in
  // union_ and whose mode is the tester's.
  int Merge(const Entry& one, const Entry& other, int most) {
    union_.resize(one.partition.tasks.size() + other.partition.tasks.size());
    std::merge(one.partition.tasks.begin(), one.partition.tasks.end(),
               other.partition.tasks.begin(), other.partition.tasks.end(), union_.begin());
    return tester_.LeastSize(union_, std::max(one.partition.size, other.partition.size), most);
  }

  int LargestValid(const Entry& one, const Entry& other) const {
    return std::min(one.partition.size + other.partition.size - 1, tester_.workload().sizes());
  }

  void Replace(size_t one, size_t other, Partition merged) {
    size_ += merged.size - list_[one].partition.size - list_[other].partition.size;
    std::optional<Shares> shares = std::move(list_[one].shares);
    if (shares) shares->Add(*list_[other].shares);
    list_.erase(list_.begin() + static_cast<ptrdiff_t>(std::max(one, other)));
    list_.erase(list_.begin() + static_cast<ptrdiff_t>(std::min(one, other)));
    Insert(std::move(merged), std::move(shares));
  }

  // SMS: merges with every eligible one and keeps the best. A union that cannot beat the best so
  // far is only tested at the size that would.
  void MergeWithBest(size_t chosen) {
    Partition best;
    size_t with = list_.size();
    int best_rank = INT32_MAX;  // size, or size less what both had
    for (const size_t j : eligible_) {
      if (tester_.tests() >= options_.tests_max) break;
      const int valid = LargestValid(list_[chosen], list_[j]);
      const int before = options_.order == Order::kMostSaved
                             ? list_[chosen].partition.size + list_[j].partition.size
                             : 0;
      const bool bounded = best_rank != INT32_MAX && best_rank - 1 + before < valid;
      const int most = bounded ? best_rank - 1 + before : valid;
      const int size = Merge(list_[chosen], list_[j], most);
      if (size == 0) {
        if (!bounded) failed_.Set(list_[chosen].id, list_[j].id);
        continue;
      }
      best_rank = size - before;
      best = {.tasks = union_, .size = size, .mode = tester_.mode()};
      with = j;
    }
    if (with != list_.size()) Replace(chosen, with, std::move(best));
  }

  // BF: sorts by utilisation and merges with the first that can be.
  void MergeWithFirst(size_t chosen) {
    std::vector<std::pair<double, size_t>> keys;
    keys.reserve(eligible_.size());
    for (const size_t j : eligible_) {
      const Entry& one = list_[chosen];
      const Entry& other = list_[j];
      const double utilisation = Shares::OfUnion(
          *one.shares, *other.shares, std::max(one.partition.size, other.partition.size));
      keys.emplace_back(options_.order == Order::kFullest ? -utilisation : utilisation, j);
    }
    std::stable_sort(keys.begin(), keys.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, j] : keys) {
      if (tester_.tests() >= options_.tests_max) return;
      const int size = Merge(list_[chosen], list_[j], LargestValid(list_[chosen], list_[j]));
      if (size == 0) {
        failed_.Set(list_[chosen].id, list_[j].id);
        continue;
      }
      Replace(chosen, j, {.tasks = union_, .size = size, .mode = tester_.mode()});
      return;
    }
  }

  Tester& tester_;
  const PairFlags* pairs_;
  const HeuristicOptions options_;
  PairFlags failed_;  // by id
  std::vector<Entry> list_;
  int next_id_ = 0;
  int size_ = 0;
  std::vector<size_t> eligible_;
  TaskList union_;
};

}  // namespace

std::vector<Partition> MergePartitions(Tester& tester, const std::vector<Partition>& singles,
                                       const PairFlags* pairs, const HeuristicOptions& options) {
  return Merger(tester, singles, pairs, options).Run();
}

}  // namespace gpushare::models::partition
