// The rows that kernels have in a table of the planner, shared by apps.
//
// A table has fewer rows than a runtime has kernels. While it has room, each kernel gets a row with
// its first task. Then a kernel takes the row that was longest without a new task of the app that
// has the most rows, so an app with many kernels leaves the others their share. It takes one of its
// own app only if that had none for kRowKeptNs: an app that uses more kernels than its share in
// turns would have its rows made anew with each task.
//
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_LAUNCHES_KERNEL_ROWS_H_
#define GPUSHARE_SRC_CORE_STATE_LAUNCHES_KERNEL_ROWS_H_

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

template <int N>
class KernelRows {
 public:
  static constexpr int32_t kNone = -1;

  int32_t size() const { return kernels_.size(); }
  const KernelDesc& kernel(int32_t row) const { return *kernels_[row]; }
  absl::Span<const KernelDesc* const> span() const { return kernels_.span(); }
  // The row of the kernel; kNone: it has none.
  int32_t RowOf(KernelId kernel) const { return row_[kernel.value] - 1; }
  int32_t RowOf(const KernelDesc* kernel) const {
    return kernel == nullptr ? kNone : RowOf(kernel->id);
  }

  // A task of the app uses the kernel now. Returns its row, which is new, or kNone. `pinned`: a row
  // that stays, or kNone.
  int32_t Use(const KernelDesc& kernel, uint32_t app_slot, TimeNs now_ns, int32_t pinned = kNone) {
    int32_t row = RowOf(kernel.id);
    if (row == kNone) row = kernels_.full() ? RowFor(app_slot, now_ns, pinned) : kernels_.size();
    if (row == kNone) return kNone;
    if (row == kernels_.size()) {
      kernels_.Add(&kernel);
    } else if (kernels_[row] != &kernel) {
      row_[kernels_[row]->id.value] = 0;
      kernels_[row] = &kernel;
      taken_.set(static_cast<size_t>(row));
    }
    const bool is_new = row_[kernel.id.value] == 0;
    row_[kernel.id.value] = static_cast<int16_t>(row + 1);
    Stamp& stamp = stamps_[static_cast<size_t>(row)];
    if (is_new) stamp.app_slot = app_slot;
    stamp.used_ns = now_ns;
    return row;
  }

  // The kernel's slot has another one: so has its row.
  void Renew(KernelId kernel) {
    if (const int32_t row = RowOf(kernel); row != kNone) taken_.set(static_cast<size_t>(row));
  }

  // Rows that another kernel has taken since the last call of ForgetTaken.
  bool AnyTaken() const { return taken_.any(); }
  bool IsTaken(int32_t row) const { return taken_.test(static_cast<size_t>(row)); }
  void ForgetTaken() { taken_.reset(); }

 private:
  struct Stamp {
    uint32_t app_slot = 0;  // whose task came first
    TimeNs used_ns = 0;
  };

  int32_t RowFor(uint32_t app_slot, TimeNs now_ns, int32_t pinned) const {
    std::array<int32_t, kMaxApps> rows{};
    for (const Stamp& stamp : stamps_) ++rows[stamp.app_slot];
    ++rows[app_slot];  // with the one that it asks for
    const auto most = std::max_element(rows.begin(), rows.end());
    const bool own = rows[app_slot] == *most;
    const auto from = own ? app_slot : static_cast<uint32_t>(most - rows.begin());
    int32_t oldest = kNone;
    for (int32_t row = 0; row < N; ++row) {
      const Stamp& stamp = stamps_[static_cast<size_t>(row)];
      if (stamp.app_slot != from || row == pinned) continue;
      if (own && now_ns - stamp.used_ns < kRowKeptNs) continue;
      const bool older =
          oldest == kNone || stamp.used_ns < stamps_[static_cast<size_t>(oldest)].used_ns;
      if (older) oldest = row;
    }
    return oldest;
  }

  BoundedList<const KernelDesc*, N> kernels_;
  std::array<int16_t, kMaxKernels + 1> row_{};  // by KernelId, 0: none, else row + 1
  std::array<Stamp, N> stamps_{};
  std::bitset<N> taken_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LAUNCHES_KERNEL_ROWS_H_
