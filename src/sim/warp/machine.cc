// The constants of two GPUs. The thesis gives SMs, schedulers and cache sizes (table 4.1). The
// rates of the units follow from the vendor's results per clock and SM; the latencies are round
// numbers near published microbenchmarks, not measurements of this project. tests/sim/warp asserts
// what must not depend on them.

#include "src/sim/warp/machine.h"

#include "absl/strings/str_cat.h"
#include "src/core/base/status.h"

namespace gpushare::sim::warp {
namespace {

UnitTiming& UnitOf(Machine& machine, OpKind kind) {
  return machine.units[static_cast<size_t>(kind)];
}

absl::Status InRange(absl::string_view what, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " of the simulated SM is ", value,
                                                 ", and it must be in ", least, " to ", most, "."));
}

}  // namespace

Machine TitanV() {
  Machine machine;
  machine.name = "TITAN V";
  machine.l1_bytes = 128 << 10;
  machine.l2_bytes = (4608 << 10) / 80;
  // A scheduler has 16 lanes of int and fp32, 8 of fp64, 4 of special functions.
  UnitOf(machine, OpKind::kInt) = {4, 2};
  UnitOf(machine, OpKind::kFloat) = {4, 2};
  UnitOf(machine, OpKind::kDouble) = {8, 4};
  UnitOf(machine, OpKind::kSpecial) = {20, 8};
  UnitOf(machine, OpKind::kTensor) = {16, 8};
  UnitOf(machine, OpKind::kControl) = {4, 2};
  UnitOf(machine, OpKind::kShared) = {20, 1};
  machine.l1_latency = 28;
  machine.l2_latency = 200;
  machine.dram_latency = 420;
  machine.l2_bytes_per_cycle = 20;
  machine.dram_bytes_per_cycle = 6.8;  // 653 GB/s at 1.2 GHz over 80 SMs
  return machine;
}

Machine H200() {
  Machine machine;
  machine.name = "H200";
  machine.l1_bytes = 256 << 10;
  machine.l2_bytes = (50 << 20) / 132;
  // A scheduler has 32 lanes of fp32, so that FFMA alone can fill its issue slots; 16 of int and
  // fp64, 4 of special functions.
  UnitOf(machine, OpKind::kInt) = {4, 2};
  UnitOf(machine, OpKind::kFloat) = {4, 1};
  UnitOf(machine, OpKind::kDouble) = {8, 2};
  UnitOf(machine, OpKind::kSpecial) = {20, 8};
  UnitOf(machine, OpKind::kTensor) = {32, 16};
  UnitOf(machine, OpKind::kControl) = {4, 2};
  UnitOf(machine, OpKind::kShared) = {24, 1};
  machine.l1_latency = 34;
  machine.l2_latency = 260;
  machine.dram_latency = 600;
  machine.l2_bytes_per_cycle = 24;
  machine.dram_bytes_per_cycle = 16.5;  // 4.3 TB/s of copies at 1.98 GHz over 132 SMs
  machine.outstanding_lines = 512;
  return machine;
}

Machine ExampleMachine() {
  Machine machine;
  machine.name = "example of 4.4.3";
  machine.schedulers = 1;
  machine.warps = 4;
  machine.l1_bytes = 128 << 10;
  machine.l2_bytes = 128 << 10;
  return machine;
}

absl::Status Check(const Machine& machine) {
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The number of schedulers", machine.schedulers, 1, kMaxSchedulers));
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The number of warps", machine.warps, 1, kMaxWarpsPerScheduler * machine.schedulers));
  GPUSHARE_RETURN_IF_ERROR(
      InRange("L1 in bytes", static_cast<double>(machine.l1_bytes), 16 << 10, 1 << 24));
  GPUSHARE_RETURN_IF_ERROR(InRange("The share of L2 in bytes",
                                   static_cast<double>(machine.l2_bytes), 16 << 10, 1 << 28));
  for (const UnitTiming& unit : machine.units) {
    GPUSHARE_RETURN_IF_ERROR(InRange("A latency in cycles", unit.latency, 1, kMaxOpCycles));
    GPUSHARE_RETURN_IF_ERROR(InRange("An interval in cycles", unit.interval, 1, kMaxOpCycles));
  }
  for (const int32_t latency : {machine.l1_latency, machine.l2_latency, machine.dram_latency}) {
    GPUSHARE_RETURN_IF_ERROR(InRange("A memory latency in cycles", latency, 1, kMaxOpCycles));
  }
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The load-store queue in cycles", machine.lsu_queue, 1, 1 << 20));
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The number of lines in flight", machine.outstanding_lines, kMaxLines, 1 << 16));
  for (const double rate : {machine.l2_bytes_per_cycle, machine.dram_bytes_per_cycle}) {
    GPUSHARE_RETURN_IF_ERROR(InRange("A bandwidth in bytes a cycle", rate, 0.01, 1e4));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::sim::warp
