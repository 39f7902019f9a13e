// An array of the caller's structs, read one by one.
//
// The distance from one struct to the next is the struct_size of the first, because the caller's
// header may be older or newer than this library. Threads: any; pure.

#ifndef GPUSHARE_BINDINGS_C_PLACEMENT_STRUCT_ARRAY_H_
#define GPUSHARE_BINDINGS_C_PLACEMENT_STRUCT_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bindings/c/options.h"
#include "src/core/base/status.h"

namespace gpushare::abi {

template <class Struct>
struct StructArray {
  const Struct* first = nullptr;
  size_t count = 0;
};

template <class Struct>
class StructReader {
 public:
  // `name` is the array's, for messages.
  StructReader(absl::string_view name, const StructArray<Struct>& array)
      : name_(name), array_(array) {}

  // Before the first Read.
  absl::Status Check(size_t limit) {
    if (array_.count == 0) return absl::OkStatus();
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull(name_, array_.first));
    if (array_.count > limit) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, " has ", array_.count, " entries, and the limit is ", limit, "."));
    }
    std::memcpy(&stride_, array_.first, sizeof(stride_));
    return absl::OkStatus();
  }

  size_t count() const { return array_.count; }
  std::string NameOf(size_t i) const { return absl::StrCat(name_, "[", i, "]"); }

  absl::Status Read(size_t i, Struct* out) const {
    const auto* const at = reinterpret_cast<const unsigned char*>(array_.first) + i * stride_;
    uint32_t size = 0;
    std::memcpy(&size, at, sizeof(size));
    if (size != stride_) {
      return absl::InvalidArgumentError(absl::StrCat(
          NameOf(i), ".struct_size is ", size, ", and that of ", NameOf(0), " is ", stride_,
          ": the structs of an array have one size, from their _INIT macro."));
    }
    return ReadStruct(NameOf(i), at, kFirstSize<Struct>, sizeof(Struct), out);
  }

 private:
  const absl::string_view name_;
  const StructArray<Struct> array_;
  uint32_t stride_ = 0;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_PLACEMENT_STRUCT_ARRAY_H_
