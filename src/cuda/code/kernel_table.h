// What registration left of each kernel, by the kernel's identifier.
//
// Invariants: an entry that Find returns never moves, and stays until its kernel is erased.
// Threads: one at a time puts and erases; any finds.

#ifndef GPUSHARE_SRC_CUDA_CODE_KERNEL_TABLE_H_
#define GPUSHARE_SRC_CUDA_CODE_KERNEL_TABLE_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"

namespace gpushare::cuda {

// INVALID_ARGUMENT for an identifier that no table holds. `what` begins the message: "Kernel".
inline absl::Status CheckKernelId(absl::string_view what, core::KernelId id) {
  if (id.value > 0 && id.value <= core::kMaxKernels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " identifier ", id.value,
                                                 " is not between 1 and ", core::kMaxKernels, "."));
}

template <class Prepared>
class KernelTable {
 public:
  // The kernel's entry; null if it has none.
  Prepared* Find(core::KernelId id) const {
    return id.value < entries_.size() ? entries_[id.value].get() : nullptr;
  }
  // `id` passed CheckKernelId.
  void Put(core::KernelId id, std::unique_ptr<Prepared> entry) {
    entries_[id.value] = std::move(entry);
  }
  void Erase(core::KernelId id) {
    if (id.value < entries_.size()) entries_[id.value].reset();
  }

  template <class Function>
  void ForEach(Function&& function) const {
    for (const std::unique_ptr<Prepared>& entry : entries_) {
      if (entry != nullptr) function(*entry);
    }
  }

 private:
  std::array<std::unique_ptr<Prepared>, core::kMaxKernels + 1> entries_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_KERNEL_TABLE_H_
