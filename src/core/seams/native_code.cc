// The native code behind a status. See native_code.h.

#include "src/core/seams/native_code.h"

#include <cstring>
#include <new>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace gpushare::core {
namespace {

constexpr char kPayload[] = "gpushare/native_code";

}  // namespace

absl::Status WithNativeCode(absl::Status status, int32_t code) {
  char bytes[sizeof(code)];
  std::memcpy(bytes, &code, sizeof(code));
  try {
    status.SetPayload(kPayload, absl::Cord(absl::string_view(bytes, sizeof(bytes))));
  } catch (const std::bad_alloc&) {  // the status alone still says what to do
  }
  return status;
}

int32_t NativeCodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  int32_t code = 0;
  if (!payload.has_value() || payload->size() != sizeof(code)) return 0;
  const std::string bytes(*payload);
  std::memcpy(&code, bytes.data(), sizeof(code));
  return code;
}

}  // namespace gpushare::core
