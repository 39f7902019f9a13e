// The SMs: cells, what is resident in them, and places made of them.
//
// A cell is a set of SMs with equal contents: one SM at block level; a group of sm_granularity SMs,
// or the remainder, at kernel level. Room is counted over the whole cell.
// Invariant: no resource of a cell exceeds its capacity.
// Threads: used under the device's mutex.

#ifndef GPUSHARE_SRC_SIM_SM_STATE_H_
#define GPUSHARE_SRC_SIM_SM_STATE_H_

#include <array>
#include <bitset>
#include <cstdint>

#include "absl/status/statusor.h"
#include "src/core/seams/device.h"
#include "src/core/seams/device_profile.h"
#include "src/sim/table.h"

namespace gpushare::sim {

// The most SMs that a profile may have; no GPU today has half as many.
inline constexpr int kMaxSms = 512;
using CellSet = std::bitset<kMaxSms>;

// The resources of one block.
struct BlockNeeds {
  int64_t registers = 0;
  int64_t shared_memory_bytes = 0;
  int64_t threads = 0;
  bool whole_sm = false;  // no other block fits beside it
};

struct Cell {
  int32_t sms = 0;
  int32_t first_sm = 0;
  int64_t registers = 0;  // in use in the whole cell
  int64_t shared_memory_bytes = 0;
  int64_t threads = 0;
  int64_t blocks = 0;
  int32_t residents = 0;  // number of residencies
  int32_t whole_residents = 0;
  int32_t first_residency = -1;  // head of a list through Residency::next_in_cell
  double factor = 1;             // SharedSmFactor of its residents
  // The first launch in the block scheduler's order that waits for this cell holds it.
  bool held = false;
  int32_t held_priority = 0;
  uint64_t held_sequence = 0;
};

// A place has at most two runs of cells: its groups, and the remainder.
struct Place {
  struct Run {
    int32_t begin = 0;
    int32_t end = 0;
  };
  std::array<Run, 2> runs;
  CellSet cells;
  int32_t sms = 0;
};

class SmState {
 public:
  // `cell_sms`: SMs of a cell, either 1 or the profile's granularity.
  SmState(const core::DeviceProfile& profile, int32_t cell_sms);

  absl::StatusOr<Place> MakePlace(const core::PlaceSpec& spec) const;
  const Place& whole_device() const { return whole_device_; }

  Table<Cell>& cells() { return cells_; }
  const Table<Cell>& cells() const { return cells_; }

  // How many more blocks fit into the cell, on all its SMs together.
  int64_t Fits(const Cell& cell, const BlockNeeds& needs) const;
  // How many blocks of one kernel fit on an empty SM.
  int64_t FitsEmptySm(const BlockNeeds& needs) const;

  void Take(Cell& cell, const BlockNeeds& needs, int64_t blocks) { Change(cell, needs, blocks); }
  void Release(Cell& cell, const BlockNeeds& needs, int64_t blocks) {
    Change(cell, needs, -blocks);
  }

 private:
  static void Change(Cell& cell, const BlockNeeds& needs, int64_t blocks);

  core::DeviceProfile profile_;
  int32_t cell_sms_;
  int32_t grouped_sms_;    // SMs that belong to whole groups
  int32_t grouped_cells_;  // cells of whole groups; the remainder's cells follow them
  Table<Cell> cells_;
  Place whole_device_;
};

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_SM_STATE_H_
