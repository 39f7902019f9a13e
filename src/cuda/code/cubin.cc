// Reads the section headers of a cubin. See cubin.h.

#include "src/cuda/code/cubin.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gpushare::cuda {
namespace {

constexpr absl::string_view kElf64 = "\177ELF\2\1";  // 64 bits, little-endian

// Offsets of fields in the ELF header and in a section header.
constexpr size_t kHeaderBytes = 64;
constexpr size_t kSectionsAt = 0x28;
constexpr size_t kSectionBytesAt = 0x3a;
constexpr size_t kSectionCountAt = 0x3c;
constexpr size_t kNamesIndexAt = 0x3e;
constexpr size_t kSectionBytes = 64;
constexpr size_t kOffsetAt = 0x18;
constexpr size_t kSizeAt = 0x20;

// Variables in memory, with their first values, and those that the host may set.
constexpr absl::string_view kVariables[] = {".nv.global", ".nv.global.init", ".nv.constant3"};

template <class T>
T FieldAt(absl::Span<const char> bytes, size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

absl::Status Broken(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("The image of a function is no cubin: ", what, "."));
}

// `size` bytes from `offset` on; empty where the file does not have them.
absl::Span<const char> Part(absl::Span<const char> file, uint64_t offset, uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return {};
  return file.subspan(offset, size);
}

}  // namespace

absl::StatusOr<std::string> VariablesOf(absl::Span<const char> cubin) {
  const absl::string_view text(cubin.data(), cubin.size());
  if (text.substr(0, kElf64.size()) != kElf64) return Broken("it is no ELF file of 64 bits");
  if (cubin.size() < kHeaderBytes) return Broken("its header is cut off");
  const size_t count = FieldAt<uint16_t>(cubin, kSectionCountAt);
  const size_t names_index = FieldAt<uint16_t>(cubin, kNamesIndexAt);
  if (FieldAt<uint16_t>(cubin, kSectionBytesAt) != kSectionBytes) {
    return Broken("its section headers have another size");
  }
  const absl::Span<const char> headers =
      Part(cubin, FieldAt<uint64_t>(cubin, kSectionsAt), count * kSectionBytes);
  if (headers.empty() || names_index >= count) return Broken("it has no section headers");
  const auto section = [&](size_t index) {
    return headers.subspan(index * kSectionBytes, kSectionBytes);
  };
  const absl::Span<const char> names =
      Part(cubin, FieldAt<uint64_t>(section(names_index), kOffsetAt),
           FieldAt<uint64_t>(section(names_index), kSizeAt));
  for (size_t i = 0; i < count; ++i) {
    const size_t at = FieldAt<uint32_t>(section(i), 0);
    if (at >= names.size()) return Broken("a section has no name");
    const absl::Span<const char> rest = names.subspan(at);
    const void* const end = std::memchr(rest.data(), 0, rest.size());
    if (end == nullptr) return Broken("a section's name has no end");
    const absl::string_view name(rest.data(),
                                 static_cast<size_t>(static_cast<const char*>(end) - rest.data()));
    if (FieldAt<uint64_t>(section(i), kSizeAt) == 0) continue;
    for (const absl::string_view variables : kVariables) {
      if (name == variables) return std::string(name);
    }
  }
  return std::string();
}

}  // namespace gpushare::cuda
