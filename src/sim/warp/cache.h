// A set-associative cache of lines with sectors: what is there, and when it arrives.
//
// Within a set the least recently used line leaves. A line in flight is found too; its data can be
// used from its arrival. One arrival a line: sectors that come later move it.
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
    size_t entry = 0;     // where the line is, or has been given room; for Fill
    uint8_t sectors = 0;  // of those asked for, as bits; in flight or there
    int64_t arrives = 0;  // 0 unless some were found
  };
  // Looks for sectors of a line and counts as its use. A line that is not there gets the room of
  // the least recently used one, with no sectors yet.
  Found Look(uint64_t line, uint8_t sectors);
  // Sectors of the line that was looked for last arrive then.
  void Fill(const Found& found, uint8_t sectors, int64_t arrives);

 private:
  struct Data {
    int64_t arrives = 0;
    uint8_t sectors = 0;
  };

  size_t ways_;
  uint64_t sets_;
  uint64_t uses_ = 0;
  // Apart, because a look reads the lines of a whole set and the data of one.
  std::vector<uint64_t> lines_;
  std::vector<uint64_t> used_;  // larger is more recent
  std::vector<Data> data_;
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_CACHE_H_
