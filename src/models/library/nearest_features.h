// The nearest neighbours of a point of features, and the mean of their values (Baymax 4.3, eq. 2).
//
// Features have to be scaled by the caller: eq. 2 as printed sums squares of unlike units
// (docs/errata.md). Neighbours count by the inverse of their distance. A search takes place in a
// k-d tree and allocates nothing. Threads: any, after Build.

#ifndef GPUSHARE_SRC_MODELS_LIBRARY_NEAREST_FEATURES_H_
#define GPUSHARE_SRC_MODELS_LIBRARY_NEAREST_FEATURES_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "src/models/library/library_features.h"

namespace gpushare::models {

using FeaturePoint = std::array<double, kLibraryFeatures>;

struct NearestMean {
  double value = 0;
  double nearest = 0;  // distance of the nearest neighbour
};

class NearestFeatures {
 public:
  NearestFeatures();
  ~NearestFeatures();
  NearestFeatures(NearestFeatures&&) noexcept;
  NearestFeatures& operator=(NearestFeatures&&) noexcept;

  // One value for each point; all finite. There is at least one point.
  void Build(std::vector<FeaturePoint> points, std::vector<double> values);

  NearestMean At(const FeaturePoint& point) const;
  // At the point with this index, as if it were not there; there are two points or more.
  NearestMean AtWithout(size_t index) const;

 private:
  struct Tree;
  NearestMean Search(const FeaturePoint& point, size_t left_out) const;

  std::unique_ptr<Tree> tree_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LIBRARY_NEAREST_FEATURES_H_
