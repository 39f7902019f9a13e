// Fuzzes the scenario parser and the reader of arrival traces: any bytes end in a parsed value or
// in an InputError with one line of text.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/scenario/arrivals.h"
#include "tools/gpushare/scenario/scenario.h"

namespace {

void RequireOneSentence(const std::string& message) {
  if (message.empty() || message.back() != '.') std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    gpushare::tool::ParseScenario(text, "fuzz.json");
  } catch (const gpushare::tool::InputError& error) {
    RequireOneSentence(error.what());
  }
  try {
    gpushare::tool::ParseTrace(text, "fuzz.csv", {});
  } catch (const gpushare::tool::InputError& error) {
    RequireOneSentence(error.what());
  }
  return 0;
}
