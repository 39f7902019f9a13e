// The generators behind the irregular kernels: what a wrong one would break is the shape that the
// kernels rely on, on the GPU and in the references alike, so that no comparison would see it.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "benchmarks/kernels/irregular/bfs.h"
#include "benchmarks/kernels/irregular/nn.h"
#include "benchmarks/kernels/irregular/pointer_chase.h"
#include "benchmarks/kernels/irregular/spmv.h"
#include "benchmarks/kernels/memory/lbm.h"

namespace gpushare::kernels {
namespace {

template <class Shape>
void ExpectRowsFollowEachOther(uint32_t seed) {
  std::set<uint32_t> lengths;
  uint32_t begin = 0;
  for (uint32_t row = 0; row < 8 * Shape::kGroup; ++row) {
    if (row % Shape::kGroup == 0) {
      ASSERT_EQ(begin, row / Shape::kGroup * Shape::kGroupElements) << "row " << row;
      lengths.clear();
    }
    ASSERT_EQ(Shape::Begin(seed, row), begin) << "row " << row;
    const uint32_t length = Shape::Length(seed, row);
    ASSERT_GE(length, Shape::kShortest);
    ASSERT_LE(length, Shape::kLongest);
    EXPECT_TRUE(lengths.insert(length).second) << "two rows of a group are " << length << " long";
    begin += length;
  }
  EXPECT_EQ(Shape::Begin(seed, 8 * Shape::kGroup), begin) << "the end of the last row";
}

TEST(CsrShapeTest, RowsFollowEachOtherAndGroupsHaveOneSum) {
  for (const uint32_t seed : {0U, 1U, 77U}) {
    ExpectRowsFollowEachOther<SpmvShape>(seed);
    ExpectRowsFollowEachOther<BfsShape>(seed);
  }
}

TEST(CsrShapeTest, GroupsDifferInTheirOrder) {
  std::set<uint32_t> first_lengths;
  for (uint32_t group = 0; group < 64; ++group) {
    first_lengths.insert(SpmvShape::Length(1, group * SpmvShape::kGroup));
  }
  EXPECT_GT(first_lengths.size(), 16U);
}

TEST(SpmvTest, ColumnsAreAllOverTheVector) {
  uint64_t sum = 0;
  constexpr uint32_t kElements = 100000;
  for (uint32_t e = 0; e < kElements; ++e) {
    const uint32_t column = SpmvColumn(3, e);
    ASSERT_LT(column, kSpmvVectorLength);
    sum += column;
  }
  EXPECT_NEAR(static_cast<double>(sum) / kElements, kSpmvVectorLength / 2.0,
              kSpmvVectorLength * 0.005);
}

// The kernel takes the first neighbour in the frontier for the smallest one.
TEST(BfsTest, ListsAscendWithinTheGraph) {
  for (const uint32_t vertices : {256U, 1536U, 1000192U}) {
    for (uint32_t degree = 1; degree <= BfsShape::kLongest; ++degree) {
      uint32_t before = 0;
      for (uint32_t k = 0; k < degree; ++k) {
        const uint32_t neighbour = BfsNeighbour(5, vertices, degree, k, degree * 1000 + k);
        ASSERT_LT(neighbour, vertices);
        if (k > 0) {
          ASSERT_GT(neighbour, before) << "degree " << degree << ", place " << k;
        }
        before = neighbour;
      }
    }
  }
}

// The bound on bfs' bytes takes these shares.
TEST(BfsTest, AnEighthIsTheFrontierAndHalfIsUnvisited) {
  uint32_t frontier = 0;
  uint32_t unvisited = 0;
  constexpr uint32_t kVertices = 80000;
  for (uint32_t vertex = 0; vertex < kVertices; ++vertex) {
    const uint32_t level = BfsLevelOf(1, vertex);
    if (level == kBfsLevel) ++frontier;
    if (level == kBfsUnvisited) ++unvisited;
    ASSERT_TRUE(level <= kBfsLevel || level == kBfsUnvisited) << level;
  }
  EXPECT_NEAR(frontier, kVertices / 8.0, kVertices * 0.01);
  EXPECT_NEAR(unvisited, kVertices / 2.0, kVertices * 0.01);
}

TEST(PointerChaseTest, ScatterIsABijectionAndGatherItsInverse) {
  std::vector<bool> seen(kChaseNodes, false);
  for (uint32_t number = 0; number < kChaseNodes; ++number) {
    const uint32_t node = ChaseScatter(number);
    ASSERT_LT(node, kChaseNodes);
    ASSERT_FALSE(seen[node]) << "two numbers are node " << node;
    seen[node] = true;
    ASSERT_EQ(ChaseGather(node), number);
  }
}

// A shorter cycle could fit L2.
TEST(PointerChaseTest, LinksAreOneCycleThroughAllNodes) {
  for (const uint32_t seed : {1U, 2U}) {
    const ChaseCycle cycle = ChaseCycleOf(seed);
    uint32_t node = 0;
    uint32_t links = 0;
    do {
      node = ChaseAfter(cycle, node, 1);
      ++links;
    } while (node != 0 && links <= kChaseNodes);
    EXPECT_EQ(links, kChaseNodes) << "seed " << seed;
  }
}

TEST(PointerChaseTest, ManyLinksAtOnceAreTheSameAsOneByOne) {
  const ChaseCycle cycle = ChaseCycleOf(9);
  uint32_t node = ChaseStart(9, 4);
  const uint32_t start = node;
  for (uint32_t links = 0; links < 1000; ++links) {
    ASSERT_EQ(ChaseAfter(cycle, start, links), node) << links << " links";
    node = ChaseAfter(cycle, node, 1);
  }
}

// Links that led to a node nearby would find it in the same DRAM page, or its line on the way.
TEST(PointerChaseTest, LinksLeadFarAway) {
  const ChaseCycle cycle = ChaseCycleOf(1);
  constexpr uint32_t kNodes = 10000;
  uint32_t near = 0;
  for (uint32_t walk = 0; walk < kNodes; ++walk) {
    const auto node = static_cast<int64_t>(ChaseStart(1, walk));
    const int64_t next = ChaseAfter(cycle, static_cast<uint32_t>(node), 1);
    if (std::abs(next - node) < kChaseNodes / 100) ++near;
  }
  EXPECT_LT(near, kNodes / 25);  // a fiftieth when they are random
}

// The minimum over bits is the minimum over distances.
TEST(NnTest, BitsOfDistancesHaveTheirOrder) {
  const NnQuery query = {0.25F, -1.0F};
  float before = NnDistance(query, 0.25F, -1.0F);
  EXPECT_EQ(before, 0.0F);
  for (int step = 1; step < 100; ++step) {
    const float distance = NnDistance(query, 0.25F + 0.1F * static_cast<float>(step), -1.0F);
    ASSERT_GT(distance, before);
    uint32_t bits = 0;
    uint32_t bits_before = 0;
    std::memcpy(&bits, &distance, sizeof(bits));
    std::memcpy(&bits_before, &before, sizeof(bits_before));
    ASSERT_GT(bits, bits_before);
    before = distance;
  }
}

// What the D3Q19 equilibrium needs: no preferred direction, moments of the Maxwell distribution.
TEST(LbmTest, DirectionsAndWeightsAreIsotropic) {
  double weights = 0;
  double first[3] = {};
  double second[3][3] = {};
  std::set<std::vector<int>> directions;
  for (uint32_t d = 0; d < kLbmDirections; ++d) {
    const std::vector<int> e = {LbmX(d), LbmY(d), LbmZ(d)};
    EXPECT_TRUE(directions.insert(e).second) << "direction " << d << " is there twice";
    const double weight = LbmWeight(d);
    weights += weight;
    for (size_t i = 0; i < 3; ++i) {
      first[i] += weight * e[i];
      for (size_t k = 0; k < 3; ++k) second[i][k] += weight * e[i] * e[k];
    }
  }
  EXPECT_NEAR(weights, 1, 1e-6);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(first[i], 0, 1e-7);
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(second[i][k], i == k ? 1.0 / 3 : 0, 1e-6);
  }
}

}  // namespace
}  // namespace gpushare::kernels
