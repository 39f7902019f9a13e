// Counts every allocation of the test that links counting_allocator.cc.

#ifndef GPUSHARE_TESTS_CORE_POLICIES_COUNTING_ALLOCATOR_H_
#define GPUSHARE_TESTS_CORE_POLICIES_COUNTING_ALLOCATOR_H_

#include <cstdint>

namespace gpushare::core::testing {

int64_t AllocationCount();

}  // namespace gpushare::core::testing

#endif  // GPUSHARE_TESTS_CORE_POLICIES_COUNTING_ALLOCATOR_H_
