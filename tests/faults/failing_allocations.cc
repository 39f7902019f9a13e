// Allocations that fail on purpose; see failing_allocations.h.

#include "tests/faults/failing_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "absl/base/config.h"

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER) || \
    defined(ABSL_HAVE_MEMORY_SANITIZER)
#define GPUSHARE_OWN_MALLOC 0
#else
#define GPUSHARE_OWN_MALLOC 1
#endif

namespace gpushare_test {
namespace {

// Process-wide, as the functions that they change. No constructor runs: malloc is called before.
constinit std::atomic<bool> armed{false};
constinit std::atomic<bool> every_thread{false};
constinit std::atomic<bool> from_there_on{false};
constinit std::atomic<int64_t> fails_at{0};
constinit std::atomic<int64_t> counted{0};
constinit std::atomic<int64_t> failures{0};
constinit std::atomic<int64_t> live{0};
constinit thread_local bool this_thread = false;

#if GPUSHARE_OWN_MALLOC
bool Refuse() {
  if (!armed.load(std::memory_order_acquire)) return false;
  if (!every_thread.load(std::memory_order_relaxed) && !this_thread) return false;
  const int64_t number = counted.fetch_add(1) + 1;
  const int64_t first = fails_at.load(std::memory_order_relaxed);
  if (number != first && !(number > first && from_there_on.load(std::memory_order_relaxed))) {
    return false;
  }
  failures.fetch_add(1);
  errno = ENOMEM;
  return true;
}

void* Counted(void* memory) {
  if (memory != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}
#endif

}  // namespace

bool CanFailAllocations() { return GPUSHARE_OWN_MALLOC != 0; }

int64_t LiveAllocations() { return live.load(); }

FailingAllocations::FailingAllocations(int64_t first, Failing failing, Of of) {
  counted.store(0);
  failures.store(0);
  fails_at.store(first);
  from_there_on.store(failing == Failing::kFromThereOn);
  every_thread.store(of == Of::kEveryThread);
  this_thread = true;
  armed.store(true, std::memory_order_release);
}

void FailingAllocations::Stop() {
  armed.store(false, std::memory_order_release);
  this_thread = false;
}

int64_t FailingAllocations::failed() const { return failures.load(); }

}  // namespace gpushare_test

#if GPUSHARE_OWN_MALLOC

// glibc's own functions, which its manual names for replacements.
extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, size_t bytes);       // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* memory);                         // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t bytes) {
  return gpushare_test::Refuse() ? nullptr : gpushare_test::Counted(__libc_malloc(bytes));
}
void* calloc(size_t count, size_t bytes) {
  return gpushare_test::Refuse() ? nullptr : gpushare_test::Counted(__libc_calloc(count, bytes));
}
void* realloc(void* memory, size_t bytes) {
  if (gpushare_test::Refuse()) return nullptr;
  void* const grown = __libc_realloc(memory, bytes);
  return memory == nullptr ? gpushare_test::Counted(grown) : grown;
}
void* memalign(size_t alignment, size_t bytes) {
  if (gpushare_test::Refuse()) return nullptr;
  return gpushare_test::Counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
void free(void* memory) {
  if (memory != nullptr) gpushare_test::live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}
}

#endif
