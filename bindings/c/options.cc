// Reading and writing of the caller's structs; see options.h.

#include "bindings/c/options.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"

namespace gpushare::abi {
namespace {

constexpr size_t kTextBytesMax = 4096;

absl::Status CheckSize(absl::string_view name, uint32_t size, uint32_t first_size) {
  if (size < first_size) {
    return absl::InvalidArgumentError(absl::StrCat(name, ".struct_size is ", size,
                                                   ", and its first version has ", first_size,
                                                   " bytes: was it made with its _INIT macro?"));
  }
  if (size > kStructSizeMax) {
    return absl::InvalidArgumentError(absl::StrCat(name, ".struct_size is ", size,
                                                   ", and no version of it is larger than ",
                                                   kStructSizeMax, " bytes."));
  }
  return absl::OkStatus();
}

// The length of the UTF-8 character that `text` begins with, 0: it begins with none. Shortest forms
// only; neither surrogates nor numbers above U+10FFFF.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xC2   ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool too_large = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

uint32_t SizeOf(const void* given) {
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  return size;
}

}  // namespace

absl::Status ReadStruct(absl::string_view name, const void* given, uint32_t first_size,
                        uint32_t known_size, void* out) {
  if (given == nullptr) return CheckNotNull(name, given);
  const uint32_t size = SizeOf(given);
  if (size < first_size || size > kStructSizeMax) return CheckSize(name, size, first_size);
  if (size >= known_size) {
    std::memcpy(out, given, known_size);
  } else {
    std::memset(out, 0, known_size);
    std::memcpy(out, given, size);
  }
  std::memcpy(out, &known_size, sizeof(known_size));
  const auto* const bytes = static_cast<const unsigned char*>(given);
  for (uint32_t i = known_size; i < size; ++i) {
    if (bytes[i] != 0) {
      return absl::UnimplementedError(absl::StrCat(name, " uses a field at byte ", i,
                                                   ", and this library knows its first ",
                                                   known_size, " bytes."));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteStruct(absl::string_view name, const void* full, uint32_t first_size,
                         uint32_t known_size, void* given) {
  absl::Status status = CheckStructSize(name, given, first_size);
  if (!status.ok()) return status;
  const uint32_t size = SizeOf(given);
  const uint32_t filled = std::min(size, known_size);
  std::memset(given, 0, size);
  std::memcpy(given, full, filled);
  std::memcpy(given, &filled, sizeof(filled));
  return absl::OkStatus();
}

absl::Status CheckStructSize(absl::string_view name, const void* given, uint32_t first_size) {
  if (given == nullptr) return CheckNotNull(name, given);
  return CheckSize(name, SizeOf(given), first_size);
}

absl::Status CheckBool(absl::string_view field, gpushare_bool value) {
  if (value == 0 || value == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", and it is either 0 or 1."));
}

absl::Status CheckReserved(absl::string_view where, int64_t value, absl::string_view field) {
  if (value == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(where, ".", field, " is ", value, ", and this library knows only 0."));
}

absl::Status CheckNotNull(absl::string_view what, const void* pointer) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is null."));
}

absl::Status CheckName(absl::string_view what, const char* name) {
  if (name == nullptr) return CheckNotNull(what, name);
  const size_t length = ::strnlen(name, core::kMaxNameBytes);
  if (length == 0) return absl::InvalidArgumentError(absl::StrCat(what, " is empty."));
  if (length == core::kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is longer than ", core::kMaxNameBytes - 1, " bytes."));
  }
  if (!IsUtf8(absl::string_view(name, length))) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " is not UTF-8: '", absl::CHexEscape(absl::string_view(name, length)), "'."));
  }
  return absl::OkStatus();
}

absl::Status CheckText(absl::string_view what, const char* text) {
  if (text == nullptr) return CheckNotNull(what, text);
  const size_t length = ::strnlen(text, kTextBytesMax);
  if (length == 0) return absl::InvalidArgumentError(absl::StrCat(what, " is empty."));
  if (length == kTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is longer than ", kTextBytesMax - 1, " bytes."));
  }
  return absl::OkStatus();
}

absl::Status CheckDeadline(int64_t deadline_ns) {
  if (deadline_ns >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("The deadline is ", deadline_ns, " ns, and a time is not negative."));
}

absl::Status CopyText(absl::string_view text, char* buffer, size_t buffer_size_bytes,
                      size_t* out_size_bytes) {
  if (out_size_bytes == nullptr) return CheckNotNull("out_size_bytes", out_size_bytes);
  *out_size_bytes = text.size() + 1;
  if (buffer == nullptr) {
    if (buffer_size_bytes == 0) return absl::OkStatus();
    return CheckNotNull("buffer", buffer);
  }
  if (buffer_size_bytes > 0) {
    const size_t length = std::min(text.size(), buffer_size_bytes - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
  }
  if (buffer_size_bytes > text.size()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("The buffer has ", buffer_size_bytes,
                                            " bytes, and the text with its NUL has ",
                                            text.size() + 1, "."));
}

}  // namespace gpushare::abi
