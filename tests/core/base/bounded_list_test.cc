// BoundedList: each operation, below the bound and at it.

#include "src/core/base/containers/bounded_list.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace gpushare::core {
namespace {

using List = BoundedList<int, 4>;

// An element whose default is not all zero bits.
struct Row {
  int id = -1;
  int64_t amount = 7;
};

std::vector<int> Elements(const List& list) { return {list.begin(), list.end()}; }

List Of(std::initializer_list<int> values) {
  List list;
  for (int value : values) list.Add(value);
  return list;
}

TEST(BoundedList, StartsEmptyAndFillsToItsCapacity) {
  List list;
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(list.full());
  EXPECT_EQ(list.size(), 0);
  for (int i = 0; i < List::kCapacity; ++i) {
    EXPECT_FALSE(list.full());
    const int& added = list.Add(10 + i);
    EXPECT_EQ(&added, &list[i]) << "Add returns the new element";
    EXPECT_EQ(list.size(), i + 1);
    EXPECT_EQ(list.back(), 10 + i);
  }
  EXPECT_TRUE(list.full());
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(Elements(list), (std::vector<int>{10, 11, 12, 13}));
}

TEST(BoundedList, TryAddToAFullListChangesNothing) {
  List list = Of({1, 2, 3});
  EXPECT_TRUE(list.TryAdd(4));
  EXPECT_FALSE(list.TryAdd(5));
  EXPECT_EQ(Elements(list), (std::vector<int>{1, 2, 3, 4}));
}

TEST(BoundedList, AddWithoutAValueUsesTheElementsDefaults) {
  BoundedList<Row, 2> list;
  list.Add({.id = 3, .amount = 4});
  list.Clear();
  const Row& row = list.Add();
  EXPECT_EQ(row.id, -1) << "not what stood in the slot before";
  EXPECT_EQ(row.amount, 7);
}

TEST(BoundedList, RemoveAtPutsTheLastElementInTheGap) {
  List list = Of({1, 2, 3, 4});
  list.RemoveAt(1);
  EXPECT_EQ(Elements(list), (std::vector<int>{1, 4, 3}));
  list.RemoveAt(2);
  EXPECT_EQ(Elements(list), (std::vector<int>{1, 4})) << "the last one itself";
  list.RemoveAt(0);
  list.RemoveAt(0);
  EXPECT_TRUE(list.empty());
}

TEST(BoundedList, PopBackReturnsTheLastElement) {
  List list = Of({1, 2, 3});
  EXPECT_EQ(list.PopBack(), 3);
  EXPECT_EQ(list.PopBack(), 2);
  EXPECT_EQ(Elements(list), std::vector<int>{1});
  list.Add(9);
  EXPECT_EQ(list.PopBack(), 9);
}

TEST(BoundedList, ACopyHasItsOwnElements) {
  List list = Of({1, 2});
  List copy = list;
  copy[0] = 5;
  copy.Add(6);
  EXPECT_EQ(Elements(list), (std::vector<int>{1, 2}));
  EXPECT_EQ(Elements(copy), (std::vector<int>{5, 2, 6}));
  list = copy;
  EXPECT_EQ(Elements(list), (std::vector<int>{5, 2, 6}));
  const List shorter = Of({8});
  list = shorter;
  EXPECT_EQ(Elements(list), std::vector<int>{8});
}

TEST(BoundedList, AssignmentToItselfKeepsTheElements) {
  List list = Of({1, 2, 3});
  const List& same = list;
  list = same;
  EXPECT_EQ(Elements(list), (std::vector<int>{1, 2, 3}));
}

// Counts how often an element is copied.
struct Counted {
  Counted() = default;
  Counted(const Counted&) { ++copies; }
  Counted& operator=(const Counted&) {
    ++copies;
    return *this;
  }
  static inline int copies = 0;
};

TEST(BoundedList, ACopyCostsItsElementsAndNotItsCapacity) {
  BoundedList<Counted, 1000> list;
  list.Add();
  list.Add();
  Counted::copies = 0;
  const BoundedList<Counted, 1000> copy = list;
  EXPECT_EQ(copy.size(), 2);
  EXPECT_EQ(Counted::copies, 2);
}

TEST(BoundedList, AssignTakesASpanAsFarAsItFits) {
  List list = Of({9, 9, 9});
  list.Assign(std::array<int, 2>{1, 2});
  EXPECT_EQ(Elements(list), (std::vector<int>{1, 2}));
  list.Assign(std::array<int, 6>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Elements(list), (std::vector<int>{1, 2, 3, 4}));
  list.Assign({});
  EXPECT_TRUE(list.empty());
}

TEST(BoundedList, ClearForgetsAllElements) {
  List list = Of({1, 2, 3, 4});
  list.Clear();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.begin(), list.end());
  list.Add(5);
  EXPECT_EQ(Elements(list), std::vector<int>{5});
}

TEST(BoundedList, SpansAndIterationCoverTheElementsOnly) {
  List list = Of({1, 2, 3});
  for (int& value : list) value *= 10;
  for (int& value : list.span()) ++value;
  const List& view = list;
  EXPECT_EQ(view.span().size(), 3u);
  EXPECT_EQ(view.span().data(), view.begin());
  EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0), 11 + 21 + 31);
  EXPECT_EQ(view[1], 21);
  EXPECT_EQ(view.back(), 31);
}

}  // namespace
}  // namespace gpushare::core
