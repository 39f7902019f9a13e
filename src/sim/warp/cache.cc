#include "src/sim/warp/cache.h"

#include <algorithm>

#include "src/sim/warp/machine.h"

namespace gpushare::sim::warp {
namespace {

constexpr uint64_t kNoLine = ~uint64_t{0};

}  // namespace

Cache::Cache(int64_t bytes, int ways)
    : ways_(static_cast<size_t>(ways)),
      sets_(std::max<uint64_t>(1, static_cast<uint64_t>(bytes / kLineBytes) / ways_)),
      lines_(ways_ * sets_, kNoLine),
      used_(ways_ * sets_, 0),
      data_(ways_ * sets_) {}

Cache::Found Cache::Look(uint64_t line, uint8_t sectors) {
  // The set is a hash of the line: strides of a power of two would otherwise use few sets.
  const uint64_t mixed = (line ^ (line >> 15)) * 0x9E3779B97F4A7C15u;
  const size_t first = static_cast<size_t>(((mixed >> 32) * sets_) >> 32) * ways_;
  for (size_t entry = first; entry < first + ways_; ++entry) {
    if (lines_[entry] != line) continue;
    used_[entry] = ++uses_;
    const auto found = static_cast<uint8_t>(data_[entry].sectors & sectors);
    return {entry, found, found != 0 ? data_[entry].arrives : 0};
  }
  size_t oldest = first;
  for (size_t entry = first + 1; entry < first + ways_; ++entry) {
    if (used_[entry] < used_[oldest]) oldest = entry;
  }
  lines_[oldest] = line;
  used_[oldest] = ++uses_;
  data_[oldest] = {};
  return {oldest, 0, 0};
}

void Cache::Fill(const Found& found, uint8_t sectors, int64_t arrives) {
  Data& data = data_[found.entry];
  data.sectors = static_cast<uint8_t>(data.sectors | sectors);
  data.arrives = std::max(data.arrives, arrives);
}

}  // namespace gpushare::sim::warp
