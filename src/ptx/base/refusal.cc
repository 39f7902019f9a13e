// Names of the reasons. See refusal.h.

#include "src/ptx/base/refusal.h"

#include <array>
#include <cstddef>

namespace gpushare::ptx {
namespace {

// By the value of Reason.
constexpr std::array<const char*, 23> kReasons = {
    "none",
    "syntax",
    "too large",
    "version",
    "no entry",
    "already a twin",
    "unknown symbol",
    "unknown opcode",
    "cluster",
    "grid synchronisation",
    "setmaxnreg",
    "mbarrier",
    "partial barrier",
    "warp synchronisation",
    "special register",
    "call",
    "parameters",
    "shared memory",
    "block shape",
    "threads",
    "barriers",
    "registers",
    "variable",
};
static_assert(kReasons.size() == static_cast<size_t>(Reason::kVariable) + 1);

}  // namespace

const char* Name(Reason reason) {
  const auto index = static_cast<size_t>(reason);
  return index < kReasons.size() ? kReasons[index] : "unknown";
}

}  // namespace gpushare::ptx
