#include "benchmarks/warp/bottleneck.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "src/sim/warp/op_words.h"

namespace gpushare::warp_experiments {
namespace {

using sim::warp::Machine;
using sim::warp::Op;
using sim::warp::OpKind;
using sim::warp::Program;

// How often a warp executes each operation.
std::vector<double> Executions(const Program& program) {
  std::vector<double> times(program.ops.size(), 1);
  for (size_t end = 0; end < program.ops.size(); ++end) {
    const Op& loop = program.ops[end];
    if (loop.kind != OpKind::kLoopEnd) continue;
    for (auto at = static_cast<size_t>(loop.target); at < end; ++at) {
      times[at] *= static_cast<double>(loop.count);
    }
  }
  return times;
}

// Cycles that one warp keeps each unit of its scheduler.
std::array<double, sim::warp::kOpKinds> UnitCycles(const Machine& machine, const Program& program) {
  std::array<double, sim::warp::kOpKinds> cycles = {};
  const std::vector<double> times = Executions(program);
  for (size_t at = 0; at < program.ops.size(); ++at) {
    const Op& op = program.ops[at];
    if (op.kind > OpKind::kControl) continue;  // memory is counted by the simulator
    const auto kind = static_cast<size_t>(op.kind);
    cycles[kind] += times[at] * (op.interval >= 0 ? op.interval : machine.units[kind].interval);
  }
  return cycles;
}

}  // namespace

Bottleneck FindBottleneck(const Machine& machine, const Program& program, int instances,
                          const sim::warp::SimulationResult& result) {
  int64_t last = 0;
  for (const sim::warp::KernelResult& kernel : result.kernels) {
    last = std::max(last, kernel.end_cycle);
  }
  const auto cycles = static_cast<double>(last);
  const double warps = instances * static_cast<double>(program.grid_blocks) *
                       program.warps_per_block / machine.schedulers;  // of one scheduler
  const auto instructions = static_cast<double>(result.instructions);
  Bottleneck busiest = {"issue", instructions / machine.schedulers / cycles};
  const auto consider = [&busiest](std::string resource, double share) {
    if (share > busiest.share) busiest = {std::move(resource), share};
  };
  const auto units = UnitCycles(machine, program);
  for (size_t kind = 0; kind < units.size(); ++kind) {
    consider(std::string(sim::warp::kOpWords[kind]), units[kind] * warps / cycles);
  }
  const auto bytes = [](int64_t sectors) {
    return static_cast<double>(sectors * sim::warp::kSectorBytes);
  };
  consider("lsu", static_cast<double>(result.memory.lsu_cycles) / cycles);
  consider("l2", bytes(result.memory.l2_sectors) / machine.l2_bytes_per_cycle / cycles);
  consider("dram", bytes(result.memory.dram_sectors) / machine.dram_bytes_per_cycle / cycles);
  return busiest;
}

}  // namespace gpushare::warp_experiments
