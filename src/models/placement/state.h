// A placement in the making: what stands on each GPU, what that does, and whether one more fits.
//
//   State state(problem);
//   state.PutLc(gpu, lc);
//   if (state.Fits(gpu, be)) state.Add(gpu, be);
//   state.Of(gpu).value
//
// The rule for several BE instances on one GPU:
//   in turns   one at a time, pair by pair: BE rate is the mean, the p99 that of the worst
//   at once    BE rate is the mean by weight; what each adds to the p99 alone adds up
// Both take each prediction with its error bar. So one more instance never makes room for another.
//
// Threads: one for each State; a Problem is immutable.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_STATE_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_STATE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/models/placement/cluster.h"
#include "src/models/placement/pair_table.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

inline constexpr int32_t kNone = -1;
// Error bars, risk and worth of a free GPU; larger is a unit error.
inline constexpr double kValuationMax = 100;

struct Valuation {
  double error_bars = 1;    // an LC app's p99 counts with so many error bars
  double risk = 1;          // a BE rate counts less so many error bars
  double free_gpu = 0.05;   // what a GPU with nothing on it is worth, in BE rate
  bool keep_bounds = true;  // false: a pair may break the LC app's bound (the random of 7.6)
};

// A cluster by indices. The cluster and the source outlive it.
class Problem {
 public:
  Problem(const Cluster& cluster, const PairSource& pairs, const Valuation& valuation);

  enum class Verdict : uint8_t { kAllowed, kUnknown, kBreaksBound };
  struct Pairing {
    Verdict verdict = Verdict::kAllowed;
    double p99 = 1;  // over alone, with its error bars
    double be_rate = 1;
    double be_error = 0;
    double value = 1;  // BE rate less the risk
  };
  // Of BE app `be` beside LC app `lc`, or on a GPU of its own (kNone).
  Pairing At(int32_t lc, int32_t be) const;
  // The largest p99 over alone that the LC app allows. Below 1: it misses its target alone.
  double P99Limit(int32_t lc) const;

  int32_t gpus() const { return static_cast<int32_t>(group_.size()); }
  int64_t MemoryOf(int32_t gpu) const { return Group(gpu).memory_bytes; }
  std::string NameOf(int32_t gpu) const;
  // kNone: there is no such GPU.
  int32_t GpuOf(const std::string& name) const;

  const Cluster& cluster() const { return cluster_; }
  const Valuation& valuation() const { return valuation_; }

 private:
  const GpuGroup& Group(int32_t gpu) const {
    return cluster_.gpus[static_cast<size_t>(group_[static_cast<size_t>(gpu)])];
  }

  const Cluster& cluster_;
  const PairSource& pairs_;
  const Valuation valuation_;
  std::vector<int32_t> group_;  // by GPU
  std::vector<int32_t> first_;  // by group: its first GPU
  Table<absl::string_view, size_t> group_of_name_;
};

// What stands on a GPU: indices of cluster.lc and, one for each instance, of cluster.be.
struct GpuLoad {
  int32_t lc = kNone;
  std::vector<int32_t> be;
};

struct GpuEffect {
  double p99 = 1;  // of the LC app over alone, with error bars
  double be_rate = 0;
  double be_error = 0;
  double value = 0;
};

class State {
 public:
  explicit State(const Problem& problem);

  void PutLc(int32_t gpu, int32_t lc);
  // Why the instance may not come, or that it may.
  enum class Answer : uint8_t { kFits, kFull, kMemory, kUnknown, kBreaksBound };
  Answer Ask(int32_t gpu, int32_t be) const;
  bool Fits(int32_t gpu, int32_t be) const { return Ask(gpu, be) == Answer::kFits; }
  void Add(int32_t gpu, int32_t be);
  void Remove(int32_t gpu, int32_t be);
  GpuEffect Of(int32_t gpu) const;

  int64_t MemoryLeft(int32_t gpu) const { return sums_[static_cast<size_t>(gpu)].memory_left; }
  const GpuLoad& Load(int32_t gpu) const { return loads_[static_cast<size_t>(gpu)]; }
  int64_t be_placed() const { return be_placed_; }
  // Of all GPUs.
  double Value() const;
  const std::vector<GpuLoad>& loads() const { return loads_; }
  std::vector<GpuLoad> Take() { return std::move(loads_); }

 private:
  struct Sums {
    int64_t memory_left = 0;
    double p99 = 1;
    double weight = 0;
    double rate = 0;  // these three by weight
    double error = 0;
    double value = 0;
  };

  double WeightOf(int32_t be) const;
  double P99With(const Sums& sums, double p99) const;
  void Count(Sums& sums, const Problem::Pairing& pairing, double weight) const;

  const Problem* problem_;
  std::vector<GpuLoad> loads_;
  std::vector<Sums> sums_;
  int64_t be_placed_ = 0;
};

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_STATE_H_
