// The global allocation functions of one test, counted (counting_allocator.h).

#include "tests/core/policies/counting_allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

namespace gpushare::core::testing {

int64_t AllocationCount() { return allocations.load(std::memory_order_relaxed); }

}  // namespace gpushare::core::testing

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
