// Memory pools with a limit (memory_pool.h). A pool's functions have no argument that says which
// pool it is, so each pool of the table has functions of its own.

#include "bindings/python/native/memory_pool.h"

#include <array>
#include <atomic>
#include <utility>

namespace gpushare::python {
namespace {

struct Pool {
  std::atomic<bool> open = false;
  std::atomic<int64_t> limit_bytes = 0;
  std::atomic<int64_t> used_bytes = 0;
  std::atomic<int64_t> refusals = 0;
  CudaCalls calls;  // stays after a close: memory is freed by it
};

std::array<Pool, kPoolsMax> pools;

// Takes the bytes. False: they do not fit.
bool Take(Pool& pool, int64_t bytes) {
  int64_t used = pool.used_bytes.load();
  do {
    if (bytes > pool.limit_bytes.load() - used) return false;
  } while (!pool.used_bytes.compare_exchange_weak(used, used + bytes));
  return true;
}

template <int kIndex>
void* Alloc(ssize_t size, int /*device*/, void* /*stream*/) {
  Pool& pool = pools[kIndex];
  if (!Take(pool, size)) {
    pool.refusals.fetch_add(1);
    return nullptr;
  }
  void* memory = nullptr;
  if (pool.calls.malloc(&memory, static_cast<size_t>(size)) == 0) return memory;
  pool.calls.get_last_error();
  pool.used_bytes.fetch_sub(size);
  return nullptr;
}

template <int kIndex>
void Free(void* memory, ssize_t size, int /*device*/, void* /*stream*/) {
  if (memory == nullptr) return;
  Pool& pool = pools[kIndex];
  pool.calls.free(memory);
  pool.used_bytes.fetch_sub(size);
}

struct Functions {
  AllocFunction alloc;
  FreeFunction free;
};

template <int... kIndex>
constexpr std::array<Functions, kPoolsMax> Table(std::integer_sequence<int, kIndex...>) {
  return {Functions{&Alloc<kIndex>, &Free<kIndex>}...};
}

constexpr auto kFunctions = Table(std::make_integer_sequence<int, kPoolsMax>());

}  // namespace

int OpenPool(int64_t limit_bytes, const CudaCalls& calls) {
  for (int index = 0; index < kPoolsMax; ++index) {
    Pool& pool = pools[static_cast<size_t>(index)];
    if (pool.open.load() || pool.used_bytes.load() != 0) continue;
    pool.open = true;
    pool.calls = calls;
    pool.refusals = 0;
    pool.limit_bytes = limit_bytes;
    return index;
  }
  return -1;
}

void ClosePool(int pool) { pools[static_cast<size_t>(pool)].open = false; }

AllocFunction PoolAlloc(int pool) { return kFunctions[static_cast<size_t>(pool)].alloc; }
FreeFunction PoolFree(int pool) { return kFunctions[static_cast<size_t>(pool)].free; }

int64_t PoolUsedBytes(int pool) { return pools[static_cast<size_t>(pool)].used_bytes.load(); }
int64_t PoolRefusals(int pool) { return pools[static_cast<size_t>(pool)].refusals.load(); }

}  // namespace gpushare::python
