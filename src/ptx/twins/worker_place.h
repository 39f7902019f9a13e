// Where a worker is in its launch: which threads it has, and which header, words and barriers.
//
// Where in the flow: below the protocol. A worker or slice twin is a block of its own, which is
// what the default says. In a fused block a worker is a run of whole warps with its own words and
// barriers, one of several workers of its launch in the block.
//
// The texts use the protocol's registers ~r0 to ~r3, ~d0, ~d1 and ~p1, which hold nothing while a
// body runs.

#ifndef GPUSHARE_SRC_PTX_TWINS_WORKER_PLACE_H_
#define GPUSHARE_SRC_PTX_TWINS_WORKER_PLACE_H_

#include <cstdint>
#include <string>

namespace gpushare::ptx {

struct WorkerPlace {
  std::string launch = "gpushare_launch";  // the parameter with its header
  std::string other_launch;                // of a fused block's other part; empty: there is none
  // The worker's words in shared memory: a variable, and a distance from it.
  std::string shared = "gpushare_shared";
  uint32_t shared_offset = 0;

  uint32_t threads = 0;  // 0: the whole block
  uint32_t first_thread = 0;
  uint32_t workers = 1;  // of this launch in a block
  uint32_t worker = 0;   // which of them this one is
};

// Sets ~r0 to this thread's index in its worker; not where that is the whole block.
std::string FindThread(const WorkerPlace& place);

// Sets ~r1 to the worker's index; negative in block 0 where that is the launch's leader.
std::string FindWorker(const WorkerPlace& place);

// Sets ~r1 to the number of workers of the launch.
std::string CountWorkers(const WorkerPlace& place);

// Sets ~`name` to the address of the worker's words.
std::string FindWords(const WorkerPlace& place, const std::string& name);

// The operands of a barrier of all threads of the worker: its number, and their number where the
// block has others.
std::string OperandsOfBarrier(const WorkerPlace& place, uint32_t number);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TWINS_WORKER_PLACE_H_
