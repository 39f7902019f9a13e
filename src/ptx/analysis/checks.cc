// All refusals of a kernel that parses. See checks.h.

#include "src/ptx/analysis/checks.h"

#include <gpushare/device/launch.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "src/ptx/analysis/divergence.h"
#include "src/ptx/analysis/flow_graph.h"
#include "src/ptx/analysis/hazards.h"
#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/analysis/special_registers.h"
#include "src/ptx/base/limits.h"
#include "src/ptx/base/step_budget.h"

namespace gpushare::ptx {
namespace {

bool IsRefused(const Refusal& refusal) { return refusal.reason != Reason::kNone; }

Refusal At(uint32_t line, Reason reason, const std::string& what) {
  return {reason, line, "Line " + std::to_string(line) + " has " + what + "."};
}

std::string Quoted(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

Refusal CheckHeader(const Module& module) {
  if (module.version_major < kVersionMajorMin || module.version_major > kVersionMajorMax) {
    return At(module.version_line, Reason::kVersion,
              "PTX version " + std::to_string(module.version_major) + "." +
                  std::to_string(module.version_minor) + ", and twins are made from " +
                  std::to_string(kVersionMajorMin) + ".0 to " + std::to_string(kVersionMajorMax) +
                  ".x");
  }
  if (module.target < kTargetMin) {
    return At(module.target_line, Reason::kVersion,
              "target sm_" + std::to_string(module.target) + ", and twins need sm_" +
                  std::to_string(kTargetMin) + " or later");
  }
  if (module.address_bits != 64) {
    return {Reason::kVersion, module.target_line, "The module's addresses do not have 64 bits."};
  }
  const Entry& entry = module.entry;
  if (!entry.cluster.empty()) {
    return At(entry.cluster_line, Reason::kCluster, Quoted(entry.cluster));
  }
  return {};
}

// The end of the parameters, if the first may begin at `begin`.
uint32_t ParameterBytes(const Entry& entry, uint64_t begin) {
  uint64_t bytes = begin;
  for (const Parameter& parameter : entry.parameters) {
    bytes = (bytes + parameter.align_bytes - 1) / parameter.align_bytes * parameter.align_bytes;
    bytes += parameter.size_bytes;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

Refusal CheckLimits(const Module& module, const Findings& findings) {
  const bool large =
      module.version_major > 8 || (module.version_major == 8 && module.version_minor >= 1);
  const uint32_t limit = large ? kParametersBytesMaxFrom81 : kParametersBytesMax;
  // The header comes first; padding behind it may take the largest alignment once more.
  if (ParameterBytes(module.entry, sizeof(gpushare_worker_launch)) > limit) {
    return {Reason::kParameters, module.entry.line,
            "The kernel has " + std::to_string(findings.parameters_bytes) +
                " bytes of parameters, and with the launch header the limit is " +
                std::to_string(limit) + "."};
  }
  const uint64_t shared = uint64_t{module.static_shared_bytes} + TwinSharedBytes(module);
  if (shared > kStaticSharedBytesMax) {
    return {Reason::kSharedMemory, module.entry.line,
            "A worker of the kernel has " + std::to_string(shared) +
                " bytes of static shared memory, and the limit is " +
                std::to_string(kStaticSharedBytesMax) + "."};
  }
  return {};
}

Refusal CheckCall(const Module& module, const Statement& statement) {
  // The assertion of the CUDA runtime ends the kernel; nothing behind it runs.
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module.words[statement.first_word + w];
    if (word.symbol == kNoSymbol) continue;
    if (module.symbols[static_cast<size_t>(word.symbol)].kind != SymbolKind::kFunction) continue;
    if (word.text == "__assertfail") return {};
    return At(statement.line, Reason::kCall,
              "a call of " + Quoted(word.text) + ", which is not inlined");
  }
  return At(statement.line, Reason::kCall, "a call through a pointer");
}

// %ctaid and %nctaid: only mov of 32 bits and cvt, of one dimension.
Refusal CheckBlockRegister(const Statement& statement, const Word& word) {
  const std::string_view name = statement.name;
  const bool moves = name == "mov.u32" || name == "mov.b32" || name == "mov.s32";
  const bool alone = statement.word_count == 2 && word.operand == 1;
  if (alone && (moves || name.starts_with("cvt."))) return {};
  return At(word.line, Reason::kSpecialRegister,
            Quoted(word.text) + " in " + Quoted(name) +
                ", and a twin replaces it as the only source of mov.u32");
}

Refusal CheckWord(const Statement& statement, const Word& word, Findings& findings) {
  if (word.is_number || word.symbol != kNoSymbol || word.text == "_" || word.text == "WARP_SZ") {
    return {};
  }
  const SpecialRegister* const special = FindSpecial(word.text);
  if (special == nullptr) {
    return At(word.line, Reason::kUnknownSymbol, Quoted(word.text) + ", which nothing declares");
  }
  switch (special->use) {
    case SpecialUse::kRefused:
      return At(word.line, Reason::kSpecialRegister,
                Quoted(word.text) + ", whose value would be the worker's");
    case SpecialUse::kCluster:
      return At(word.line, Reason::kCluster, Quoted(word.text));
    case SpecialUse::kGridSize:
      findings.reads_grid_size = true;
      return CheckBlockRegister(statement, word);
    case SpecialUse::kBlockIndex:
      return CheckBlockRegister(statement, word);
    default:
      return {};
  }
}

Refusal CheckInstruction(const Module& module, const Statement& statement, Findings& findings) {
  const Opcode* const opcode = FindOpcode(statement.name);
  if (opcode == nullptr) {
    return At(statement.line, Reason::kUnknownOpcode,
              Quoted(statement.name) + ", which the table of opcodes does not list");
  }
  if (opcode->kind == OpKind::kRefused) {
    return At(statement.line, opcode->reason, Quoted(statement.name));
  }
  if (HasModifier(statement.name, "multicast::cluster") ||
      HasModifier(statement.name, "cta_group::2")) {
    return At(statement.line, Reason::kCluster, Quoted(statement.name));
  }
  if (opcode->kind == OpKind::kCall) return CheckCall(module, statement);
  if (opcode->kind == OpKind::kBranch) return {};  // its labels: the flow graph
  findings.copies |= opcode->async == AsyncKind::kCopy;
  findings.bulk_copies |= opcode->async == AsyncKind::kBulk;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    Refusal refusal = CheckWord(statement, module.words[statement.first_word + w], findings);
    if (IsRefused(refusal)) return refusal;
  }
  return {};
}

// Plans the barriers for the blocks that the text allows. Where only an assumption makes them flat,
// says whether other blocks would need another plan.
Refusal PlanForShapes(const Module& module, const FlowGraph& graph, StepBudget& budget,
                      Findings& findings) {
  const BlockShape shape = ShapeOf(module);
  const auto plan_for = [&](bool flat, BarrierPlan& plan) {
    const Divergence divergence = FindDivergence(module, graph, flat, budget);
    return PlanBarriers(module, graph, divergence, budget, plan);
  };
  Refusal refusal = plan_for(shape != BlockShape::kDeep, findings.barriers);
  if (IsRefused(refusal) || shape != BlockShape::kAssumed) return refusal;
  BarrierPlan deep;
  findings.needs_flat_block = IsRefused(plan_for(false, deep)) || deep != findings.barriers;
  return {};
}

}  // namespace

uint32_t TwinSharedBytes(const Module& module) { return module.dynamic_shared ? 1024 : 48; }

Refusal CheckKernel(const Module& module, Findings& findings) {
  findings = {};
  findings.parameters_bytes = ParameterBytes(module.entry, 0);
  Refusal refusal = CheckHeader(module);
  if (IsRefused(refusal)) return refusal;
  for (const Statement& statement : module.statements) {
    if (statement.kind != StatementKind::kInstruction) continue;
    ++findings.instructions;
    refusal = CheckInstruction(module, statement, findings);
    if (IsRefused(refusal)) return refusal;
  }
  refusal = CheckLimits(module, findings);
  if (IsRefused(refusal)) return refusal;
  StepBudget budget;
  FlowGraph graph;
  refusal = BuildFlowGraph(module, budget, graph);
  if (IsRefused(refusal)) return refusal;
  refusal = CheckWaits(module, graph, budget);
  if (IsRefused(refusal)) return refusal;
  refusal = CheckMbarriers(module, graph, budget);
  if (IsRefused(refusal)) return refusal;
  return PlanForShapes(module, graph, budget, findings);
}

}  // namespace gpushare::ptx
