// The pairs of a cluster: its rows, and where there is none what the library's cost model predicts.
//
// A scenario says what the kinds are: its LC and BE apps have their names. Its profile is that of
// the GPUs, and no GPU is needed. A pair is predicted when a placement asks for it first. Threads:
// one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLAN_PREDICTED_PAIRS_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLAN_PREDICTED_PAIRS_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/models/placement/cluster.h"
#include "src/models/placement/pair_table.h"
#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/kernel_table.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

class PredictedPairs : public models::placement::PairSource {
 public:
  // The cluster outlives it. InputError: the scenario or one of its kernels is not usable.
  PredictedPairs(const models::placement::Cluster& cluster, const std::string& scenario);
  std::optional<models::placement::PairPrediction> Beside(absl::string_view lc_kind, double load,
                                                          absl::string_view be_kind,
                                                          double p99_limit) const override;

  // What was predicted, as rows of a cluster's file: of one pair at one load that of the tightest
  // bound.
  std::vector<models::placement::PairRow> Rows() const;
  // Sentences: the kinds that a placement asked for and the model cannot predict, with the reason.
  std::vector<std::string> NotPredicted() const;

 private:
  using Prediction = std::optional<models::placement::PairPrediction>;
  // LC kind, load, BE kind, limit.
  using Key = std::tuple<std::string, double, std::string, double>;
  // The launches of a kind; empty: it cannot be predicted, and `reasons_` says why.
  using Launches = std::vector<gpushare_pair_launch>;
  Launches LaunchesOf(const std::string& kind, const std::vector<WorkItem>& tasks);
  Prediction Predict(const std::string& lc_kind, double load, const std::string& be_kind,
                     double p99_limit) const;

  const models::placement::PairTable table_;
  // LC and BE kinds that have a row at some load: above it the pair is not allowed.
  std::set<std::pair<std::string, std::string>> with_rows_;
  const std::unique_ptr<Workloads> workloads_;
  RuntimeHandle runtime_;
  std::unique_ptr<KernelTable> kernels_;
  std::map<std::string, Launches> lc_, be_;
  std::map<std::string, std::string> reasons_;  // by kind
  mutable std::map<std::string, std::string> not_predicted_;
  mutable std::map<Key, Prediction> predicted_;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLAN_PREDICTED_PAIRS_H_
