// A set-associative cache of lines with sectors: what is there, and when it arrives.
//
// Within a set the least recently used line leaves. A line in flight is found too; its data can be
// used from `arrives`. One arrival a line: sectors that come later move it.
// Threads: one at a time.

#ifndef GPUSHARE_SRC_SIM_WARP_CACHE_H_
#define GPUSHARE_SRC_SIM_WARP_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpushare::sim::warp {

class Cache {
 public:
  // bytes >= ways lines.
  Cache(int64_t bytes, int ways);

  struct Found {
    uint8_t sectors = 0;  // of those asked for, as bits; in flight or there
    int64_t arrives = 0;  // 0 unless some were found
  };
  // Looks for sectors of a line and counts as its use.
  Found Look(uint64_t line, uint8_t sectors);
  // Makes room for sectors that arrive then.
  void Fill(uint64_t line, uint8_t sectors, int64_t arrives);

 private:
  struct Entry {
    uint64_t line = ~uint64_t{0};
    int64_t arrives = 0;
    uint64_t used = 0;  // larger is more recent
    uint8_t sectors = 0;
  };

  size_t FirstOf(uint64_t line) const;
  // The line's entry, or the least recently used of its set.
  Entry& EntryFor(uint64_t line);

  size_t ways_;
  size_t sets_;
  uint64_t uses_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_CACHE_H_
