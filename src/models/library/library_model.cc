// The models of the classes of library calls; see library_model.h.

#include "src/models/library/library_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "src/core/base/limits.h"
#include "src/core/base/quantile.h"
#include "src/models/library/feature_line.h"
#include "src/models/library/library_limits.h"
#include "src/models/library/nearest_features.h"

namespace gpushare::models {
namespace {

// Calls take between the least time and 64 times that; log2, because a ratio of 2 is as far from 1
// as a half.
constexpr double kLogRatioMin = -3;
constexpr double kLogRatioMax = 6;
// The error bar of a call without a sample like it, as a share of its duration.
constexpr double kUnknownError = 1;
// A deviation below it is a feature that does not vary in the class.
constexpr double kDeviationMin = 1e-6;
// A call is unlike every sample beyond so many times the distance that most samples have to theirs.
constexpr double kReach = 2;
constexpr double kMostSamples = 0.95;

// What a feature counts for among neighbours, over its deviation. A layout or bf16 changes the time
// of a product less than its size does; weights of 1 for them cost 0.3 % on half precision.
constexpr FeaturePoint NeighbourWeights() {
  FeaturePoint weights;
  weights.fill(1);
  weights[kWaveLarge] = weights[kWaveMedium] = 0.5;
  weights[kTransposeA] = weights[kTransposeB] = 0.3;
  weights[kBfloat16] = 0.2;
  return weights;
}
constexpr FeaturePoint kWeights = NeighbourWeights();

// Relative error of a duration that is off by a factor of 2^error.
double RelativeOf(double log_error) { return std::abs(std::exp2(log_error) - 1); }

double MeanError(const std::vector<double>& log_errors) {
  if (log_errors.empty()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const double error : log_errors) sum += RelativeOf(error);
  return sum / static_cast<double>(log_errors.size());
}

// One standard deviation. Every call counts alike, short ones too.
double Deviation(const std::vector<double>& log_errors) {
  double squares = 0;
  for (const double error : log_errors) squares += RelativeOf(error) * RelativeOf(error);
  return std::sqrt(squares / static_cast<double>(log_errors.size()));
}

core::Prediction PredictionOf(double ns, double relative_error, bool trained) {
  const double kept = std::clamp(ns, 1.0, static_cast<double>(core::kMaxDurationNs));
  const double error = std::min(kept * relative_error, static_cast<double>(core::kMaxDurationNs));
  return {std::llround(kept), std::llround(error), trained};
}

}  // namespace

// What predicts the calls of one class.
struct LibraryModel::ClassModel {
  // `out` has rows with log ratios and the class; fills everything else, here and there.
  void Fit(std::vector<FeaturePoint> points, LibraryClass& out);
  // As Fit left it. `points` are those of the rows that `kept` has.
  void Restore(const LibraryClass& kept, std::vector<FeaturePoint> points,
               std::vector<double> values);
  FeaturePoint Scaled(const FeaturePoint& point) const;
  // Whether some sample is near, and the features that were alike in all samples are as they were.
  bool HasSampleLike(const FeaturePoint& point) const;
  double LogRatioAt(const FeaturePoint& scaled) const;

  LibraryMethod method = LibraryMethod::kNone;
  double error = kUnknownError;
  double reach = 0;  // of the nearest sample, in scaled features
  double least_ratio = 0;
  double most_ratio = 0;
  FeaturePoint mean = {};
  FeaturePoint inverse_deviation = {};
  FeatureLine line;
  NearestFeatures nearest;  // log ratios, or what the line leaves of them

 private:
  void SetScale(const std::vector<FeaturePoint>& points);
  void Take(const LibraryClass& kept);
};

void LibraryModel::ClassModel::SetScale(const std::vector<FeaturePoint>& points) {
  const auto count = static_cast<double>(points.size());
  for (size_t f = 0; f < kLibraryFeatures; ++f) {
    double sum = 0;
    double squares = 0;
    for (const FeaturePoint& point : points) sum += point[f];
    mean[f] = sum / count;
    for (const FeaturePoint& point : points) squares += std::pow(point[f] - mean[f], 2);
    const double deviation = std::sqrt(squares / count);
    inverse_deviation[f] = deviation > kDeviationMin ? kWeights[f] / deviation : 0;
  }
}

FeaturePoint LibraryModel::ClassModel::Scaled(const FeaturePoint& point) const {
  FeaturePoint scaled;
  for (size_t f = 0; f < kLibraryFeatures; ++f) {
    scaled[f] = (point[f] - mean[f]) * inverse_deviation[f];
  }
  return scaled;
}

bool LibraryModel::ClassModel::HasSampleLike(const FeaturePoint& point) const {
  for (size_t f = 0; f < kLibraryFeatures; ++f) {
    if (inverse_deviation[f] == 0 && std::abs(point[f] - mean[f]) > kDeviationMin) return false;
  }
  return nearest.At(Scaled(point)).nearest <= reach;
}

namespace {

// Errors (predicted - measured, log2) of each sample when a fit to the others predicts it.
struct LeftOut {
  std::vector<double> of_line;  // empty without a line, as of_both
  std::vector<double> of_neighbours;
  std::vector<double> of_both;
};

void Choose(const LeftOut& left_out, LibraryClass& out) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [candidate, errors] :
       {std::pair{LibraryMethod::kLine, &left_out.of_line},
        std::pair{LibraryMethod::kNeighbours, &left_out.of_neighbours},
        std::pair{LibraryMethod::kLineAndNeighbours, &left_out.of_both}}) {
    const double mean_error = MeanError(*errors);
    if (!(mean_error < least)) continue;
    least = mean_error;
    out.method = candidate;
    out.error = Deviation(*errors);
  }
}

}  // namespace

void LibraryModel::ClassModel::Take(const LibraryClass& kept) {
  method = kept.method;
  error = kept.error;
  reach = kept.reach;
  least_ratio = kept.least_ratio;
  most_ratio = kept.most_ratio;
}

void LibraryModel::ClassModel::Fit(std::vector<FeaturePoint> points, LibraryClass& out) {
  std::vector<double> values;
  for (const LibraryRow& row : out.rows) values.push_back(row.value);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  out.least_ratio = *low;
  out.most_ratio = *high;
  SetScale(points);
  for (FeaturePoint& point : points) point = Scaled(point);
  LeftOut left_out;
  const std::vector<double> rest = line.Fit(points, values);  // measured - predicted
  for (const double one : rest) left_out.of_line.push_back(-one);
  nearest.Build(points, values);
  std::vector<double> distances;
  for (size_t i = 0; i < points.size(); ++i) {
    const NearestMean mean_of = nearest.AtWithout(i);
    left_out.of_neighbours.push_back(mean_of.value - values[i]);
    distances.push_back(mean_of.nearest);
  }
  const auto most = static_cast<size_t>(kMostSamples * static_cast<double>(distances.size() - 1));
  out.reach = kReach * core::SortedAt(std::move(distances), most);
  if (!rest.empty()) {
    nearest.Build(points, rest);
    for (size_t i = 0; i < points.size(); ++i) {
      left_out.of_both.push_back(nearest.AtWithout(i).value - rest[i]);
    }
  }
  Choose(left_out, out);
  Take(out);
  if (method == LibraryMethod::kLineAndNeighbours) {
    for (size_t i = 0; i < rest.size(); ++i) out.rows[i].value = rest[i];
  } else {
    nearest.Build(std::move(points), std::move(values));
  }
  if (method != LibraryMethod::kNeighbours) {
    out.weights.assign(line.weights().begin(), line.weights().end());
  }
}

void LibraryModel::ClassModel::Restore(const LibraryClass& kept, std::vector<FeaturePoint> points,
                                       std::vector<double> values) {
  Take(kept);
  if (!kept.weights.empty()) line.Restore(kept.weights);
  SetScale(points);
  for (FeaturePoint& point : points) point = Scaled(point);
  nearest.Build(std::move(points), std::move(values));
}

double LibraryModel::ClassModel::LogRatioAt(const FeaturePoint& scaled) const {
  double value = 0;
  if (method != LibraryMethod::kNeighbours) value += line.At(scaled);
  if (method != LibraryMethod::kLine) value += nearest.At(scaled).value;
  return std::clamp(value, least_ratio, most_ratio);
}

LibraryModel::LibraryModel() = default;
LibraryModel::~LibraryModel() = default;
LibraryModel::LibraryModel(LibraryModel&&) noexcept = default;
LibraryModel& LibraryModel::operator=(LibraryModel&&) noexcept = default;

namespace {

// Evenly over the samples, in their order.
template <class T>
void Thin(std::vector<T>& all) {
  if (all.size() <= kLibraryRowsMax) return;
  for (size_t i = 0; i < kLibraryRowsMax; ++i) all[i] = all[i * all.size() / kLibraryRowsMax];
  all.resize(kLibraryRowsMax);
}

}  // namespace

void LibraryModel::Fit(const LibraryDevice& device, absl::Span<const LibrarySample> samples) {
  device_ = device;
  state_.classes.clear();
  std::array<std::vector<FeaturePoint>, kLibraryClasses> points;
  std::array<LibraryClass, kLibraryClasses> fitted;
  for (const LibrarySample& sample : samples.first(std::min(samples.size(), kLibrarySamplesMax))) {
    const LibraryFeatures features = FeaturesOf(device, sample.call);
    const double ratio = sample.duration_ns / features.least_ns;
    if (!features.known || !(ratio > 0) || !std::isfinite(ratio)) continue;
    points[features.call_class].push_back(features.values);
    fitted[features.call_class].rows.push_back(
        {sample.call, std::clamp(std::log2(ratio), kLogRatioMin, kLogRatioMax)});
  }
  for (size_t c = 0; c < kLibraryClasses; ++c) {
    classes_[c].reset();
    if (points[c].size() < kLibrarySamplesMin) continue;
    Thin(points[c]);
    Thin(fitted[c].rows);
    fitted[c].call_class = c;
    classes_[c] = std::make_unique<ClassModel>();
    classes_[c]->Fit(std::move(points[c]), fitted[c]);
    state_.classes.push_back(std::move(fitted[c]));
  }
}

void LibraryModel::Restore(const LibraryDevice& device, LibraryState state) {
  device_ = device;
  state_ = std::move(state);
  for (auto& one : classes_) one.reset();
}

void LibraryModel::Build(const LibraryClass& of_class) {
  std::vector<FeaturePoint> points;
  std::vector<double> values;
  for (const LibraryRow& row : of_class.rows) {
    const LibraryFeatures features = FeaturesOf(device_, row.call);
    if (!features.known || features.call_class != of_class.call_class) continue;
    points.push_back(features.values);
    values.push_back(row.value);
  }
  if (points.size() < kLibrarySamplesMin) return;
  auto built = std::make_unique<ClassModel>();
  built->Restore(of_class, std::move(points), std::move(values));
  classes_[of_class.call_class] = std::move(built);
}

void LibraryModel::Prepare(const core::LibraryCall& call) {
  const LibraryFeatures features = FeaturesOf(device_, call);
  if (!features.known || classes_[features.call_class] != nullptr) return;
  for (const LibraryClass& one : state_.classes) {
    if (one.call_class == features.call_class) return Build(one);
  }
}

core::Prediction LibraryModel::Predict(const core::LibraryCall& call) const {
  const LibraryFeatures features = FeaturesOf(device_, call);
  if (!features.known) return {};
  const ClassModel* const model = classes_[features.call_class].get();
  if (model == nullptr) return PredictionOf(features.least_ns, kUnknownError, false);
  const double log_ratio = model->LogRatioAt(model->Scaled(features.values));
  const double ns = features.least_ns * std::exp2(log_ratio);
  const bool like_samples = model->HasSampleLike(features.values);
  return PredictionOf(ns, like_samples ? model->error : kUnknownError, like_samples);
}

LibraryMethod LibraryModel::MethodOf(const core::LibraryCall& call) const {
  const LibraryFeatures features = FeaturesOf(device_, call);
  if (!features.known || classes_[features.call_class] == nullptr) return LibraryMethod::kNone;
  return classes_[features.call_class]->method;
}

}  // namespace gpushare::models
