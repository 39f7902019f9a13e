#include "src/sim/warp/memory.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace gpushare::sim::warp {
namespace {

constexpr int kL1Ways = 8;
constexpr int kL2Ways = 16;
constexpr int64_t kTicks = 1024;  // a cycle

int64_t TicksPerSector(double bytes_per_cycle) {
  return std::max<int64_t>(
      1, std::llround(static_cast<double>(kSectorBytes * kTicks) / bytes_per_cycle));
}

int64_t CycleOf(int64_t tick) { return (tick + kTicks - 1) / kTicks; }

// The bits of `sectors` sectors from an address, up to the end of its line.
uint8_t SectorBits(uint64_t address, int sectors) {
  const uint64_t first = (address / kSectorBytes) % (kLineBytes / kSectorBytes);
  return static_cast<uint8_t>((((1u << sectors) - 1) << first) & 0xF);
}

}  // namespace

int64_t Memory::Server::Serve(int64_t tick, int sectors) {
  free_tick = std::max(free_tick, tick) + ticks_per_sector * sectors;
  return free_tick;
}

Memory::Memory(const Machine& machine, int64_t l1_bytes)
    : lsu_queue_(machine.lsu_queue),
      l1_latency_(machine.l1_latency),
      l2_latency_(machine.l2_latency),
      dram_latency_(machine.dram_latency),
      l1_(l1_bytes, kL1Ways),
      l2_(machine.l2_bytes, kL2Ways),
      l2_port_{TicksPerSector(machine.l2_bytes_per_cycle)},
      dram_{TicksPerSector(machine.dram_bytes_per_cycle)},
      in_flight_max_(static_cast<size_t>(machine.outstanding_lines)),
      in_flight_{InFlight(in_flight_max_), InFlight(in_flight_max_), InFlight(in_flight_max_)} {}

void Memory::InFlight::Push(int64_t until) {
  assert(count_ < until_.size() && "an access that CanTake refuses");
  last_ = std::max(last_, until);
  size_t end = first_ + count_++;
  if (end >= until_.size()) end -= until_.size();
  until_[end] = last_;
}

size_t Memory::InFlight::FreeUntil(int64_t cycle) {
  size_t freed = 0;
  for (; count_ > 0 && until_[first_] <= cycle; ++freed, --count_) {
    if (++first_ == until_.size()) first_ = 0;
  }
  return freed;
}

int Memory::FreeLines(int64_t cycle) {
  if (!CanTakeShared(cycle)) return 0;
  for (InFlight& answers : in_flight_) in_flight_count_ -= answers.FreeUntil(cycle);
  return static_cast<int>(in_flight_max_ - in_flight_count_);
}

int64_t Memory::NextRoom(int64_t cycle, int lines) const {
  int64_t next = cycle + 1;
  if (!CanTakeShared(cycle)) next = std::max(next, lsu_free_ - lsu_queue_ + 1);
  // The answers that must come first, in the order of time over all places.
  std::array<size_t, kAnswers> taken = {};
  auto missing =
      static_cast<int64_t>(in_flight_count_) + lines - static_cast<int64_t>(in_flight_max_);
  for (; missing > 0; --missing) {
    size_t first = kAnswers;
    for (size_t from = 0; from < kAnswers; ++from) {
      if (taken[from] == in_flight_[from].count()) continue;
      if (first == kAnswers ||
          in_flight_[from].until(taken[from]) < in_flight_[first].until(taken[first])) {
        first = from;
      }
    }
    if (first == kAnswers) break;
    next = std::max(next, in_flight_[first].until(taken[first]++));
  }
  return next;
}

void Memory::Hold(Answers from, int64_t until) {
  in_flight_[from].Push(until);
  ++in_flight_count_;
}

int64_t Memory::TakeLine(int64_t cycle) {
  const int64_t at = std::max(cycle, lsu_free_);
  lsu_free_ = at + 1;
  ++counts_.lsu_cycles;
  return at;
}

int64_t Memory::Shared(int64_t cycle, int passes, int latency) {
  const int64_t at = std::max(cycle, lsu_free_);
  lsu_free_ = at + passes;
  counts_.lsu_cycles += passes;
  return at + passes - 1 + latency;
}

int64_t Memory::Fetch(int64_t cycle, uint64_t line, uint8_t sectors) {
  const int64_t passed = l2_port_.Serve(cycle * kTicks, std::popcount(sectors));
  counts_.l2_sectors += std::popcount(sectors);
  const Cache::Found found = l2_.Look(line, sectors);
  int64_t there = std::max(CycleOf(passed) + l2_latency_, found.arrives);
  const auto missing = static_cast<uint8_t>(sectors & ~found.sectors);
  if (missing != 0) {
    counts_.dram_sectors += std::popcount(missing);
    const int64_t read = CycleOf(dram_.Serve(passed, std::popcount(missing))) + dram_latency_;
    l2_.Fill(found, missing, read);
    there = std::max(there, read);
  }
  return there;
}

int64_t Memory::LoadLine(int64_t cycle, uint64_t address, int sectors) {
  const int64_t at = TakeLine(cycle);
  const uint64_t line = address / kLineBytes;
  const uint8_t wanted = SectorBits(address, sectors);
  ++counts_.l1_lines;
  const Cache::Found found = l1_.Look(line, wanted);
  int64_t there = std::max(at + l1_latency_, found.arrives);
  const auto missing = static_cast<uint8_t>(wanted & ~found.sectors);
  if (missing == 0) {
    ++counts_.l1_hits;
    return there;
  }
  const int64_t dram_sectors = counts_.dram_sectors;
  const int64_t fetched = Fetch(at, line, missing);
  l1_.Fill(found, missing, fetched);
  Hold(counts_.dram_sectors == dram_sectors ? kFromL2 : kFromDram, fetched);
  return std::max(there, fetched);
}

int64_t Memory::StoreLine(int64_t cycle, uint64_t address, int sectors) {
  const int64_t at = TakeLine(cycle);
  const uint64_t line = address / kLineBytes;
  const uint8_t wanted = SectorBits(address, sectors);
  const int64_t passed = l2_port_.Serve(at * kTicks, std::popcount(wanted));
  counts_.l2_sectors += std::popcount(wanted);
  const Cache::Found found = l2_.Look(line, wanted);
  const auto missing = static_cast<uint8_t>(wanted & ~found.sectors);
  int64_t done = CycleOf(passed) + l2_latency_;
  if (missing != 0) {
    counts_.dram_sectors += std::popcount(missing);
    done = std::max(done, CycleOf(dram_.Serve(passed, std::popcount(missing))));
    l2_.Fill(found, missing, done);
  }
  Hold(kStores, done);
  return done;
}

int64_t Memory::Load(int64_t cycle, uint64_t address, const AccessShape& shape) {
  int64_t done = cycle;
  for (int line = 0; line < shape.lines; ++line) {
    const uint64_t at =
        address + static_cast<uint64_t>(line) * static_cast<uint64_t>(shape.line_stride);
    done = std::max(done, LoadLine(cycle, at, shape.sectors));
  }
  return done;
}

int64_t Memory::Store(int64_t cycle, uint64_t address, const AccessShape& shape) {
  int64_t done = cycle;
  for (int line = 0; line < shape.lines; ++line) {
    const uint64_t at =
        address + static_cast<uint64_t>(line) * static_cast<uint64_t>(shape.line_stride);
    done = std::max(done, StoreLine(cycle, at, shape.sectors));
  }
  return done;
}

}  // namespace gpushare::sim::warp
