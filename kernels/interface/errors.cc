#include "kernels/interface/errors.h"

#include <cstddef>
#include <cstring>

namespace gpushare::kernels {
namespace {

constexpr size_t kSentenceBytesMax = 1024;  // with the NUL
thread_local char last_sentence[kSentenceBytesMax] = "";

}  // namespace

gpushare_kernels_status Fail(gpushare_kernels_status code, const char* sentence) noexcept {
  std::strncpy(last_sentence, sentence, kSentenceBytesMax - 1);
  return code;
}

gpushare_kernels_status FromStatus(const Status& status) noexcept {
  if (status.ok()) return GPUSHARE_KERNELS_OK;
  return Fail(status.code < 0 ? GPUSHARE_KERNELS_INVALID_ARGUMENT : GPUSHARE_KERNELS_UNAVAILABLE,
              status.message.c_str());
}

}  // namespace gpushare::kernels

uint32_t gpushare_kernels_version() noexcept { return GPUSHARE_KERNELS_VERSION; }

const char* gpushare_kernels_last_error_message() noexcept {
  return gpushare::kernels::last_sentence;
}
