// Any bytes as PTX: an answer, and twins of what is accepted parse again and are bounded. The text
// is fused with itself; where it has the line `//&`, what stands before it with what stands behind.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/ptx/fused.h"
#include "src/ptx/twin.h"

namespace {

void MakeTwins(std::string_view text) {
  const gpushare::ptx::Twin twin =
      gpushare::ptx::Transform(text, {}, {.workers = true, .slice = true});
  if (!twin.ok()) {
    if (twin.refusal.message.empty()) std::abort();
    return;
  }
  // `ret;` grows most, to five times its size in each of the two twins.
  if (twin.text.size() > 12 * text.size() + size_t{64} * 1024) std::abort();
  if (gpushare::ptx::Entries(twin.text).size() != 3) std::abort();
  if (gpushare::ptx::Transform(text, {}, {}).text != text) std::abort();
}

void MakeFusedTwin(std::string_view text) {
  constexpr std::string_view kBetween = "//&\n";
  const size_t cut = text.find(kBetween);
  const bool two = cut != std::string_view::npos;
  const std::array<uint32_t, 3> block = {32 * (1 + static_cast<uint32_t>(text.size() % 2)), 1, 1};
  const gpushare::ptx::FusedPart first = {
      .text = text.substr(0, cut), .block = block, .copies = 2, .registers = 40};
  const gpushare::ptx::FusedPart second = {
      .text = two ? text.substr(cut + kBetween.size()) : text,
      .block = block,
      .dynamic_shared_bytes = static_cast<uint32_t>(text.size() % 1000),
      .registers = 32};
  const bool moves = text.size() % 3 == 0;
  const gpushare::ptx::FusedTwin twin =
      gpushare::ptx::Fuse(first, second, {.move_registers = moves, .blocks_per_sm = 2});
  if (!twin.ok()) {
    if (twin.refusal.message.empty() || !twin.text.empty()) std::abort();
    return;
  }
  // A short name of shared memory, `mov.u32 r,s;`, grows most: to four times its size in each copy.
  if (twin.text.size() > 16 * text.size() + size_t{128} * 1024) std::abort();
  if (gpushare::ptx::Entries(twin.text).size() != 1) std::abort();
  if (twin.layout.threads > 1024 || twin.layout.barriers > 16) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  MakeTwins(text);
  MakeFusedTwin(text);
  return 0;
}
