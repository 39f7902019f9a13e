// Structs with a struct_size, in and out of the library (the C ABI's rules in kernels.h).

#ifndef GPUSHARE_KERNELS_INTERFACE_STRUCTS_H_
#define GPUSHARE_KERNELS_INTERFACE_STRUCTS_H_

#include <gpushare/kernels.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/interface/errors.h"

namespace gpushare::kernels {

// A larger struct_size is taken for memory that was never initialised.
constexpr uint32_t kStructSizeMax = 4096;

// Whether the caller's struct is there, and at least as large as in version 0: today's size.
template <class Struct>
gpushare_kernels_status CheckStruct(const char* name, const Struct* given) {
  if (given == nullptr) {
    return Fail(GPUSHARE_KERNELS_INVALID_ARGUMENT,
                std::string("The pointer to ") + name + " is null.");
  }
  if (given->struct_size < sizeof(Struct) || given->struct_size > kStructSizeMax) {
    return Fail(GPUSHARE_KERNELS_INVALID_ARGUMENT,
                std::string("The struct_size of ") + name + " is " +
                    std::to_string(given->struct_size) + ", and it is from " +
                    std::to_string(sizeof(Struct)) + " to " + std::to_string(kStructSizeMax) + ".");
  }
  return GPUSHARE_KERNELS_OK;
}

// As CheckStruct, and the tail that this library does not know is zero.
template <class Struct>
gpushare_kernels_status ReadStruct(const char* name, const Struct* given, Struct* read) {
  const gpushare_kernels_status status = CheckStruct(name, given);
  if (status != GPUSHARE_KERNELS_OK) return status;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  const auto is_set = [](unsigned char byte) { return byte != 0; };
  if (std::any_of(bytes + sizeof(Struct), bytes + given->struct_size, is_set)) {
    return Fail(
        GPUSHARE_KERNELS_UNIMPLEMENTED,
        std::string("A field of ") + name + " behind those that this library knows is not 0.");
  }
  std::memcpy(read, given, sizeof(Struct));
  return GPUSHARE_KERNELS_OK;
}

// `out` has passed CheckStruct.
template <class Struct>
void WriteStruct(Struct made, Struct* out) {
  made.struct_size = static_cast<uint32_t>(sizeof(Struct));
  std::memcpy(out, &made, sizeof(Struct));
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_INTERFACE_STRUCTS_H_
