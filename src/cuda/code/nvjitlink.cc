// Calls of nvJitLink. See nvjitlink.h. Its header is not needed: the names below are exported
// without a version and have not changed since CUDA 12.0.

#include "src/cuda/code/nvjitlink.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "src/core/base/status.h"
#include "src/cuda/driver/library_opener.h"

namespace gpushare::cuda {
namespace {

constexpr std::array kFiles = {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"};
constexpr char kOptimisation[] = "-O3";

// nvJitLinkResult and nvJitLinkInputType.
constexpr int kSuccess = 0;
constexpr int kInvalidInput = 3;
constexpr int kPtxCompile = 4;
constexpr int kInputPtx = 2;

using Handle = void*;

struct Functions {
  int (*create)(Handle*, uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add_data)(Handle, int, const void*, size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubin_size)(Handle, size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*log_size)(Handle, size_t*) = nullptr;
  int (*log)(Handle, char*) = nullptr;
  int (*version)(unsigned*, unsigned*) = nullptr;
};

absl::Status Resolve(void* library, const char* file, Functions& out) {
  const auto resolve = [&](const char* name, auto& function) {
    return ResolveFunction(library, file, name, function);
  };
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkCreate", out.create));
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkDestroy", out.destroy));
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkAddData", out.add_data));
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkComplete", out.complete));
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkGetLinkedCubinSize", out.cubin_size));
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkGetLinkedCubin", out.cubin));
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkGetErrorLogSize", out.log_size));
  GPUSHARE_RETURN_IF_ERROR(resolve("nvJitLinkGetErrorLog", out.log));
  return resolve("nvJitLinkVersion", out.version);
}

// nvJitLink ends the process for a name that no GPU could have.
absl::Status CheckArchitecture(absl::string_view name) {
  absl::string_view digits = name;
  const bool prefix = absl::ConsumePrefix(&digits, "sm_");
  if (!digits.empty() && absl::ascii_isalpha(static_cast<unsigned char>(digits.back()))) {
    digits.remove_suffix(1);
  }
  const bool number = digits.find_first_not_of("0123456789") == absl::string_view::npos;
  if (prefix && number && (digits.size() == 2 || digits.size() == 3)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("The architecture is '", name, "', and it has a name such as 'sm_90a'."));
}

// One assembly.
class Link {
 public:
  explicit Link(const Functions& functions) : functions_(functions) {}
  ~Link() {
    if (handle_ != nullptr) functions_.destroy(&handle_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  absl::Status Open(absl::string_view architecture) {
    const std::string arch = absl::StrCat("-arch=", architecture);
    std::array<const char*, 2> options = {arch.c_str(), kOptimisation};
    return StatusOf(functions_.create(&handle_, options.size(), options.data()));
  }

  absl::StatusOr<std::string> Assemble(absl::string_view text) {
    // It takes a text with the NUL behind it or without: with it, nothing is read beyond the end.
    const std::string ended(text);
    GPUSHARE_RETURN_IF_ERROR(StatusOf(
        functions_.add_data(handle_, kInputPtx, ended.c_str(), ended.size() + 1, "kernel.ptx")));
    GPUSHARE_RETURN_IF_ERROR(StatusOf(functions_.complete(handle_)));
    size_t bytes = 0;
    GPUSHARE_RETURN_IF_ERROR(StatusOf(functions_.cubin_size(handle_, &bytes)));
    std::string code(bytes, '\0');
    GPUSHARE_RETURN_IF_ERROR(StatusOf(functions_.cubin(handle_, code.data())));
    return code;
  }

 private:
  absl::Status StatusOf(int result) const {
    if (result == kSuccess) return absl::OkStatus();
    size_t bytes = 0;
    std::string log;
    if (handle_ != nullptr && functions_.log_size(handle_, &bytes) == kSuccess && bytes > 0) {
      log.resize(bytes);
      if (functions_.log(handle_, log.data()) != kSuccess) log.clear();
    }
    const bool text = result == kPtxCompile || result == kInvalidInput;
    return absl::Status(
        text ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal,
        absl::StrCat("The PTX is not assembled (result ", result, "): ", Excerpt(log), "."));
  }

  const Functions& functions_;
  Handle handle_ = nullptr;
};

class NvJitLink final : public Assembler {
 public:
  NvJitLink(const Functions& functions, std::string name)
      : functions_(functions), name_(std::move(name)) {}

  std::string Name() const override { return name_; }
  std::string Options() const override { return kOptimisation; }
  absl::StatusOr<std::string> Assemble(absl::string_view text,
                                       absl::string_view architecture) const override {
    GPUSHARE_RETURN_IF_ERROR(CheckArchitecture(architecture));
    Link link(functions_);
    GPUSHARE_RETURN_IF_ERROR(link.Open(architecture));
    return link.Assemble(text);
  }

 private:
  const Functions functions_;
  const std::string name_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Assembler>> OpenNvJitLink() {
  absl::Status missing;
  for (const char* const file : kFiles) {
    const absl::StatusOr<void*> library = OpenLibrary(file, "the assembly of PTX");
    if (!library.ok()) {
      missing.Update(library.status());
      continue;
    }
    Functions functions;
    if (absl::Status status = Resolve(*library, file, functions); !status.ok()) {
      missing.Update(status);
      continue;
    }
    unsigned major = 0;
    unsigned minor = 0;
    functions.version(&major, &minor);
    return std::make_unique<NvJitLink>(functions, absl::StrCat("nvJitLink ", major, ".", minor));
  }
  return missing;
}

}  // namespace gpushare::cuda
