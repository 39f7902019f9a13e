// Reads the section headers of a cubin. See cubin.h.

#include "src/cuda/code/cubin.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gpushare::cuda {
namespace {

constexpr absl::string_view kElf64 = "\177ELF\2\1";  // 64 bits, little-endian

// Offsets of fields in the ELF header, in a section header and in a symbol.
constexpr size_t kHeaderBytes = 64;
constexpr size_t kSegmentsAt = 0x20;
constexpr size_t kSegmentBytesAt = 0x36;
constexpr size_t kSegmentCountAt = 0x38;
constexpr size_t kSegmentBytes = 56;
constexpr size_t kSegmentOffsetAt = 0x08;
constexpr size_t kSegmentSizeAt = 0x20;  // in the file
constexpr size_t kSectionsAt = 0x28;
constexpr size_t kSectionBytesAt = 0x3a;
constexpr size_t kSectionCountAt = 0x3c;
constexpr size_t kNamesIndexAt = 0x3e;
constexpr size_t kSectionBytes = 64;
constexpr size_t kTypeAt = 0x04;
constexpr size_t kOffsetAt = 0x18;
constexpr size_t kSizeAt = 0x20;
constexpr size_t kLinkAt = 0x28;
constexpr size_t kSymbolBytes = 24;
constexpr size_t kSymbolTypeAt = 0x04;  // the lower four bits
constexpr size_t kSymbolSectionAt = 0x06;

constexpr uint32_t kNull = 0;  // a section's type, as the next two
constexpr uint32_t kSymbolTable = 2;
constexpr uint32_t kNoBits = 8;        // memory without bytes in the file
constexpr uint8_t kSectionSymbol = 3;  // a symbol's type: the section itself

// Memory without first values, and memory that the host may set.
constexpr std::array<absl::string_view, 2> kVariables = {".nv.global", ".nv.constant3"};
// Memory with first values: variables, or what compilers make of strings and tables.
constexpr absl::string_view kWithValues = ".nv.global.init";
constexpr std::array<absl::string_view, 7> kConstants = {
    "assertFile_", "assertFunc_", "assertMessage_", "printfFormat_", "_$_str", "$str", "__cudart_"};

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

// The text at an offset of a table of names; nothing where it has no end.
std::optional<absl::string_view> TextAt(absl::Span<const char> names, size_t at) {
  if (at >= names.size()) return std::nullopt;
  const char* const begin = names.data() + at;
  const void* const end = std::memchr(begin, 0, names.size() - at);
  if (end == nullptr) return std::nullopt;
  return absl::string_view(begin, static_cast<size_t>(static_cast<const char*>(end) - begin));
}

class Sections {
 public:
  static absl::StatusOr<Sections> Of(absl::Span<const char> file) {
    if (file.size() < kHeaderBytes) return Broken("its header is cut off");
    if (FieldAt<uint16_t>(file, kSectionBytesAt) != kSectionBytes) {
      return Broken("its section headers have another size");
    }
    const size_t count = FieldAt<uint16_t>(file, kSectionCountAt);
    const size_t names = FieldAt<uint16_t>(file, kNamesIndexAt);
    const absl::Span<const char> headers =
        Part(file, FieldAt<uint64_t>(file, kSectionsAt), count * kSectionBytes);
    if (headers.empty() || names >= count) return Broken("it has no section headers");
    Sections sections(file, headers, count);
    sections.names_ = sections.Bytes(names);
    return sections;
  }

  size_t count() const { return count_; }
  uint32_t Type(size_t index) const { return FieldAt<uint32_t>(Header(index), kTypeAt); }
  uint64_t Size(size_t index) const { return FieldAt<uint64_t>(Header(index), kSizeAt); }
  std::optional<absl::string_view> Name(size_t index) const {
    return TextAt(names_, FieldAt<uint32_t>(Header(index), 0));
  }
  absl::Span<const char> Bytes(size_t index) const {
    return Part(file_, FieldAt<uint64_t>(Header(index), kOffsetAt), Size(index));
  }
  // Of a table of symbols: their names.
  absl::Span<const char> LinkedBytes(size_t index) const {
    const size_t link = FieldAt<uint32_t>(Header(index), kLinkAt);
    return link < count_ ? Bytes(link) : absl::Span<const char>();
  }

 private:
  Sections(absl::Span<const char> file, absl::Span<const char> headers, size_t count)
      : file_(file), headers_(headers), count_(count) {}
  absl::Span<const char> Header(size_t index) const {
    return headers_.subspan(index * kSectionBytes, kSectionBytes);
  }

  absl::Span<const char> file_;
  absl::Span<const char> headers_;
  size_t count_;
  absl::Span<const char> names_;
};

// The driver gets no size, so that everything that the headers name must be in the file.
absl::Status CheckWhole(absl::Span<const char> file, const Sections& sections) {
  for (size_t i = 0; i < sections.count(); ++i) {
    if (sections.Type(i) == kNull || sections.Type(i) == kNoBits || sections.Size(i) == 0) continue;
    if (sections.Bytes(i).empty()) return Broken("a section lies outside of it");
  }
  const size_t count = FieldAt<uint16_t>(file, kSegmentCountAt);
  if (count == 0) return absl::OkStatus();
  if (FieldAt<uint16_t>(file, kSegmentBytesAt) != kSegmentBytes) {
    return Broken("its segment headers have another size");
  }
  const absl::Span<const char> headers =
      Part(file, FieldAt<uint64_t>(file, kSegmentsAt), count * kSegmentBytes);
  if (headers.empty()) return Broken("its segment headers lie outside of it");
  for (size_t i = 0; i < count; ++i) {
    const absl::Span<const char> header = headers.subspan(i * kSegmentBytes, kSegmentBytes);
    const auto size = FieldAt<uint64_t>(header, kSegmentSizeAt);
    if (size == 0) continue;
    if (Part(file, FieldAt<uint64_t>(header, kSegmentOffsetAt), size).empty()) {
      return Broken("a segment lies outside of it");
    }
  }
  return absl::OkStatus();
}

bool IsConstant(absl::string_view name) {
  return std::any_of(kConstants.begin(), kConstants.end(), [name](absl::string_view constant) {
    return name.substr(0, constant.size()) == constant;
  });
}

// The first symbol of section `home` that is no constant; the section where nothing names its
// content. Empty: all are constants.
std::string VariableAmong(const Sections& sections, size_t home) {
  bool named = false;
  for (size_t i = 0; i < sections.count(); ++i) {
    if (sections.Type(i) != kSymbolTable) continue;
    const absl::Span<const char> symbols = sections.Bytes(i);
    for (size_t at = 0; at + kSymbolBytes <= symbols.size(); at += kSymbolBytes) {
      const absl::Span<const char> symbol = symbols.subspan(at, kSymbolBytes);
      if (FieldAt<uint16_t>(symbol, kSymbolSectionAt) != home) continue;
      if ((FieldAt<uint8_t>(symbol, kSymbolTypeAt) & 0xf) == kSectionSymbol) continue;
      const auto name = TextAt(sections.LinkedBytes(i), FieldAt<uint32_t>(symbol, 0));
      if (!name.has_value()) return std::string(kWithValues);
      if (!IsConstant(*name)) return std::string(*name);
      named = true;
    }
  }
  return named ? std::string() : std::string(kWithValues);
}

}  // namespace

absl::StatusOr<std::string> VariableOf(absl::Span<const char> cubin) {
  const absl::string_view text(cubin.data(), cubin.size());
  if (text.substr(0, kElf64.size()) != kElf64) return Broken("it is no ELF file of 64 bits");
  absl::StatusOr<Sections> sections = Sections::Of(cubin);
  if (!sections.ok()) return sections.status();
  if (absl::Status status = CheckWhole(cubin, *sections); !status.ok()) return status;
  for (size_t i = 0; i < sections->count(); ++i) {
    const std::optional<absl::string_view> name = sections->Name(i);
    if (!name.has_value()) return Broken("a section has no name");
    if (sections->Size(i) == 0) continue;
    if (std::find(kVariables.begin(), kVariables.end(), *name) != kVariables.end()) {
      return std::string(*name);
    }
    if (*name != kWithValues) continue;
    std::string variable = VariableAmong(*sections, i);
    if (!variable.empty()) return variable;
  }
  return std::string();
}

}  // namespace gpushare::cuda
