// OPT's knowledge (Kernelet 5.1): the speeds of every pair of kernels with every slice ratio,
// executed beforehand on the same device, none pruned.
//
// Both kernels run slice after slice beside each other, two deep on their lanes, so that ramps,
// tails and gaps are in what is known.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_ORACLE_H_
#define GPUSHARE_BENCHMARKS_KERNELET_ORACLE_H_

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/kernelet/pair_schedule.h"
#include "benchmarks/kernelet/ratios.h"
#include "benchmarks/kernelet/rig.h"

namespace gpushare::kernelet {

// How many blocks of each kernel an SM holds, as the library says.
std::vector<SizedKernel> SizesOf(const std::vector<std::string>& kernels,
                                 const RigOptions& options);
// All ratios of all pairs, with what is known of none: for MC.
std::vector<RatedRatio> Unrated(const std::vector<SizedKernel>& kernels);

class Oracle {
 public:
  // Executes all pairs of `kernels`, which are different ones.
  Oracle(const std::vector<std::string>& kernels, const RigOptions& options);

  // Relative to alone; of slices.
  const std::map<PairRatio, std::array<double, 2>>& speeds() const { return speeds_; }
  // Of one block task over all SMs.
  const std::map<std::string, double>& alone_ns() const { return alone_ns_; }
  // By the speeds: OPT's.
  std::vector<RatedRatio> Rated() const;

 private:
  // The speeds of each pair's kernel `side`.
  void MeasureSide(size_t side, const std::vector<PairRatio>& ratios, const RigOptions& options);

  std::map<std::string, double> alone_ns_;
  std::map<PairRatio, std::array<double, 2>> speeds_;
};

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_ORACLE_H_
