// Memory pools with a limit, for PyTorch's CUDAPluggableAllocator (gpushare/torch/memory_pool.py).
//
//   pool = OpenPool(limit, calls)
//   PyTorch gets PoolAlloc(pool) and PoolFree(pool)
//   PoolUsedBytes(pool), PoolRefusals(pool)
//   ClosePool(pool)
//
// An allocation beyond the limit returns null, which PyTorch's caching allocator reports as out of
// memory; without a custom allocator nothing bounds one pool. Invariants: `used` never exceeds the
// limit; nothing here takes a lock or touches Python, because PyTorch calls it under locks of its
// own. Threads: any; one opens and closes at a time (the interpreter's lock).

#ifndef GPUSHARE_BINDINGS_PYTHON_NATIVE_MEMORY_POOL_H_
#define GPUSHARE_BINDINGS_PYTHON_NATIVE_MEMORY_POOL_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace gpushare::python {

// Functions of the CUDA runtime that PyTorch has loaded. The status 0 is success.
struct CudaCalls {
  int (*malloc)(void** out, size_t size) = nullptr;
  int (*free)(void* memory) = nullptr;
  int (*get_last_error)() = nullptr;  // also forgets the error, which PyTorch would find later
};

// As CUDAPluggableAllocator calls them; the stream is a cudaStream_t.
using AllocFunction = void* (*)(ssize_t size, int device, void* stream);
using FreeFunction = void (*)(void* memory, ssize_t size, int device, void* stream);

constexpr int kPoolsMax = 16;

// The index of a new pool, or -1: kPoolsMax are open or still have memory.
int OpenPool(int64_t limit_bytes, const CudaCalls& calls);
// The pool may be opened anew once all of its memory is freed.
void ClosePool(int pool);
AllocFunction PoolAlloc(int pool);
FreeFunction PoolFree(int pool);
int64_t PoolUsedBytes(int pool);
// How many allocations the limit refused.
int64_t PoolRefusals(int pool);

}  // namespace gpushare::python

#endif  // GPUSHARE_BINDINGS_PYTHON_NATIVE_MEMORY_POOL_H_
