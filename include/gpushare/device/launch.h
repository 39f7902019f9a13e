// The interface between the host and a worker launch: the launch header, which a worker kernel
// takes before its own parameters, and the completion record, which its last worker writes.
//
// Worker and slice kernels have the signature `(gpushare_worker_launch, Params)`. A launch gives
// the driver the address of each parameter, because the compiler chooses where Params lie behind
// the header. Layouts are frozen: precompiled kernels contain them. Plain C, for the host and for
// CUDA C++.

#ifndef GPUSHARE_DEVICE_LAUNCH_H_
#define GPUSHARE_DEVICE_LAUNCH_H_

#include <stdint.h>

#define GPUSHARE_WORKER_ABI_VERSION 1

// In mapped host memory. The last worker of a launch writes it, `sequence` last.
typedef struct gpushare_worker_completion {
  uint64_t start_globaltimer_ns;  // first worker, %globaltimer
  uint64_t end_globaltimer_ns;    // last worker
  uint32_t block_tasks_done;      // executed to their end by this launch
  uint32_t block_tasks_left;      // not claimed, or interrupted at a yield point
  uint64_t sequence;              // number of the launch, never 0; the host waits for it
} gpushare_worker_completion;

// Scratch of a launch in device memory. It is zero before the first launch that uses it. The last
// worker of each launch zeroes the first two words.
typedef struct gpushare_worker_scratch {
  uint64_t finished;              // number of workers that ended << 40 | block tasks executed
  uint64_t start_globaltimer_ns;  // written by worker 0
  uint64_t ended_sequence;        // of the last launch that ended; its leader waits for it
  uint64_t reserved;
} gpushare_worker_scratch;

typedef struct gpushare_worker_launch {
  // The lane's eviction word in device memory: the epoch in the high half, the number of workers to
  // keep in the low half. Null: the launch is never evicted.
  uint64_t* eviction_word;
  // The task's claim counter in device memory. Null (always in a slice): no claims; block k
  // executes block task block_begin + k and ends.
  uint32_t* counter;
  // The counter that the task after the next will use; the last worker zeroes it. May be null.
  uint32_t* retired_counter;
  gpushare_worker_scratch* scratch;        // null: the launch reports nothing
  gpushare_worker_completion* completion;  // mapped host memory
  uint64_t sequence;                       // for the completion record
  uint32_t epoch;        // the launch is evicted once (epoch of the word) - epoch >= 0 as int32_t
  uint32_t block_begin;  // first block task
  uint32_t block_count;  // number of block tasks
  uint32_t grid_x, grid_y, grid_z;  // the original grid
  uint32_t claim_batch;             // block tasks of one claim, at least 1
  // SM-bound workers (Filling & Retreating): a worker on an SM outside [sm_first, sm_first +
  // sm_count) ends at once; sm_count 0: every SM is allowed. At most workers_per_sm stay on an SM.
  uint32_t sm_first;
  uint32_t sm_count;
  uint32_t workers_per_sm;
  uint32_t* sm_workers;  // a count for each %smid, zero before and after; null: no bound
  // The list of interrupted block tasks of a body with yield points, in device memory: 1 +
  // yield_capacity words. They are zero before the task's first launch and after its last block
  // task. Word 0 counts the entries. Each other word is free (0) or holds the next step in the high
  // half and the block task in the low half. All launches of a task share one list. A capacity of
  // one word for each worker that may run at once is always enough. Null: block tasks are never
  // interrupted.
  uint64_t* yield_list;
  uint64_t yield_capacity;
  // The lane's eviction word in mapped host memory, or null. If it is not null, scratch must not be
  // null either. Block 0 is then the launch's leader, which copies this word to eviction_word until
  // the launch ends, and the workers are the blocks from 1 on.
  const uint64_t* host_eviction_word;
  uint64_t reserved;  // zero
} gpushare_worker_launch;

#endif  // GPUSHARE_DEVICE_LAUNCH_H_
