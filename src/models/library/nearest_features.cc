// The k-d tree is nanoflann's; see nearest_features.h.

#include "src/models/library/nearest_features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nanoflann.hpp>
#include <utility>

#include "src/models/library/library_limits.h"

namespace gpushare::models {
namespace {

constexpr size_t kNobody = std::numeric_limits<size_t>::max();
// A neighbour at no distance would count for everything, and its sample has noise as the others.
constexpr double kLeastDistance = 1e-3;

}  // namespace

struct NearestFeatures::Tree {
  using Metric = nanoflann::L2_Simple_Adaptor<double, Tree>;
  using Index = nanoflann::KDTreeSingleIndexAdaptor<Metric, Tree, kLibraryFeatures, size_t>;

  Tree(std::vector<FeaturePoint> all, std::vector<double> of_points)
      : points(std::move(all)), values(std::move(of_points)), index(kLibraryFeatures, *this) {
    index.buildIndex();
  }

  // What nanoflann asks of a set of points.
  size_t kdtree_get_point_count() const { return points.size(); }
  double kdtree_get_pt(size_t point, size_t feature) const { return points[point][feature]; }
  template <class Box>
  bool kdtree_get_bbox(Box& /*box*/) const {
    return false;
  }

  std::vector<FeaturePoint> points;
  std::vector<double> values;
  Index index;
};

NearestFeatures::NearestFeatures() = default;
NearestFeatures::~NearestFeatures() = default;
NearestFeatures::NearestFeatures(NearestFeatures&&) noexcept = default;
NearestFeatures& NearestFeatures::operator=(NearestFeatures&&) noexcept = default;

void NearestFeatures::Build(std::vector<FeaturePoint> points, std::vector<double> values) {
  tree_ = std::make_unique<Tree>(std::move(points), std::move(values));
}

NearestMean NearestFeatures::At(const FeaturePoint& point) const { return Search(point, kNobody); }

NearestMean NearestFeatures::AtWithout(size_t index) const {
  return Search(tree_->points[index], index);
}

NearestMean NearestFeatures::Search(const FeaturePoint& point, size_t left_out) const {
  std::array<size_t, kLibraryNeighbours + 1> found{};
  std::array<double, kLibraryNeighbours + 1> squares{};
  const size_t wanted = kLibraryNeighbours + (left_out == kNobody ? 0 : 1);
  const size_t count = tree_->index.knnSearch(point.data(), wanted, found.data(), squares.data());
  NearestMean out;
  double weights = 0;
  size_t counted = 0;
  for (size_t i = 0; i < count && counted < kLibraryNeighbours; ++i) {
    if (found[i] == left_out) continue;
    const double distance = std::sqrt(squares[i]);
    if (counted == 0) out.nearest = distance;
    const double weight = 1 / std::max(distance, kLeastDistance);
    out.value += weight * tree_->values[found[i]];
    weights += weight;
    ++counted;
  }
  out.value = weights > 0 ? out.value / weights : 0;
  return out;
}

}  // namespace gpushare::models
