// Checks of a problem before it is packed. The first one that fails keeps its sentence; those after
// it are skipped, so that a caller writes them one below the other.

#ifndef GPUSHARE_KERNELS_INTERFACE_CHECKS_H_
#define GPUSHARE_KERNELS_INTERFACE_CHECKS_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "kernels/status.h"

namespace gpushare::kernels {

class Checks {
 public:
  explicit Checks(const char* kernel) : kernel_(kernel) {}

  // The pointer is not null, and a multiple of `alignment_bytes`.
  void Pointer(const char* field, const void* pointer, uint32_t alignment_bytes);
  // The size is within both limits, and a multiple of `multiple`.
  void Size(const char* field, int64_t size, int64_t least, int64_t most, int64_t multiple = 1);
  // The product of positive sizes is at most `most`, and a multiple. Returns it, or 0.
  uint64_t Product(const char* what, std::initializer_list<int64_t> sizes, uint64_t most,
                   uint64_t multiple = 1);
  // Any other condition; `sentence` goes on after the kernel's name.
  void Require(bool condition, const char* sentence);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  void Refuse(const std::string& rest);

  const char* kernel_;
  Status status_;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_INTERFACE_CHECKS_H_
