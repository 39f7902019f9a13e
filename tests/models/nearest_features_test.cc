// The k-d tree against a search of all points.

#include "src/models/library/nearest_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "src/models/library/library_limits.h"

namespace gpushare::models {
namespace {

struct Rows {
  std::vector<FeaturePoint> points;
  std::vector<double> values;
};

Rows RandomRows(size_t count) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    FeaturePoint point;
    for (double& feature : point) feature = normal(random);
    rows.points.push_back(point);
    rows.values.push_back(normal(random));
  }
  return rows;
}

double DistanceOf(const FeaturePoint& a, const FeaturePoint& b) {
  double squares = 0;
  for (size_t f = 0; f < a.size(); ++f) squares += (a[f] - b[f]) * (a[f] - b[f]);
  return std::sqrt(squares);
}

double Brute(const Rows& rows, const FeaturePoint& point, size_t left_out) {
  std::vector<std::pair<double, double>> all;
  for (size_t i = 0; i < rows.points.size(); ++i) {
    if (i != left_out) all.emplace_back(DistanceOf(rows.points[i], point), rows.values[i]);
  }
  std::sort(all.begin(), all.end());
  double sum = 0;
  double weights = 0;
  for (size_t i = 0; i < std::min(all.size(), kLibraryNeighbours); ++i) {
    sum += all[i].second / all[i].first;
    weights += 1 / all[i].first;
  }
  return sum / weights;
}

TEST(NearestFeatures, AgreesWithASearchOfAllPoints) {
  const Rows rows = RandomRows(300);
  const Rows others = RandomRows(310);
  NearestFeatures tree;
  tree.Build(rows.points, rows.values);
  for (size_t i = 300; i < others.points.size(); ++i) {
    EXPECT_NEAR(tree.At(others.points[i]).value, Brute(rows, others.points[i], 1000), 1e-9);
  }
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(tree.AtWithout(i).value, Brute(rows, rows.points[i], i), 1e-9);
  }
}

TEST(NearestFeatures, AtAPointItsOwnValueCountsMost) {
  const Rows rows = RandomRows(100);
  NearestFeatures tree;
  tree.Build(rows.points, rows.values);
  EXPECT_NEAR(tree.At(rows.points[3]).value, rows.values[3], 0.01);
  EXPECT_EQ(tree.At(rows.points[3]).nearest, 0);
  EXPECT_GT(tree.AtWithout(3).nearest, 0);
}

TEST(NearestFeatures, FewerPointsThanNeighboursAreAllOfThem) {
  NearestFeatures tree;
  FeaturePoint far = {};
  far[0] = 1;
  tree.Build({FeaturePoint{}, far}, {1, 3});
  FeaturePoint middle = {};
  middle[0] = 0.5;
  EXPECT_DOUBLE_EQ(tree.At(middle).value, 2);
  EXPECT_DOUBLE_EQ(tree.AtWithout(0).value, 3);
}

}  // namespace
}  // namespace gpushare::models
