// cuLink, from PTX to a cubin. See driver_jit.h.

#include "src/cuda/code/driver_jit.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

constexpr size_t kLogBytes = 4096;

// One assembly.
class Link {
 public:
  explicit Link(const DriverApi& api) : api_(api) {}
  ~Link() {
    if (state_ != nullptr) api_.cuLinkDestroy(state_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  absl::Status Open() {
    std::array options = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes numbers as pointers
    std::array<void*, 2> values = {log_.data(), reinterpret_cast<void*>(uintptr_t{kLogBytes})};
    return GPUSHARE_CU(api_, cuLinkCreate(static_cast<unsigned>(options.size()), options.data(),
                                          values.data(), &state_));
  }

  absl::StatusOr<std::string> Assemble(absl::string_view text) {
    std::string ended(text);  // the driver reads up to the NUL
    absl::Status status =
        GPUSHARE_CU(api_, cuLinkAddData(state_, CU_JIT_INPUT_PTX, ended.data(), ended.size() + 1,
                                        "kernel.ptx", 0, nullptr, nullptr));
    void* code = nullptr;
    size_t bytes = 0;
    if (status.ok()) status = GPUSHARE_CU(api_, cuLinkComplete(state_, &code, &bytes));
    if (status.ok()) return std::string(static_cast<const char*>(code), bytes);
    if (absl::IsDataLoss(status)) return status;
    return absl::InvalidArgumentError(absl::StrCat(
        "The PTX is not assembled: ", Excerpt(log_.data()), " (", status.message(), ")"));
  }

 private:
  const DriverApi& api_;
  CUlinkState state_ = nullptr;
  std::array<char, kLogBytes + 1> log_ = {};  // one more than the driver knows of: a NUL
};

}  // namespace

DriverJit::DriverJit(const DriverApi& api) : api_(api) {
  int version = 0;
  api.cuDriverGetVersion(&version);
  name_ = absl::StrCat("driver ", version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<std::string> DriverJit::Assemble(absl::string_view text,
                                                absl::string_view /*architecture*/) const {
  Link link(api_);
  if (absl::Status status = link.Open(); !status.ok()) return status;
  return link.Assemble(text);
}

}  // namespace gpushare::cuda
