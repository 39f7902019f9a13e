// PagedArray: zero elements, memory with the first touch only.

#include "src/core/base/containers/paged_array.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace gpushare::core {
namespace {

constexpr size_t kWords = size_t{1} << 20;

// Pages of the array that are in memory.
int64_t PagesOf(const PagedArray<uint64_t>& array) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((array.size() * sizeof(uint64_t) + page - 1) / page);
  EXPECT_EQ(::mincore(array.data(), array.size() * sizeof(uint64_t), resident.data()), 0);
  int64_t pages = 0;
  for (const unsigned char here : resident) pages += here & 1;
  return pages;
}

TEST(PagedArrayTest, TakesMemoryAsItIsTouched) {
  const PagedArray<uint64_t> array(kWords);
  EXPECT_EQ(PagesOf(array), 0);
  array[0] = 1;
  array[kWords - 1] = 2;
  EXPECT_EQ(PagesOf(array), 2);
}

TEST(PagedArrayTest, StartsAtZero) {
  const PagedArray<uint64_t> array(1000);
  for (size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], 0u);
}

TEST(PagedArrayTest, AMovedArrayKeepsItsElements) {
  PagedArray<uint64_t> from(10);
  from[3] = 7;
  PagedArray<uint64_t> to = std::move(from);
  EXPECT_EQ(to[3], 7u);
  PagedArray<uint64_t> assigned;
  assigned = std::move(to);
  EXPECT_EQ(assigned[3], 7u);
  EXPECT_EQ(assigned.size(), 10u);
}

TEST(PagedArrayTest, ASizeThatNoMemoryHoldsThrows) {
  EXPECT_THROW(PagedArray<uint64_t>(~size_t{0} / 4), std::bad_alloc);
  EXPECT_TRUE(PagedArray<uint64_t>(0).empty());
}

}  // namespace
}  // namespace gpushare::core
