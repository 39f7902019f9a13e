#include "tools/gpushare/profile/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/gzip.h"
#include "tools/gpushare/base/library.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/progress.h"

namespace gpushare::tool {

namespace {

constexpr double kHarm = 0.95;

// Ranks of the values; equal values share the mean of theirs.
std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
    }
    begin = end;
  }
  return ranks;
}

struct Collected {
  std::vector<ModelRows> all;
  Progress progress;
};

void Collect(void* user, const gpushare_judged_prediction* prediction) {
  auto& collected = *static_cast<Collected*>(user);
  std::vector<ModelRows>& all = collected.all;
  collected.progress.Step(std::string(prediction->family) + ", " + prediction->model);
  const auto same = [&](const ModelRows& one) {
    return one.family == prediction->family && one.model == prediction->model;
  };
  auto found = std::find_if(all.begin(), all.end(), same);
  if (found == all.end()) {
    found = all.insert(all.end(), {prediction->family, prediction->model, {}});
  }
  found->rows.push_back({prediction->subject, prediction->predicted, prediction->measured});
}

}  // namespace

double JudgedRow::error() const {
  return measured > 0 ? std::abs(predicted - measured) / measured
                      : std::numeric_limits<double>::infinity();
}

double ModelRows::MeanError() const {
  double sum = 0;
  for (const JudgedRow& row : rows) sum += row.error();
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

double ModelRows::ErrorAt(double share) const {
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const JudgedRow& row : rows) errors.push_back(row.error());
  if (errors.empty()) return 0;
  std::sort(errors.begin(), errors.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(errors.size())));
  return errors[std::clamp<size_t>(rank, 1, errors.size()) - 1];
}

const JudgedRow& ModelRows::Worst() const {
  return *std::max_element(rows.begin(), rows.end(), [](const JudgedRow& a, const JudgedRow& b) {
    return a.error() < b.error();
  });
}

std::vector<ModelRows> EvaluateModels(const std::string& samples, bool quiet) {
  const Uncompressed file(samples, kSamplesBytesMax);
  // How many predictions there are depends on the models, so their number is unknown.
  Collected collected = {{}, Progress(0, quiet)};
  Check(gpushare_evaluate_models(file.path().c_str(), &Collect, &collected));
  std::vector<ModelRows>& all = collected.all;
  if (all.empty()) {
    throw InputError("'" + samples + "' has no row that was held out of a model's training.");
  }
  return std::move(all);
}

double AgreementOnHarm(const ModelRows& rows) {
  const auto agrees = [](const JudgedRow& row) {
    return (row.predicted < kHarm) == (row.measured < kHarm);
  };
  const auto count = std::count_if(rows.rows.begin(), rows.rows.end(), agrees);
  return rows.rows.empty() ? 0 : static_cast<double>(count) / static_cast<double>(rows.rows.size());
}

double MeanDifference(const ModelRows& rows) {
  double sum = 0;
  for (const JudgedRow& row : rows.rows) sum += std::abs(row.predicted - row.measured);
  return rows.rows.empty() ? 0 : sum / static_cast<double>(rows.rows.size());
}

double RankCorrelation(const ModelRows& rows) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const JudgedRow& row : rows.rows) {
    predicted.push_back(row.predicted);
    measured.push_back(row.measured);
  }
  predicted = RanksOf(predicted);
  measured = RanksOf(measured);
  const double middle = (static_cast<double>(rows.rows.size()) - 1) / 2;
  double both = 0;
  double first = 0;
  double second = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    both += (predicted[i] - middle) * (measured[i] - middle);
    first += (predicted[i] - middle) * (predicted[i] - middle);
    second += (measured[i] - middle) * (measured[i] - middle);
  }
  return first > 0 && second > 0 ? both / std::sqrt(first * second) : 0;
}

}  // namespace gpushare::tool
