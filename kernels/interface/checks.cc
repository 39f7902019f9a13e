#include "kernels/interface/checks.h"

namespace gpushare::kernels {

void Checks::Refuse(const std::string& rest) {
  if (ok()) status_ = InvalidOption(std::string("The kernel '") + kernel_ + "' " + rest);
}

void Checks::Pointer(const char* field, const void* pointer, uint32_t alignment_bytes) {
  if (pointer == nullptr) {
    Refuse(std::string("needs '") + field + "', and it is null.");
    return;
  }
  const auto past = reinterpret_cast<uintptr_t>(pointer) % alignment_bytes;
  if (past != 0) {
    Refuse(std::string("needs '") + field + "' at a multiple of " +
           std::to_string(alignment_bytes) + " bytes, and it is " + std::to_string(past) +
           " bytes past one.");
  }
}

void Checks::Size(const char* field, int64_t size, int64_t least, int64_t most, int64_t multiple) {
  if (size >= least && size <= most && size % multiple == 0) return;
  Refuse(std::string("takes '") + field + "' from " + std::to_string(least) + " to " +
         std::to_string(most) +
         (multiple > 1 ? " in multiples of " + std::to_string(multiple) : std::string()) +
         ", and it is " + std::to_string(size) + ".");
}

uint64_t Checks::Product(const char* what, std::initializer_list<int64_t> sizes, uint64_t most,
                         uint64_t multiple) {
  uint64_t product = 1;
  for (const int64_t size : sizes) {
    if (!ok()) return 0;
    if (static_cast<uint64_t>(size) > most / product) {
      Refuse(std::string("takes at most ") + std::to_string(most) + " " + what +
             ", and there are more.");
      return 0;
    }
    product *= static_cast<uint64_t>(size);
  }
  if (ok() && product % multiple != 0) {
    Refuse(std::string("takes ") + what + " in multiples of " + std::to_string(multiple) +
           ", and there are " + std::to_string(product) + ".");
  }
  return ok() ? product : 0;
}

void Checks::Require(bool condition, const char* sentence) {
  if (!condition) Refuse(sentence);
}

}  // namespace gpushare::kernels
