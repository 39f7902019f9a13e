// The CapSM ledger's arithmetic (capsm_ledger.h holds the rules and invariants).
//
// `free_` is kept by differences of claims, so every call is O(1); the property test compares it
// with a sum over all apps after every step.

#include "src/core/state/capsm_ledger.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace gpushare::core {
namespace {

constexpr int64_t LeastCommonMultipleUpTo(int64_t n) {
  int64_t multiple = 1;
  for (int64_t i = 2; i <= n; ++i) multiple = std::lcm(multiple, i);
  return multiple;
}
static_assert(kCapSmUnit == LeastCommonMultipleUpTo(kMaxWorkersPerSm));

template <class Amount>
Amount RoundUp(Amount value, Amount step) {
  return (value + step - 1) / step * step;
}

const char* ClassName(AppClass app_class) {
  return app_class == AppClass::kLatencyCritical ? "LC" : "BE";
}

}  // namespace

CapSmLedger::CapSmLedger(int32_t sm_count, int32_t sm_granularity, int32_t remainder,
                         bool remainder_for_lc)
    : sm_count_(std::clamp(sm_count, 1, kMaxLedgerSms)),
      granularity_(std::clamp(sm_granularity, 1, sm_count_)),
      remainder_(remainder > 0 && remainder < sm_count_ ? remainder : 0),
      remainder_for_lc_(remainder_for_lc),
      smallest_be_side_(remainder_ > 0 && !remainder_for_lc ? remainder_ : granularity_) {
  capacity_ = CapSmUnits(sm_count_) * kCapSmUnit;
  free_ = capacity_;
}

void CapSmLedger::AddApp(int app, AppClass app_class) {
  App& row = app_[Index(app)];
  assert(!row.present && "the app is there already");
  row = App();
  row.app_class = app_class;
  row.present = true;
}

void CapSmLedger::RemoveApp(int app) {
  App& row = app_[Index(app)];
  assert(row.present && row.used == 0 && "an app leaves with nothing in use");
  if (row.app_class == AppClass::kLatencyCritical) reserved_capsms_ -= row.granted;
  GiveRemainder(row, false);
  SetClaim(row, 0);
  row = App();
}

absl::Status CapSmLedger::Reserve(int app, absl::string_view name, int32_t capsms, bool packed) {
  App& row = app_[Index(app)];
  assert(row.present && "reserve for an app that was added");
  const bool is_lc = row.app_class == AppClass::kLatencyCritical;
  if (capsms < 0) {
    return absl::InvalidArgumentError(absl::StrCat(ClassName(row.app_class), " app '", name,
                                                   "' asks for ", capsms,
                                                   " CapSMs, and the least is 0."));
  }
  if (capsms > sm_count_) {
    return absl::InvalidArgumentError(absl::StrCat(ClassName(row.app_class), " app '", name,
                                                   "' asks for ", capsms,
                                                   " CapSMs, and the device has ", sm_count_, "."));
  }
  int32_t granted = capsms;
  bool takes_remainder = false;
  if (packed && capsms > 0) {
    if (is_lc) {
      granted = PackedReservation(row, capsms, takes_remainder);
    } else if (capsms < smallest_be_side_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "BE app '", name, "' asks for a packed quota of ", capsms,
          " CapSMs, and the smallest BE side of whole SMs has ", smallest_be_side_, "."));
    } else {
      granted = PackedQuota(capsms);
    }
  }
  if (is_lc) {
    const int32_t others = reserved_capsms_ - row.granted;
    if (!packed && OthersArePacked(app)) granted = WithoutGap(granted, sm_count_ - others);
    if (granted > sm_count_ - others) {
      return absl::ResourceExhaustedError(
          absl::StrCat("LC app '", name, "' asks for ", capsms, " CapSMs",
                       granted == capsms ? "" : absl::StrCat(" (", granted, " on whole SMs)"),
                       ", and ", sm_count_ - others, " of ", sm_count_, " are not reserved."));
    }
    reserved_capsms_ = others + granted;
  }
  row.granted = granted;
  row.packed = packed && granted > 0;
  if (is_lc) {
    GiveRemainder(row, takes_remainder);
  } else {
    SettleBeRemainder(row);
  }
  SetClaim(row, ClaimFor(row));
  return absl::OkStatus();
}

bool CapSmLedger::OthersArePacked(int app) const {
  for (size_t i = 0; i < app_.size(); ++i) {
    const App& other = app_[i];
    if (i == Index(app) || !other.present) continue;
    if (other.app_class == AppClass::kLatencyCritical && other.packed) return true;
  }
  return false;
}

// No BE side is small enough for what would be left: reservations are on whole SMs only when BE
// gets none.
int32_t CapSmLedger::WithoutGap(int32_t capsms, int32_t left) const {
  return capsms > 0 && capsms <= left && capsms > left - smallest_be_side_ ? left : capsms;
}

void CapSmLedger::GiveRemainder(App& row, bool has) {
  if (row.has_remainder != has) remainder_taken_ = has;
  row.has_remainder = has;
}

// The left-over SMs of BE are part of the side that one packed app at a time holds, from its first
// worker to its last.
void CapSmLedger::SettleBeRemainder(App& row) {
  const bool placed = row.packed && row.used > 0;
  if (!placed) {
    GiveRemainder(row, false);
  } else if (!row.placed && remainder_ > 0 && !remainder_for_lc_ && !remainder_taken_) {
    GiveRemainder(row, true);
  }
  row.placed = placed;
}

int32_t CapSmLedger::PackedReservation(const App& row, int32_t capsms,
                                       bool& takes_remainder) const {
  int32_t granted = RoundUp(capsms, granularity_);
  const bool remainder_free =
      remainder_ > 0 && remainder_for_lc_ && (!remainder_taken_ || row.has_remainder);
  if (remainder_free) {
    const int32_t with_remainder =
        RoundUp(std::max(capsms - remainder_, 0), granularity_) + remainder_;
    takes_remainder = with_remainder < granted;
    granted = std::min(granted, with_remainder);
  }
  const int32_t left = sm_count_ - (reserved_capsms_ - row.granted);
  if (capsms <= left && granted > left - smallest_be_side_) {  // as WithoutGap; may be above `left`
    granted = left;
    takes_remainder = remainder_free;
  }
  return granted;
}

int32_t CapSmLedger::PackedQuota(int32_t capsms) const {
  const int32_t groups = (capsms - smallest_be_side_) / granularity_;
  const int32_t largest = remainder_for_lc_ ? sm_count_ - remainder_ : sm_count_;
  return std::min(smallest_be_side_ + groups * granularity_, largest);
}

void CapSmLedger::Charge(int app, int32_t workers, int32_t workers_per_sm_max) {
  App& row = app_[Index(app)];
  assert(row.present && workers >= 0);
  SetUsed(row, row.used + WorkerUnits(workers, workers_per_sm_max));
}

void CapSmLedger::Release(int app, int32_t workers, int32_t workers_per_sm_max) {
  App& row = app_[Index(app)];
  const CapSmUnits units = WorkerUnits(workers, workers_per_sm_max);
  assert(row.present && workers >= 0 && units <= row.used && "released more than was taken");
  SetUsed(row, row.used - units);
}

CapSmUnits CapSmLedger::ClaimFor(const App& row) const {
  if (row.app_class == AppClass::kLatencyCritical) {
    return std::max(row.used, CapSmUnits(row.granted) * kCapSmUnit);
  }
  return row.packed ? BeSide(row) : row.used;
}

CapSmUnits CapSmLedger::BeSide(const App& row) const {
  if (row.used == 0) return 0;
  const CapSmUnits smallest =
      CapSmUnits(row.has_remainder ? remainder_ : granularity_) * kCapSmUnit;
  return smallest + RoundUp(std::max(row.used - smallest, CapSmUnits(0)), GroupUnits());
}

void CapSmLedger::SetUsed(App& row, CapSmUnits used) {
  used_ += used - row.used;
  row.used = used;
  if (row.app_class == AppClass::kBestEffort) SettleBeRemainder(row);
  SetClaim(row, ClaimFor(row));
}

void CapSmLedger::SetClaim(App& row, CapSmUnits claim) {
  free_ -= claim - row.claim;
  row.claim = claim;
}

}  // namespace gpushare::core
