#include "tools/gpushare/base/text.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace gpushare::tool {

std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string DurationText(double ns) {
  const char* unit = "ns";
  double value = ns;
  for (const char* next : {"us", "ms", "s"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  if (value >= 100 || unit[0] == 'n') return Format("%.0f %s", value, unit);
  return Format(value >= 10 ? "%.1f %s" : "%.2f %s", value, unit);
}

std::string HexText(uint64_t value) { return Format("%016" PRIx64, value); }

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string OneLine(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

}  // namespace gpushare::tool
