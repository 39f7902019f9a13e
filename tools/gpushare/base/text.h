// Small pieces of text: numbers, durations, digests, escapes.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_TEXT_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace gpushare::tool {

// printf into a string, cut at 511 bytes.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// "12.0 us", "3.40 ms", "125 s": three significant digits.
std::string DurationText(double ns);

// "0123456789abcdef" of a 64-bit digest.
std::string HexText(uint64_t value);

// For text and attribute values of HTML.
std::string EscapeHtml(std::string_view text);

// The text as one line without control characters, for text from files.
std::string OneLine(std::string_view text);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_TEXT_H_
