// What `gpushare calibrate --queries` and `--blind-shapes` measure: enough to judge by, in a run
// that is short.

#include "tools/gpushare/workloads/sized_queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/gpushare/workloads/drawn_shapes.h"
#include "tools/gpushare/workloads/library_shapes.h"

namespace gpushare::tool {
namespace {

constexpr size_t kKernelsOfARuntime = 1024;
constexpr size_t kNameBytesMax = 64;

TEST(SizedQueriesTest, FourKindsAtEightSizesEachAtLeast) {
  std::map<std::string, std::set<int64_t>> sizes;
  const std::vector<SizedQuery> all = ListSizedQueries();
  EXPECT_LE(all.size(), kKernelsOfARuntime);
  for (const SizedQuery& query : all) {
    const size_t at = query.name.find('@');
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(query.name.substr(at + 1), std::to_string(query.size));
    EXPECT_TRUE(sizes[query.name.substr(0, at)].insert(query.size).second) << query.name;
  }
  EXPECT_GE(sizes.size(), 4U);
  for (const auto& [query, of_query] : sizes) EXPECT_GE(of_query.size(), 8U) << query;
}

// The first operation reads the input, so it is a product; a GELU takes its elements by eights.
TEST(SizedQueriesTest, EveryOperationFitsTheOneBeforeIt) {
  for (const SizedQuery& query : ListSizedQueries()) {
    ASSERT_FALSE(query.steps.empty());
    EXPECT_FALSE(query.steps.front().is_gelu()) << query.name;
    int64_t written = query.steps.front().m * query.steps.front().k;
    for (const QueryStep& step : query.steps) {
      EXPECT_LE(step.is_gelu() ? step.m * step.n : step.m * step.k, written) << query.name;
      EXPECT_EQ(step.m * step.n % 8, 0) << query.name;
      EXPECT_LT(step.m * step.n * 2, 2'000'000'000) << query.name;
      written = step.m * step.n;
    }
  }
}

double FlopsOf(const std::string& name) {
  double flops = 0;
  for (const SizedQuery& query : ListSizedQueries()) {
    if (query.name != name) continue;
    for (const QueryStep& step : query.steps) {
      flops += 2.0 * static_cast<double>(step.m * step.n) * static_cast<double>(step.k);
    }
  }
  return flops;
}

TEST(SizedQueriesTest, AttentionGrowsFasterThanItsTokensAndOthersDoNot) {
  EXPECT_GT(FlopsOf("attention@4096") / FlopsOf("attention@2048"), 2.3);
  EXPECT_EQ(FlopsOf("prefill@4096") / FlopsOf("prefill@2048"), 2);
}

TEST(BlindShapesTest, EnoughOfEachAndNoneThatTrains) {
  std::set<std::string> known;
  for (const LibraryShape& shape : ListLibraryShapes()) known.insert(shape.name);
  const std::vector<LibraryShape> blind = ListBlindShapes();
  std::set<std::string> names;
  size_t products = 0;
  size_t convolutions = 0;
  double all_ns = 0;
  for (const LibraryShape& shape : blind) {
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    EXPECT_LE(shape.name.size(), kNameBytesMax) << shape.name;
    ASSERT_EQ(shape.name.rfind("blind.", 0), 0U) << shape.name;
    EXPECT_EQ(known.count(shape.name.substr(6)), 0U) << shape.name;
    ++(shape.call.operation == GPUSHARE_LIBRARY_MATMUL ? products : convolutions);
    const OperandElements elements = ElementsOf(shape.call);
    EXPECT_GT(std::min({elements.a, elements.b, elements.d}), 0) << shape.name;
    EXPECT_LE(std::max({elements.a, elements.b, elements.d}) * BytesOfElement(shape.call),
              2'000'000'000)
        << shape.name;
    all_ns += LeastNs(shape.call);
  }
  EXPECT_GE(products, 60U);
  EXPECT_GE(convolutions, 30U);
  EXPECT_LT(100 * all_ns, 10e9);
}

// A later run measures the same calls.
TEST(BlindShapesTest, TheDrawIsFixed) {
  const std::vector<LibraryShape> first = ListBlindShapes();
  const std::vector<LibraryShape> second = ListBlindShapes();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].name, second[i].name);
}

// Each list has shapes that no other one has, so that what judges trains nothing.
TEST(DrawnShapesTest, NoShapeIsInTwoLists) {
  std::set<std::string> names;
  const auto take = [&names](const std::vector<LibraryShape>& shapes, size_t prefix) {
    for (const LibraryShape& shape : shapes) {
      EXPECT_TRUE(names.insert(shape.name.substr(prefix)).second) << shape.name;
    }
  };
  take(ListLibraryShapes(), 0);
  take(ListBlindShapes(), 6);
  take(ListDrawnShapes(), 0);
  take(ListPlacedShapes(), 0);
  EXPECT_EQ(ListDrawnShapes().size(), 4 * ListBlindShapes().size());
  EXPECT_EQ(ListPlacedShapes().size(), ListBlindShapes().size() / 2);
}

}  // namespace
}  // namespace gpushare::tool
