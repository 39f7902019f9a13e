// Room in cells, and places made of them. See sm_state.h.

#include "src/sim/sm_state.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gpushare::sim {

SmState::SmState(const core::DeviceProfile& profile, int32_t cell_sms)
    : profile_(profile), cell_sms_(cell_sms) {
  grouped_sms_ = profile.Groups() * profile.sm_granularity;
  auto cut = [this](int32_t begin, int32_t end) {
    for (int32_t sm = begin; sm < end; sm += cell_sms_) {
      Cell cell;
      cell.first_sm = sm;
      cell.sms = std::min(cell_sms_, end - sm);
      cells_.push_back(cell);
    }
  };
  cut(0, grouped_sms_);
  grouped_cells_ = static_cast<int32_t>(cells_.size());
  cut(grouped_sms_, profile.sm_count);
  whole_device_.runs = {Place::Run{0, static_cast<int32_t>(cells_.size())}, Place::Run{0, 0}};
  whole_device_.sms = profile.sm_count;
  for (size_t cell = 0; cell < cells_.size(); ++cell) whole_device_.cells.set(cell);
}

absl::StatusOr<Place> SmState::MakePlace(const core::PlaceSpec& spec) const {
  const int32_t groups = grouped_sms_ / profile_.sm_granularity;
  if (spec.first_group < 0 || spec.groups < 0 || spec.groups > groups ||
      spec.first_group > groups - spec.groups) {
    return absl::InvalidArgumentError(absl::StrCat("The place asks for groups ", spec.first_group,
                                                   " to ", int64_t{spec.first_group} + spec.groups,
                                                   ", and the device has ", groups, " groups of ",
                                                   profile_.sm_granularity, " SMs."));
  }
  Place place;
  const int32_t cells_per_group = profile_.sm_granularity / cell_sms_;
  place.runs[0] = {spec.first_group * cells_per_group,
                   (spec.first_group + spec.groups) * cells_per_group};
  if (spec.with_remainder) place.runs[1] = {grouped_cells_, static_cast<int32_t>(cells_.size())};
  for (const Place::Run& run : place.runs) {
    for (int32_t cell = run.begin; cell < run.end; ++cell) {
      place.cells.set(static_cast<size_t>(cell));
      place.sms += cells_[cell].sms;
    }
  }
  if (place.sms == 0) {
    return absl::InvalidArgumentError("The place has no SM; it needs at least one.");
  }
  return place;
}

int64_t SmState::FitsEmptySm(const BlockNeeds& needs) const {
  Cell empty;
  empty.sms = 1;
  return Fits(empty, needs);
}

int64_t SmState::Fits(const Cell& cell, const BlockNeeds& needs) const {
  if (cell.whole_residents > 0) return 0;
  if (needs.whole_sm) return cell.residents == 0 ? cell.sms : 0;
  const int64_t sms = cell.sms;
  // A block uses one SM, and all SMs of a cell have equal contents: count one SM, times their
  // number.
  auto used_in_one = [sms](int64_t used) { return (used + sms - 1) / sms; };
  int64_t fits = profile_.blocks_per_sm - used_in_one(cell.blocks);
  auto bound = [&](int64_t capacity, int64_t used, int64_t need) {
    if (need > 0 && fits > 0) fits = std::min(fits, (capacity - used_in_one(used)) / need);
  };
  bound(profile_.registers_per_sm, cell.registers, needs.registers);
  bound(profile_.shared_memory_per_sm_bytes, cell.shared_memory_bytes, needs.shared_memory_bytes);
  bound(profile_.threads_per_sm, cell.threads, needs.threads);
  return std::max<int64_t>(fits * sms, 0);
}

void SmState::Change(Cell& cell, const BlockNeeds& needs, int64_t blocks) {
  cell.registers += needs.registers * blocks;
  cell.shared_memory_bytes += needs.shared_memory_bytes * blocks;
  cell.threads += needs.threads * blocks;
  cell.blocks += blocks;
}

}  // namespace gpushare::sim
