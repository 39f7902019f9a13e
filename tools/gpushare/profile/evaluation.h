// `gpushare evaluate-models`: what the library's models predict of rows that did not train them.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PROFILE_EVALUATION_H_
#define GPUSHARE_TOOLS_GPUSHARE_PROFILE_EVALUATION_H_

#include <cstddef>
#include <string>
#include <vector>

namespace gpushare::tool {

struct JudgedRow {
  std::string subject;
  double predicted = 0;
  double measured = 0;

  // Relative to what was measured.
  double error() const;
};

// The predictions of one kind by one model.
struct ModelRows {
  std::string family;
  std::string model;
  std::vector<JudgedRow> rows;

  double MeanError() const;
  // The error that `share` (0 to 1) of the rows do not exceed.
  double ErrorAt(double share) const;
  const JudgedRow& Worst() const;
};

// The models in the order in which the library reports them. Throws InputError for a file that is
// not a samples file or holds nothing to judge.
// Counts predictions on stderr, unless `quiet`.
std::vector<ModelRows> EvaluateModels(const std::string& samples, bool quiet = true);

// For rows that are factors on a speed: the share of rows in which prediction and measurement agree
// whether the neighbour takes more than a twentieth of it.
double AgreementOnHarm(const ModelRows& rows);

// For rows that are shares of a peak: the mean of |predicted - measured|.
double MeanDifference(const ModelRows& rows);

// Spearman's correlation of predicted and measured values: 1 where the model puts the rows in their
// order.
double RankCorrelation(const ModelRows& rows);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PROFILE_EVALUATION_H_
