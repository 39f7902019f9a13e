// The way of an access through load-store unit, L1, L2 and DRAM of one SM.
//
// Each stage serves in order and is a time at which it is free, so the completion of an access is
// known when it issues. Accesses that meet a line in flight wait for it and move no bytes. Stores
// pass L1 by, take room in L2 and are written to DRAM once for each line that L2 did not have.
// At most Machine::outstanding_lines are in flight: CanTake refuses more, and the issue unit tries
// another warp. So every queue is bounded. Threads: one at a time.

#ifndef GPUSHARE_SRC_SIM_WARP_MEMORY_H_
#define GPUSHARE_SRC_SIM_WARP_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/sim/warp/cache.h"
#include "src/sim/warp/machine.h"

namespace gpushare::sim::warp {

struct MemoryCounts {
  int64_t l1_lines = 0;  // looked up by loads
  int64_t l1_hits = 0;   // all sectors there or in flight
  int64_t l2_sectors = 0;
  int64_t dram_sectors = 0;
  int64_t lsu_cycles = 0;  // that the load-store unit worked
};

// The bytes of one access, apart from the first address.
struct AccessShape {
  int lines = 1;
  int sectors = 4;
  int64_t line_stride = kLineBytes;
};

class Memory {
 public:
  // l1_bytes: what shared memory leaves of the machine's.
  Memory(const Machine& machine, int64_t l1_bytes);

  // Whether the load-store unit takes a bank access, or one of so many lines, at this cycle.
  bool CanTakeShared(int64_t cycle) const { return lsu_free_ - cycle < lsu_queue_; }
  bool CanTake(int64_t cycle, int lines) { return lines <= FreeLines(cycle); }
  // Lines that it takes at this cycle; 0 while its queue is full.
  int FreeLines(int64_t cycle);
  // The first cycle at which it may take so many lines, given that it does not now.
  int64_t NextRoom(int64_t cycle, int lines) const;

  // Each returns the cycle at which the last byte is there. An access must be one that CanTake or
  // CanTakeShared accepts at this cycle.
  int64_t Shared(int64_t cycle, int passes, int latency);
  int64_t Load(int64_t cycle, uint64_t address, const AccessShape& shape);
  int64_t Store(int64_t cycle, uint64_t address, const AccessShape& shape);

  const MemoryCounts& counts() const { return counts_; }

 private:
  // Lines in flight that are answered from one place. They free their slots in order: one that is
  // there sooner than the line before it waits for that one.
  class InFlight {
   public:
    explicit InFlight(size_t most) : until_(most) {}
    void Push(int64_t until);
    // Frees what is there. Returns how many.
    size_t FreeUntil(int64_t cycle);
    size_t count() const { return count_; }
    int64_t until(size_t i) const { return until_[(first_ + i) % until_.size()]; }

   private:
    std::vector<int64_t> until_;  // a ring
    size_t first_ = 0;
    size_t count_ = 0;
    int64_t last_ = 0;
  };
  enum Answers : uint8_t { kFromL2, kFromDram, kStores, kAnswers };

  // A server of bytes. Ticks are 1/1024 of a cycle.
  struct Server {
    int64_t ticks_per_sector = 1;
    int64_t free_tick = 0;
    // The tick at which the sectors have passed.
    int64_t Serve(int64_t tick, int sectors);
  };

  int64_t TakeLine(int64_t cycle);
  int64_t LoadLine(int64_t cycle, uint64_t address, int sectors);
  int64_t StoreLine(int64_t cycle, uint64_t address, int sectors);
  // Sectors of one line that L1 does not have. Returns when they are there.
  int64_t Fetch(int64_t cycle, uint64_t line, uint8_t sectors);
  void Hold(Answers from, int64_t until);

  int64_t lsu_queue_;
  int64_t lsu_free_ = 0;
  int64_t l1_latency_;
  int64_t l2_latency_;
  int64_t dram_latency_;
  Cache l1_;
  Cache l2_;
  Server l2_port_;
  Server dram_;
  size_t in_flight_max_;
  size_t in_flight_count_ = 0;
  std::array<InFlight, kAnswers> in_flight_;
  MemoryCounts counts_;
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_MEMORY_H_
