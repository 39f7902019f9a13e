// Who uses how much of the device: SMGuard's CapSM ledger (S1; SMGuard sections 4 and 5.1).
//
// One CapSM is the capacity of one SM. A kernel whose SM holds at most M workers uses 1/M CapSM a
// worker, wherever its workers sit (section 4.1). BE apps may have a quota, an upper bound; LC apps
// may have a reservation, a lower bound that is kept free for them.
//
// Exact: amounts are integers in units of 1 / lcm(1..32) CapSM, so 1/M is a whole number of units
// for every M that a GPU has, and a ledger whose launches have all ended is at exactly zero. They
// have 128 bits: 64 hold 63,872 CapSMs, and 484 launches that each fill 132 SMs use more.
//
// Spread capacity lies anywhere. Packed capacity lies on whole SMs that nobody else uses (on CUDA a
// green context): it comes in the sizes of a partition's sides, groups of sm_granularity SMs and,
// on the one side that gets them, the SMs that whole groups leave over (an H200: 15 x 8 + 12 of
// 132).
//   - A packed reservation rounds up to groups. Left-over SMs that are LC's may complete it instead
//     of a group, once: 84 = 9 x 8 + 12. Where not even the smallest BE side would remain it rounds
//     up to all that is not reserved. So does a spread reservation beside a packed one: together
//     they are an LC side, and none is larger than the largest.
//   - A packed quota rounds down to a BE side: groups, on top of the left-over SMs when they are
//     BE's (12, 20, 28, ...). Less than the smallest BE side is refused.
//   - A packed BE app holds a whole side as long as it uses any of it. The left-over SMs are part
//     of one such side at a time, that of the app that came first; beside it sides are groups
//     alone, and the next app to start from nothing gets them once they are free.
//
//   claim(app) = used, but at least its reservation; of a packed BE app, rounded up to a BE side
//   free       = device - sum of claims
//
// Invariant: the reservations together never exceed the device. The ledger counts and refuses no
// launch: policies keep within quotas and reservations. `free` is negative when launches took more
// than that, or when a Reserve came while BE apps held the capacity; then Shortfall() is what must
// be evicted (R_gap of algorithm 1, line 5).
//
// Where in the flow: Charge in launch, Release in complete, the rest feeds the snapshot.
// Threads: one at a time. Nothing allocates but a failing call's message.

#ifndef GPUSHARE_SRC_CORE_STATE_CAPSM_LEDGER_H_
#define GPUSHARE_SRC_CORE_STATE_CAPSM_LEDGER_H_

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"

namespace gpushare::core {

using CapSmUnits = absl::int128;

// lcm(1..kMaxWorkersPerSm): the smallest unit count that every M divides.
inline constexpr int64_t kCapSmUnit = 144403552893600;

// What `workers` workers use of the device. 1 <= workers_per_sm_max <= kMaxWorkersPerSm.
inline CapSmUnits WorkerUnits(int64_t workers, int32_t workers_per_sm_max) {
  return CapSmUnits(workers) * (kCapSmUnit / workers_per_sm_max);
}
inline double CapSmsOf(CapSmUnits units) {
  return static_cast<double>(units) / static_cast<double>(kCapSmUnit);
}

class CapSmLedger {
 public:
  // sm_count 1 to kMaxLedgerSms, sm_granularity 1 to sm_count. `remainder`: the SMs that whole
  // groups leave over (DeviceProfile::Remainder), below sm_count, and whether LC or BE gets them.
  CapSmLedger(int32_t sm_count, int32_t sm_granularity, int32_t remainder, bool remainder_for_lc);

  // `app` is a dense index, 0 to kMaxApps - 1, that is not in use. Uses nothing, reserves nothing.
  void AddApp(int app, AppClass app_class);
  // Drops its reservation or quota. It must use nothing.
  void RemoveApp(int app);

  // LC: a reservation; BE: a quota; 0 removes it. `name` is for messages.
  // Errors: INVALID_ARGUMENT when negative, above the device, or a packed quota smaller than the
  // smallest BE side; RESOURCE_EXHAUSTED when the reservations together would exceed the device.
  // Nothing changes on an error.
  absl::Status Reserve(int app, absl::string_view name, int32_t capsms, bool packed);

  // Takes workers for `app`. 0 workers or more; 1 <= workers_per_sm_max <= kMaxWorkersPerSm.
  void Charge(int app, int32_t workers, int32_t workers_per_sm_max);
  // Gives back what Charge took; parts may come back one by one.
  void Release(int app, int32_t workers, int32_t workers_per_sm_max);

  CapSmUnits UsedBy(int app) const { return app_[Index(app)].used; }
  CapSmUnits ClaimedBy(int app) const { return app_[Index(app)].claim; }
  // As granted: packed amounts rounded to sides. 0: none.
  int32_t ReservationOf(int app) const { return app_[Index(app)].granted; }
  bool IsPacked(int app) const { return app_[Index(app)].packed; }

  CapSmUnits capacity() const { return capacity_; }
  // Unreserved and unused; 0 when something is short.
  CapSmUnits FreeUnits() const { return free_ > 0 ? free_ : CapSmUnits(0); }
  // R_gap: what must be evicted so that every claim fits. 0 when all fits.
  CapSmUnits Shortfall() const { return free_ < 0 ? -free_ : CapSmUnits(0); }
  CapSmUnits UsedUnits() const { return used_; }
  int32_t ReservedCapSms() const { return reserved_capsms_; }
  // Nothing is used: true once every launch was released.
  bool IsIdle() const { return used_ == 0; }

 private:
  struct App {
    CapSmUnits used = 0;
    CapSmUnits claim = 0;
    int32_t granted = 0;  // CapSMs, after rounding
    AppClass app_class = AppClass::kBestEffort;
    bool present = false;
    bool packed = false;
    bool placed = false;         // packed BE: uses some of its side
    bool has_remainder = false;  // its packed reservation or side includes the left-over SMs
  };

  static size_t Index(int app) {
    assert(app >= 0 && app < kMaxApps && "not an app");
    return static_cast<size_t>(app);
  }
  CapSmUnits GroupUnits() const { return CapSmUnits(granularity_) * kCapSmUnit; }
  CapSmUnits ClaimFor(const App& app) const;
  int32_t PackedReservation(const App& app, int32_t capsms, bool& takes_remainder) const;
  // capsms >= smallest_be_side_.
  int32_t PackedQuota(int32_t capsms) const;
  // Whether an LC app beside `app` has a packed reservation.
  bool OthersArePacked(int app) const;
  // The reservation of `capsms`, or all of `left` where no BE side would remain.
  int32_t WithoutGap(int32_t capsms, int32_t left) const;
  void GiveRemainder(App& app, bool has);
  void SettleBeRemainder(App& app);
  // The smallest side that holds what a packed BE app uses, in units; 0 when it uses nothing.
  CapSmUnits BeSide(const App& app) const;
  void SetUsed(App& app, CapSmUnits used);
  void SetClaim(App& app, CapSmUnits claim);

  std::array<App, kMaxApps> app_{};
  CapSmUnits capacity_ = 0;
  CapSmUnits free_ = 0;
  CapSmUnits used_ = 0;
  int32_t sm_count_ = 0;
  int32_t granularity_ = 1;
  int32_t remainder_ = 0;
  bool remainder_for_lc_ = false;
  int32_t smallest_be_side_ = 1;
  int32_t reserved_capsms_ = 0;
  bool remainder_taken_ = false;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_CAPSM_LEDGER_H_
