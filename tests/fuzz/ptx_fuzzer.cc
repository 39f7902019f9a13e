// Any bytes as PTX: an answer, and twins of what is accepted parse again and are bounded.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/ptx/twin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const gpushare::ptx::Twin twin =
      gpushare::ptx::Transform(text, {}, {.workers = true, .slice = true});
  if (!twin.ok()) {
    if (twin.refusal.message.empty()) std::abort();
    return 0;
  }
  // `ret;` grows most, to five times its size in each of the two twins.
  if (twin.text.size() > 12 * size + size_t{64} * 1024) std::abort();
  if (gpushare::ptx::Entries(twin.text).size() != 3) std::abort();
  if (gpushare::ptx::Transform(text, {}, {}).text != text) std::abort();
  return 0;
}
