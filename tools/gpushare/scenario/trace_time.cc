// See trace_time.h.

#include "tools/gpushare/scenario/trace_time.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace gpushare::tool {

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

std::optional<int64_t> Digits(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || text[0] == '-') {
    return std::nullopt;
  }
  return value;
}

// Days since 1970-01-01 of a date in the Gregorian calendar (Hinnant's algorithm).
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

// Nanoseconds of ".9799600": exact, where a double would lose the last digits.
std::optional<int64_t> FractionNs(std::string_view digits) {
  if (digits.empty() || digits.size() > 18) return std::nullopt;
  std::string nine(digits.substr(0, 9));
  nine.resize(9, '0');
  if (!Digits(digits)) return std::nullopt;
  return Digits(nine);
}

constexpr bool IsLeap(int64_t year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int64_t DaysOfMonth(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[static_cast<size_t>(month - 1)] + (month == 2 && IsLeap(year) ? 1 : 0);
}

// Takes "Z", "+05:30", "+0530" or "-05" off the end of a time stamp; the offset in nanoseconds.
// None: what looks like an offset is none.
std::optional<int64_t> TakeOffsetNs(std::string_view& text) {
  constexpr size_t kDateAndTime = 19;
  if (!text.empty() && text.back() == 'Z') {
    text.remove_suffix(1);
    return 0;
  }
  const size_t sign = text.find_first_of("+-", kDateAndTime);
  if (text.size() <= kDateAndTime || sign == std::string_view::npos) return 0;
  const std::string_view offset = text.substr(sign + 1);
  const size_t colon = offset.size() == 5 && offset[2] == ':' ? 1 : 0;
  if (offset.size() != 2 && offset.size() != 4 + colon) return std::nullopt;
  const auto hours = Digits(offset.substr(0, 2));
  const auto minutes =
      offset.size() > 2 ? Digits(offset.substr(2 + colon)) : std::optional<int64_t>(0);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const int64_t ns = (*hours * 60 + *minutes) * 60 * kSecondNs;
  const bool west = text[sign] == '-';
  text = text.substr(0, sign);
  return west ? -ns : ns;
}

std::optional<int64_t> TimeStampNs(std::string_view text) {
  const std::optional<int64_t> offset_ns = TakeOffsetNs(text);
  if (!offset_ns) return std::nullopt;
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const auto year = Digits(text.substr(0, 4));
  const auto month = Digits(text.substr(5, 2));
  const auto day = Digits(text.substr(8, 2));
  const auto hour = Digits(text.substr(11, 2));
  const auto minute = Digits(text.substr(14, 2));
  const auto second = Digits(text.substr(17, 2));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*month < 1 || *month > 12 || *day < 1 || *hour > 23 || *minute > 59 || *second > 60 ||
      *year > 2200 || *year < 1970 || *day > DaysOfMonth(*year, *month)) {
    return std::nullopt;
  }
  std::optional<int64_t> fraction = 0;
  if (text.size() > 19) {
    fraction = text[19] == '.' ? FractionNs(text.substr(20)) : std::nullopt;
    if (!fraction) return std::nullopt;
  }
  const int64_t days = DaysFromCivil(*year, *month, *day);
  return ((days * 24 + *hour) * 3600 + *minute * 60 + *second) * kSecondNs + *fraction - *offset_ns;
}

}  // namespace

std::optional<int64_t> NumberNs(double value, int64_t unit_ns) {
  const double ns = value * static_cast<double>(unit_ns);
  if (!std::isfinite(ns) || ns < 0 || ns > 9e18) return std::nullopt;
  return static_cast<int64_t>(std::llround(ns));
}

std::optional<int64_t> TimeNs(std::string_view text, int64_t unit_ns) {
  if (const auto stamp = TimeStampNs(text)) return stamp;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return NumberNs(value, unit_ns);
}

}  // namespace gpushare::tool
