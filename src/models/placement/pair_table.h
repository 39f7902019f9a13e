// What a pair does: the seam between placement and predictions, and its table of rows.
//
//   PairTable table(rows);
//   table.Beside("bert", 0.4, "lora", 1.05)    // p99 over alone and BE rate, with error bars
//
// Between two loads the table interpolates, and the larger error bar counts. Below the least load
// its row counts: a smaller load leaves BE more, and its p99 moves less by the same delay. Above
// the largest load nothing is predicted, and the pair is not allowed.
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_PAIR_TABLE_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_PAIR_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/models/placement/cluster.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

struct PairPrediction {
  double p99_ratio = 1;
  double p99_error = 0;
  double be_rate = 1;
  double be_error = 0;
  bool operator==(const PairPrediction&) const = default;
};

class PairSource {
 public:
  virtual ~PairSource() = default;
  // `p99_limit` is the largest ratio that the LC app allows: a source that knows several
  // arrangements of the pair answers with the one of the largest BE rate within it. Empty: unknown.
  virtual std::optional<PairPrediction> Beside(absl::string_view lc_kind, double load,
                                               absl::string_view be_kind,
                                               double p99_limit) const = 0;
};

class PairTable : public PairSource {
 public:
  // Of two rows at one load the later counts.
  explicit PairTable(const std::vector<PairRow>& rows);
  std::optional<PairPrediction> Beside(absl::string_view lc_kind, double load,
                                       absl::string_view be_kind, double p99_limit) const override;

 private:
  struct Point {
    double load = 0;
    PairPrediction prediction;
  };
  // By the LC kind, then by the BE kind; ascending in load.
  TextTable<TextTable<std::vector<Point>>> points_;
};

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_PAIR_TABLE_H_
