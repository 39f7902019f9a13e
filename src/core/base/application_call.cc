// Describes exceptions of the application's functions. See application_call.h.

#include "src/core/base/application_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <typeinfo>

namespace gpushare::core {
namespace {

// A message that is longer is cut, so that it fits in a log line.
constexpr size_t kWhatBytesMax = 400;

std::string CurrentTypeName() {
  const std::type_info* const type = ::abi::__cxa_current_exception_type();
  if (type == nullptr) return "unknown";  // of another language
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      ::abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return name == nullptr ? type->name() : name.get();
}

// One line without a full stop at its end, because it becomes the end of a sentence.
std::string OneLine(const char* what) {
  std::string text(what, ::strnlen(what, kWhatBytesMax));
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string Describe() {
  try {
    throw;
  } catch (const std::exception& error) {
    return CurrentTypeName() + ": " + OneLine(error.what());
  } catch (...) {
    return "a value of type " + CurrentTypeName();
  }
}

}  // namespace

std::string DescribeException() noexcept {
  try {
    return Describe();
  } catch (...) {  // no memory for the text; this one is short enough to need none
    return "an exception";
  }
}

}  // namespace gpushare::core
