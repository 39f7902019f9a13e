// A query's duration alone from the size of its input (Baymax 4.2: "we select its input data size
// as its representative feature"), learned online, one model for each app.
//
// A line and a table of the nearest sizes learn every sample; the one that was less off lately
// predicts (Baymax 4.4). Beyond the measured sizes the table goes on as a power of the size, at
// most its square. Invariant: a prediction lies between 0 and one hour. Threads: the scheduler's
// only. Nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_QUERY_MODEL_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_QUERY_MODEL_H_

#include <cstdint>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/models/durations/linear_model.h"
#include "src/models/durations/size_table.h"

namespace gpushare::models {

// What a profile keeps of a model.
struct QueryModelState {
  LinearState line;
  std::vector<SizeTable::Point> table;
  int64_t samples = 0;
  double line_error = 0;
  double table_error = 0;
};

class QueryModel {
 public:
  // size: of the input in any unit (tokens, images, bytes), above 0. prior_ns: what is expected
  // without any sample, above 0: an app's hint, the same for every size.
  core::Prediction Predict(double size, double prior_ns) const;

  // One query that ran alone. Sizes, durations and priors that are not above 0 and finite do not
  // count. Returns whether predictions may have changed enough to plan anew.
  bool Observe(double size, double measured_ns, double prior_ns);

  int64_t samples() const { return samples_; }
  QueryModelState state() const;
  void Restore(const QueryModelState& state);

 private:
  bool TablePredicts(double size) const;

  LinearModel line_;
  SizeTable table_;
  int64_t samples_ = 0;
  // Smoothed relative errors, each of a prediction before its sample was learned.
  double line_error_ = 0;
  double table_error_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_QUERY_MODEL_H_
