// What the host and a worker launch tell each other: the launch header that a worker kernel takes
// before its own parameters, and the completion record that its last worker writes.
//
// Worker and slice kernels have the signature `(gpushare_worker_launch, Params)`. A launch gives
// the driver the address of each: where Params lie after the header is the compiler's choice.
// Layouts are frozen: precompiled kernels carry them. Plain C, for the host and for CUDA C++.

#ifndef GPUSHARE_DEVICE_LAUNCH_H_
#define GPUSHARE_DEVICE_LAUNCH_H_

#include <stdint.h>

#define GPUSHARE_WORKER_ABI_VERSION 1

// Written by the last worker of a launch into mapped host memory; `sequence` is written last.
typedef struct gpushare_worker_completion {
  uint64_t start_globaltimer_ns;  // first worker, %globaltimer
  uint64_t end_globaltimer_ns;    // last worker
  uint32_t block_tasks_done;      // executed to their end by this launch
  uint32_t block_tasks_left;      // not claimed or interrupted at a yield point; 0: nothing is left
  uint64_t sequence;              // the launch's own, never 0; what the host waits for
} gpushare_worker_completion;

// Scratch of a launch in device memory, zero before the first launch that uses it; the last worker
// zeroes the first two.
typedef struct gpushare_worker_scratch {
  uint64_t finished;              // workers that ended << 40 | block tasks executed
  uint64_t start_globaltimer_ns;  // set by whichever worker comes first
  uint64_t ended_sequence;        // of the last launch that ended: what its leader waits for
  uint64_t reserved;
} gpushare_worker_scratch;

typedef struct gpushare_worker_launch {
  // The lane's eviction word in device memory: {epoch, workers to keep} as high and low half. Null:
  // never evicted.
  uint64_t* eviction_word;
  // The task's claim counter in device memory. Null, as always in a slice: no claims, block k
  // executes block task block_begin + k and ends.
  uint32_t* counter;
  // Zeroed by the last worker: the counter that the task after the next will use. May be null.
  uint32_t* retired_counter;
  gpushare_worker_scratch* scratch;        // null: nothing is reported
  gpushare_worker_completion* completion;  // mapped host memory
  uint64_t sequence;                       // for the completion record
  uint32_t epoch;                   // of this launch; it leaves once word - epoch >= 0, signed
  uint32_t block_begin;             // first block task
  uint32_t block_count;             // block tasks from there on
  uint32_t grid_x, grid_y, grid_z;  // the original grid
  uint32_t claim_batch;             // block tasks taken per claim, at least 1
  // SM-bound workers (Filling & Retreating): a worker on an SM outside [sm_first, sm_first +
  // sm_count) retreats at once; sm_count 0: anywhere. workers_per_sm bounds those that stay.
  uint32_t sm_first;
  uint32_t sm_count;
  uint32_t workers_per_sm;
  uint32_t* sm_workers;  // one count an SM (by %smid), zero before and after; null without a bound
  // Interrupted block tasks of a yielding body, in device memory: 1 + yield_capacity words, zero
  // before the task's first launch and once all of its block tasks are done. Word 0 counts those
  // that wait, each other word is free (0) or {next step, block task} as high and low half. One
  // list serves all launches of a task; as many words as workers of all of them that may run at
  // once are always enough. Null: block tasks are never interrupted.
  uint64_t* yield_list;
  uint64_t yield_capacity;
  // The same word in mapped host memory. Not null (scratch must not be null either): block 0 is no
  // worker but the launch's leader, which relays this word to eviction_word until the launch ends;
  // the workers are the blocks from 1 on.
  const uint64_t* host_eviction_word;
  uint64_t reserved;  // zero
} gpushare_worker_launch;

#endif  // GPUSHARE_DEVICE_LAUNCH_H_
