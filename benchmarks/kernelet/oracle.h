// OPT's knowledge (Kernelet 5.1): the speeds of every pair of kernels with every slice ratio that
// the library considers, executed beforehand on the same device.
//
// Policy kernelet with an Oracle as its cost model is OPT: the same algorithm, which knows instead
// of predicting. Both kernels run slice after slice beside each other, so that the tails of slices
// and the gaps between them are in what is known. The algorithm counts a gap of kGapNs by itself,
// which is taken out of the speeds.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_ORACLE_H_
#define GPUSHARE_BENCHMARKS_KERNELET_ORACLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "benchmarks/kernelet/rig.h"

namespace gpushare::kernelet {

class Oracle {
 public:
  static constexpr double kGapNs = 10'000;  // kSliceGapNs of src/core/base/tuning.h

  // Kernel and workers an SM, of the first and of the second.
  struct Pair {
    std::array<std::string, 2> kernel;
    std::array<int32_t, 2> workers = {};
    bool operator<(const Pair& other) const {
      return std::tie(kernel, workers) < std::tie(other.kernel, other.workers);
    }
  };

  // Executes all pairs of `kernels`, which are different ones.
  Oracle(const std::vector<std::string>& kernels, const RigOptions& options);

  const std::map<Pair, std::array<double, 2>>& speeds() const { return speeds_; }
  // Of one block task over all SMs.
  const std::map<std::string, double>& alone_ns() const { return alone_ns_; }
  // Policy kernelet with these speeds. The oracle must outlive the runtime.
  Scheduler Opt() const;
  // Questions so far that it could not answer: the library's own model did.
  int64_t unknown() const { return unknown_; }

 private:
  // The speeds of each pair's kernel `side`.
  void MeasureSide(size_t side, const std::set<Pair>& pairs, const RigOptions& options);

  std::map<std::string, double> alone_ns_;
  std::map<Pair, std::array<double, 2>> speeds_;
  mutable std::atomic<int64_t> unknown_{0};
};

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_ORACLE_H_
