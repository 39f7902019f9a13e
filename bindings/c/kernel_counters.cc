// Reading and writing of a kernel's counters; see kernel_counters.h.

#include "bindings/c/kernel_counters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bindings/c/handles.h"
#include "bindings/c/options.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::abi {
namespace {

struct Share {
  absl::string_view name;
  double gpushare_kernel_counters::*given;
  double core::KernelCounters::*known;
};
constexpr Share kShares[] = {
    {"issue", &gpushare_kernel_counters::issue, &core::KernelCounters::issue},
    {"fma", &gpushare_kernel_counters::fma, &core::KernelCounters::fma},
    {"alu", &gpushare_kernel_counters::alu, &core::KernelCounters::alu},
    {"tensor", &gpushare_kernel_counters::tensor, &core::KernelCounters::tensor},
    {"special", &gpushare_kernel_counters::special, &core::KernelCounters::special},
    {"lsu", &gpushare_kernel_counters::lsu, &core::KernelCounters::lsu},
    {"shared", &gpushare_kernel_counters::shared, &core::KernelCounters::shared},
    {"l1", &gpushare_kernel_counters::l1, &core::KernelCounters::l1},
    {"l2", &gpushare_kernel_counters::l2, &core::KernelCounters::l2},
    {"dram", &gpushare_kernel_counters::dram, &core::KernelCounters::dram},
    {"dram_write", &gpushare_kernel_counters::dram_write, &core::KernelCounters::dram_write},
};

absl::Status CheckBetween(absl::string_view field, double value, double most,
                          absl::string_view limit = "") {
  if (value >= 0 && value <= most) return absl::OkStatus();  // false for NaN
  return absl::InvalidArgumentError(absl::StrCat("kernel_counters.", field, " is ", value,
                                                 ", and it must lie between 0 and ", most, limit,
                                                 "."));
}

absl::Status CheckAboveZero(absl::string_view field, double value, double most) {
  if (value > 0 && value <= most) return absl::OkStatus();  // false for NaN
  return absl::InvalidArgumentError(absl::StrCat("kernel_counters.", field, " is ", value,
                                                 ", and it must be above 0 and at most ", most,
                                                 "."));
}

absl::Status Check(const gpushare_kernel_counters& counters) {
  GPUSHARE_RETURN_IF_ERROR(
      CheckAboveZero("instructions", counters.instructions, models::kCountedInstructionsMax));
  GPUSHARE_RETURN_IF_ERROR(CheckBetween("memory_instructions", counters.memory_instructions,
                                        counters.instructions, ", its instructions"));
  GPUSHARE_RETURN_IF_ERROR(CheckBetween("sectors_per_request", counters.sectors_per_request,
                                        models::kSectorsPerRequestMax));
  GPUSHARE_RETURN_IF_ERROR(CheckAboveZero("issue", counters.issue, 1));
  for (const Share& share : kShares) {
    GPUSHARE_RETURN_IF_ERROR(CheckBetween(share.name, counters.*share.given, 1));
  }
  GPUSHARE_RETURN_IF_ERROR(
      CheckBetween("dram_write", counters.dram_write, counters.dram, ", its share of dram"));
  return CheckBetween("saturating_occupancy", counters.saturating_occupancy, 1);
}

}  // namespace

absl::Status ReadCounters(const gpushare_kernel_counters& given, core::KernelDesc& kernel) {
  gpushare_kernel_counters counters;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("kernel_counters", &given, &counters));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_counters", counters.reserved));
  GPUSHARE_RETURN_IF_ERROR(Check(counters));
  kernel.counters.instructions = counters.instructions;
  kernel.counters.memory_instructions = counters.memory_instructions;
  kernel.counters.sectors_per_request = counters.sectors_per_request;
  for (const Share& share : kShares) kernel.counters.*share.known = counters.*share.given;
  if (!kernel.simulation.present && counters.saturating_occupancy > 0) {
    kernel.simulation.saturating_occupancy = counters.saturating_occupancy;
  }
  return absl::OkStatus();
}

gpushare_kernel_counters CountersToC(const core::KernelCounters& counters,
                                     double saturating_occupancy) {
  gpushare_kernel_counters out = GPUSHARE_KERNEL_COUNTERS_INIT;
  out.instructions = counters.instructions;
  out.memory_instructions = counters.memory_instructions;
  out.sectors_per_request = counters.sectors_per_request;
  for (const Share& share : kShares) out.*share.given = counters.*share.known;
  out.saturating_occupancy = saturating_occupancy;
  return out;
}

}  // namespace gpushare::abi
