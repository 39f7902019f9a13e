// Judges durations of whole queries over the size of their input: held-out sizes train nothing.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/models/durations/query_model.h"
#include "src/models/evaluation/judged.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/query_name.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

struct Query {
  std::vector<const SampleRow*> training;
  std::vector<const SampleRow*> judging;
};

bool Counts(const Samples& samples, const SampleRow& row) {
  return row.what == SampleKind::kSolo && row.sms == samples.head.sm_count && !row.ns.empty() &&
         row.input_size > 0;
}

// One repeat of each size in turn, as an app's queries arrive.
void Train(const Query& query, double hint_ns, QueryModel& model) {
  size_t most = 0;
  for (const SampleRow* row : query.training) most = std::max(most, row->ns.size());
  for (size_t repeat = 0; repeat < most; ++repeat) {
    for (const SampleRow* row : query.training) {
      if (repeat >= row->ns.size()) continue;
      model.Observe(static_cast<double>(row->input_size), row->ns[repeat], hint_ns);
    }
  }
}

}  // namespace

void JudgeQueries(const Samples& samples, std::vector<Judged>& out) {
  std::map<std::string, Query> queries;
  for (const SampleRow& row : samples.rows) {
    if (!Counts(samples, row)) continue;
    Query& query = queries[std::string(ParseQueryName(row.kernel).query)];
    (IsHeldOut(row) ? query.judging : query.training).push_back(&row);
  }
  for (const auto& [name, query] : queries) {
    if (query.training.size() < 2) continue;                    // one size says nothing of another
    const double hint_ns = Median(query.training.front()->ns);  // an app has one for every size
    QueryModel model;
    Train(query, hint_ns, model);
    for (const SampleRow* row : query.judging) {
      const core::Prediction predicted =
          model.Predict(static_cast<double>(row->input_size), hint_ns);
      out.push_back({"whole queries", "line or table over the input size", row->kernel,
                     static_cast<double>(predicted.duration_ns), Median(row->ns)});
    }
  }
}

}  // namespace gpushare::models
