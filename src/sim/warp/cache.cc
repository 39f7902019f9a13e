#include "src/sim/warp/cache.h"

#include <algorithm>

#include "src/sim/warp/machine.h"

namespace gpushare::sim::warp {

Cache::Cache(int64_t bytes, int ways)
    : ways_(static_cast<size_t>(ways)),
      sets_(std::max<size_t>(1, static_cast<size_t>(bytes / kLineBytes) / ways_)),
      entries_(ways_ * sets_) {}

// The set is a hash of the line: strides of a power of two would otherwise use few sets.
size_t Cache::FirstOf(uint64_t line) const {
  const uint64_t mixed = (line ^ (line >> 15)) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>((mixed >> 32) % sets_) * ways_;
}

Cache::Entry& Cache::EntryFor(uint64_t line) {
  Entry* const first = &entries_[FirstOf(line)];
  Entry* oldest = first;
  for (Entry* entry = first; entry != first + ways_; ++entry) {
    if (entry->line == line) return *entry;
    if (entry->used < oldest->used) oldest = entry;
  }
  return *oldest;
}

Cache::Found Cache::Look(uint64_t line, uint8_t sectors) {
  Entry& entry = EntryFor(line);
  if (entry.line != line) return {};
  entry.used = ++uses_;
  const auto found = static_cast<uint8_t>(entry.sectors & sectors);
  return {found, found != 0 ? entry.arrives : 0};
}

void Cache::Fill(uint64_t line, uint8_t sectors, int64_t arrives) {
  Entry& entry = EntryFor(line);
  if (entry.line != line) entry = {.line = line, .arrives = 0, .used = 0, .sectors = 0};
  entry.sectors = static_cast<uint8_t>(entry.sectors | sectors);
  entry.arrives = std::max(entry.arrives, arrives);
  entry.used = ++uses_;
}

}  // namespace gpushare::sim::warp
