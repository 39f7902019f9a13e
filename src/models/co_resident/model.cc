// Sums over weighted pairs; see model.h.

#include "src/models/co_resident/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpushare::models::co_resident {
namespace {

constexpr size_t kVector = 8;  // floats
// What an estimated saturating occupancy adds to the relative error of a speed: of an H200's
// kernels, each registered by its counters (docs/models.md).
constexpr double kUntimedError = 0.2;

}  // namespace

Model::Model(State state)
    : state_(std::move(state)),
      stride_((state_.kernels.size() + kVector - 1) / kVector * kVector),
      sums_(state_.kernels.size() * kProducts * stride_),
      timed_levels_(state_.kernels.size()),
      neighbour_levels_(state_.kernels.size()) {
  std::vector<WorkerValues> values;
  for (const Workers& workers : state_.workers) {
    const auto kernel = static_cast<size_t>(workers.kernel);
    values.push_back(functions_.Of(state_.kernels[kernel], workers.per_sm));
  }
  double level = 0;
  for (const WeightedPair& pair : state_.pairs) {
    const auto timed_workers = static_cast<size_t>(pair.timed);
    const auto other_workers = static_cast<size_t>(pair.neighbour);
    const auto timed = static_cast<size_t>(state_.workers[timed_workers].kernel);
    const auto neighbour = static_cast<size_t>(state_.workers[other_workers].kernel);
    const WorkerValues& own = values[timed_workers];
    const WorkerValues& others = values[other_workers];
    level += pair.weight;
    for (size_t i = 0; i < kWorkerFunctions; ++i) {
      timed_levels_[timed][i] += static_cast<float>(kOwnLevel * pair.weight * own[i]);
      neighbour_levels_[neighbour][i] += static_cast<float>(kOwnLevel * pair.weight * others[i]);
      for (size_t j = 0; j < kWorkerFunctions; ++j) {
        SumOf(timed, i * kWorkerFunctions + j, neighbour) +=
            static_cast<float>(pair.weight * own[i] * others[j]);
      }
    }
  }
  level_ = static_cast<float>(level);
}

// Pairs of the kernel itself count more than those of similar ones.
void Model::AddOwnSums(size_t kernel, View& view) const {
  view.measured = true;
  view.timed_level = timed_levels_[kernel];
  view.neighbour_level = neighbour_levels_[kernel];
  const size_t row_floats = kProducts * stride_;
  view.as_neighbour.resize(row_floats);
  constexpr auto kOwn = static_cast<float>(kSameKernel);
  for (size_t i = 0; i < row_floats; ++i) view.as_timed[i] += kOwn * sums_[kernel * row_floats + i];
  for (size_t timed = 0; timed < state_.kernels.size(); ++timed) {
    for (size_t product = 0; product < kProducts; ++product) {
      view.as_neighbour[product * stride_ + timed] =
          kOwn * sums_[(timed * kProducts + product) * stride_ + kernel];
    }
  }
}

View Model::ViewOf(const Kernel& kernel) const {
  View view;
  view.timed = kernel.saturating_occupancy != 0;
  Kernel known_kernel = kernel;
  if (!view.timed) known_kernel.saturating_occupancy = 1;
  if (!state_.known() || !MakeFeatures(known_kernel, view.features)) return view;
  if (!view.timed) view.features.values.back() = OccupancyOfLike(view.features, state_.kernels);
  view.known = true;
  view.likeness.resize(stride_);
  view.as_timed.resize(kProducts * stride_);
  for (size_t known = 0; known < state_.kernels.size(); ++known) {
    const auto likeness = static_cast<float>(Likeness(view.features, state_.kernels[known]));
    view.likeness[known] = likeness;
    const float weight = static_cast<float>(kSimilarPair) * likeness;
    const float* const sums = &sums_[known * kProducts * stride_];
    for (size_t i = 0; i < view.as_timed.size(); ++i) view.as_timed[i] += weight * sums[i];
  }
  for (size_t known = 0; known < state_.kernels.size(); ++known) {
    if (!IsSame(view.features, state_.kernels[known])) continue;
    AddOwnSums(known, view);
    break;
  }
  return view;
}

// Rows are added up before the likeness counts, so that the inner loop runs over whole vectors.
float Model::Weigh(const std::vector<float>& rows, const Products& products,
                   const std::vector<float>& likeness) const {
  std::array<float, kKernelsMax> sums = {};
  const float* row = rows.data();
  for (size_t product = 0; product < kProducts; ++product, row += stride_) {
    for (size_t kernel = 0; kernel < stride_; ++kernel) {
      sums[kernel] += products[product] * row[kernel];
    }
  }
  float total = 0;
  for (size_t kernel = 0; kernel < stride_; ++kernel) total += sums[kernel] * likeness[kernel];
  return total;
}

double Model::RatioBeside(const View& timed, const WorkerValues& own, const View& neighbour,
                          const WorkerValues& others) const {
  Products products;
  float root = level_;
  for (size_t i = 0; i < kWorkerFunctions; ++i) {
    const auto own_value = static_cast<float>(own[i]);
    const auto other_value = static_cast<float>(others[i]);
    root += own_value * timed.timed_level[i] + other_value * neighbour.neighbour_level[i];
    for (size_t j = 0; j < kWorkerFunctions; ++j) {
      products[i * kWorkerFunctions + j] = own_value * static_cast<float>(others[j]);
    }
  }
  root += Weigh(timed.as_timed, products, neighbour.likeness);
  if (neighbour.measured) root += Weigh(neighbour.as_neighbour, products, timed.likeness);
  return RatioOf(root);
}

Speeds Model::Predict(const Side& first, const Side& second) const {
  const View& a = *first.view;
  const View& b = *second.view;
  if (!a.known || !b.known) return {};
  const double alone_a = SpeedAlone(a.features, first.workers_per_sm);
  const double alone_b = SpeedAlone(b.features, second.workers_per_sm);
  if (!(alone_a > 0 && alone_b > 0)) return {};
  const WorkerValues own = functions_.Of(a.features, first.workers_per_sm);
  const WorkerValues others = functions_.Of(b.features, second.workers_per_sm);
  const bool both = a.measured && b.measured;
  const double error = both ? state_.error : state_.new_kernel_error;
  return {{alone_a * RatioBeside(a, own, b, others), alone_b * RatioBeside(b, others, a, own)},
          a.timed && b.timed ? error : std::min(1.0, std::hypot(error, kUntimedError)),
          true};
}

}  // namespace gpushare::models::co_resident
