#include "benchmarks/harness/json.h"

#include <cmath>
#include <cstdio>

namespace gpushare::benchmarks {
namespace {

// Text of the kernels may come from anywhere: what is not UTF-8 is replaced.
std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The members alone, without the braces.
std::string MembersOf(const Json& object) {
  const std::string text = TextOf(object);
  return text.substr(1, text.size() - 2);
}

}  // namespace

Json Rounded(double value, int decimals) {
  if (!std::isfinite(value)) return nullptr;
  const double scale = std::pow(10, decimals);
  return std::round(value * scale) / scale;
}

void PrintLine(const Json& object) {
  std::printf("%s\n", TextOf(object).c_str());
  std::fflush(stdout);
}

Report::Report(const Json& head, const std::string& rows) {
  std::printf("{%s,\n  \"%s\": [", MembersOf(head).c_str(), rows.c_str());
  std::fflush(stdout);
}

void Report::Row(const Json& row) {
  std::printf("%s\n    %s", first_ ? "" : ",", TextOf(row).c_str());
  std::fflush(stdout);
  first_ = false;
}

void Report::End(const Json& tail) {
  const std::string members = MembersOf(tail);
  std::printf("]%s%s}\n", members.empty() ? "" : ",\n  ", members.c_str());
  std::fflush(stdout);
}

}  // namespace gpushare::benchmarks
