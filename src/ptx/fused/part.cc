// Reads and checks one part of a fused block. See part.h.

#include "src/ptx/fused/part.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/analysis/special_registers.h"
#include "src/ptx/base/limits.h"
#include "src/ptx/base/step_budget.h"
#include "src/ptx/fused/variables.h"
#include "src/ptx/text/parser.h"
#include "src/ptx/text/token_cursor.h"
#include "src/ptx/twins/protocol.h"

namespace gpushare::ptx {
namespace {

// Of the dynamic part, as a block of its own has it (twin_writer.h).
constexpr uint32_t kDynamicAlign = 1024;
constexpr uint32_t kStaticAlign = 128;

bool IsRefused(const Refusal& refusal) { return refusal.reason != Reason::kNone; }

Refusal At(uint32_t line, Reason reason, const std::string& what) {
  return {reason, line, "Line " + std::to_string(line) + " has " + what + "."};
}

std::string Quoted(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

// Exact up to 2^20 in each dimension, and too many threads beyond.
uint64_t Product(const std::array<uint32_t, 3>& shape) {
  uint64_t product = 1;
  for (const uint32_t extent : shape) product *= std::min(extent, 1u << 20);
  return product;
}

std::string Spelled(const std::array<uint32_t, 3>& shape) {
  return std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" + std::to_string(shape[2]);
}

// The block's shape, from the text or from who asks.
Refusal ChooseBlock(const FusedPart& asked, Part& part) {
  Entry& entry = part.module.entry;
  const auto refuse = [&](const std::string& what) {
    return Refusal{Reason::kBlockShape, entry.line, what};
  };
  part.block = entry.block_required;
  if (Product(asked.block) == 0 && asked.block != std::array<uint32_t, 3>{}) {
    return refuse("A block of " + Spelled(asked.block) +
                  " threads is stated; state all three dimensions, 1 where there is none.");
  }
  if (Product(asked.block) != 0) {
    if (Product(entry.block_required) != 0 && entry.block_required != asked.block) {
      return refuse("The kernel requires blocks of " + Spelled(entry.block_required) +
                    " threads, and " + Spelled(asked.block) + " are asked for.");
    }
    part.block = asked.block;
  }
  const uint64_t threads = Product(part.block);
  if (threads == 0) {
    return refuse(
        "The text does not require a block shape (.reqntid), and none is stated; state the block "
        "that the kernel is launched with.");
  }
  if (Product(entry.block_max) != 0 && threads > Product(entry.block_max)) {
    return refuse("A block of " + std::to_string(threads) + " threads is more than the " +
                  std::to_string(Product(entry.block_max)) + " that the text allows.");
  }
  if (threads % 32 != 0 || threads > 1024) {
    return refuse("A block of " + std::to_string(threads) +
                  " threads is not made of whole warps, up to 1,024 threads.");
  }
  entry.block_required = part.block;  // so that the analyses know the shape, stated or not
  part.is_flat = part.block[1] == 1 && part.block[2] == 1;
  part.needs.threads = static_cast<uint32_t>(threads);
  return {};
}

// Values that the fused block computes are registers of 32 bits.
bool Reads32Bits(std::string_view opcode) { return opcode.ends_with("32"); }

Refusal CheckSpecial(const Statement& statement, const Word& word, Part& part) {
  const std::string_view name = word.text;
  if (name == "%nwarpid") {
    return At(word.line, Reason::kSpecialRegister, Quoted(name) + ", which counts the other part");
  }
  const bool computed = name.starts_with("%tid.") || name.starts_with("%ntid.") ||
                        name == "%warpid" || name == "%dynamic_smem_size";
  if (!computed) return {};
  if (!Reads32Bits(statement.name)) {
    return At(word.line, Reason::kSpecialRegister,
              Quoted(name) + " in " + Quoted(statement.name) +
                  ", and a fused twin replaces it by a register of 32 bits");
  }
  if (std::find(part.specials.begin(), part.specials.end(), name) == part.specials.end()) {
    part.specials.push_back(name);
  }
  return {};
}

// A shared variable stands in an address, or alone behind mov or cvta.
Refusal CheckShared(const Module& module, const Statement& statement, const Word& word) {
  if (word.in_address) return {};
  const std::string_view name = statement.name;
  const bool moves = name == "mov.u32" || name == "mov.s32" || name == "mov.b32" ||
                     name == "mov.u64" || name == "mov.s64" || name == "mov.b64";
  const bool converts = name == "cvta.shared.u64";
  const Word& last = module.words[statement.first_word + statement.word_count - 1];
  const bool alone = statement.word_count >= 2 && word.operand == 1 && last.operand == 1 &&
                     &word == &module.words[statement.first_word + 1];
  if (alone && (moves || (converts && statement.word_count == 2))) return {};
  return At(word.line, Reason::kSharedMemory,
            Quoted(word.text) + " in " + Quoted(name) +
                ", and a fused twin moves it in an address, in mov and in cvta alone");
}

Refusal CheckWords(const Statement& statement, Part& part) {
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = part.module.words[statement.first_word + w];
    if (word.is_number) continue;
    Refusal refusal;
    if (word.symbol == kNoSymbol) {
      refusal = CheckSpecial(statement, word, part);
    } else {
      const SymbolKind kind = part.module.symbols[static_cast<size_t>(word.symbol)].kind;
      if (kind == SymbolKind::kShared || kind == SymbolKind::kDynamicShared) {
        part.shared[word.symbol] = 0;
        refusal = CheckShared(part.module, statement, word);
      }
      part.calls_assert |= kind == SymbolKind::kFunction;
    }
    if (IsRefused(refusal)) return refusal;
  }
  return {};
}

Refusal CheckBarrier(const Statement& statement, Part& part) {
  const BarrierOperands barrier = ReadBarrierOperands(part.module, statement);
  if (barrier.word == UINT32_MAX) {
    return At(statement.line, Reason::kPartialBarrier,
              "a barrier whose number is not a constant, so that it cannot be moved");
  }
  if (barrier.number >= kBlockBarriersMax) {
    return At(statement.line, Reason::kBarriers,
              "barrier " + std::to_string(barrier.number) + ", and a block has 0 to " +
                  std::to_string(kBlockBarriersMax - 1));
  }
  part.barriers.push_back(barrier.number);
  return {};
}

Refusal CheckStatements(Part& part) {
  for (const Statement& statement : part.module.statements) {
    if (statement.kind == StatementKind::kDirective) {
      const std::string_view name = statement.name;
      if (name == ".global" || name == ".const" || name == ".tex") {
        return At(statement.line, Reason::kVariable, "a variable of the module inside a body");
      }
    }
    if (statement.kind != StatementKind::kInstruction) continue;
    part.needs.warpgroups |= statement.name.starts_with("wgmma");
    const OpKind kind = FindOpcode(statement.name)->kind;
    Refusal refusal = kind == OpKind::kBarrier ? CheckBarrier(statement, part) : Refusal{};
    if (!IsRefused(refusal) && kind != OpKind::kBranch) refusal = CheckWords(statement, part);
    if (IsRefused(refusal)) return refusal;
  }
  part.barriers.push_back(part.findings.barriers.loop_barrier);
  std::sort(part.barriers.begin(), part.barriers.end());
  part.barriers.erase(std::unique(part.barriers.begin(), part.barriers.end()), part.barriers.end());
  part.needs.barriers = static_cast<uint32_t>(part.barriers.size());
  return {};
}

uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

// The kernel uses `symbol`, an array of dynamic shared memory, and no bytes are stated.
Refusal NoDynamicBytes(const Part& part, SymbolId symbol) {
  const auto& words = part.module.words;
  const auto used = std::find_if(words.begin(), words.end(),
                                 [&](const Word& word) { return word.symbol == symbol; });
  return At(used->line, Reason::kSharedMemory,
            Quoted(used->text) +
                ", dynamic shared memory, and 0 bytes of it are stated; state the bytes that a "
                "block of the kernel is launched with (dynamic_shared_bytes, or --shared A:B)");
}

// Dynamic memory, then each variable at its alignment, then the worker's words.
Refusal CarveShared(const FusedPart& asked, Part& part) {
  PartNeeds& needs = part.needs;
  part.dynamic_shared_bytes = asked.dynamic_shared_bytes;
  needs.dynamic_shared = part.module.dynamic_shared || asked.dynamic_shared_bytes > 0;
  needs.shared_align = needs.dynamic_shared ? kDynamicAlign : kStaticAlign;
  uint64_t bytes = asked.dynamic_shared_bytes;
  for (auto& [symbol, offset] : part.shared) {
    const Symbol& variable = part.module.symbols[static_cast<size_t>(symbol)];
    if (variable.kind == SymbolKind::kDynamicShared) {
      // The worker's words would lie where the kernel's memory begins.
      if (asked.dynamic_shared_bytes == 0) return NoDynamicBytes(part, symbol);
      needs.shared_align = std::max(needs.shared_align, variable.align_bytes);
      continue;
    }
    bytes = RoundUp(bytes, variable.align_bytes);
    offset = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
    bytes += variable.size_bytes;
    needs.shared_align = std::max(needs.shared_align, variable.align_bytes);
  }
  bytes = RoundUp(bytes, kWorkerWordsAlign) + kWorkerWordsBytes;
  const SmLimits limits;
  if (bytes > limits.block_shared_bytes) {
    return {Reason::kSharedMemory, part.module.entry.line,
            "The part has " + std::to_string(bytes) + " bytes of shared memory with the words of " +
                "its worker, and a block has at most " + std::to_string(limits.block_shared_bytes) +
                "."};
  }
  part.words_offset = static_cast<uint32_t>(bytes - kWorkerWordsBytes);
  needs.shared_bytes = static_cast<uint32_t>(bytes);
  return {};
}

void PackParameters(Part& part) {
  uint64_t bytes = 0;
  for (const Parameter& parameter : part.module.entry.parameters) {
    bytes = RoundUp(bytes, parameter.align_bytes);
    part.parameter_offsets.push_back(static_cast<uint32_t>(bytes));
    bytes += parameter.size_bytes;
    part.parameters_align = std::max(part.parameters_align, parameter.align_bytes);
  }
  part.parameters_bytes = static_cast<uint32_t>(bytes);
}

}  // namespace

uint32_t Part::BarrierIndex(uint32_t number) const {
  return static_cast<uint32_t>(std::lower_bound(barriers.begin(), barriers.end(), number) -
                               barriers.begin());
}

BarrierOperands ReadBarrierOperands(const Module& module, const Statement& statement) {
  BarrierOperands barrier;
  const bool reduces = HasModifier(statement.name, "red");
  const uint16_t number = reduces ? 1 : 0;
  uint16_t last = 0;
  uint32_t words = 0;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module.words[statement.first_word + w];
    last = word.operand;
    if (word.operand != number || ++words > 1) continue;
    uint64_t value = 0;
    if (!word.is_number || word.negative || !TokenCursor::ParseNumber(word.text, value)) continue;
    barrier.word = statement.first_word + w;
    barrier.number = static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX));
  }
  if (words != 1) barrier.word = UINT32_MAX;
  barrier.counted = last > number + (reduces ? 1 : 0);
  return barrier;
}

Refusal ReadPart(const FusedPart& asked, Part& part) {
  part = {};
  Refusal refusal = Parse(asked.text, asked.entry, false, part.module);
  if (!IsRefused(refusal)) refusal = CheckReservedNames(asked.text);
  if (!IsRefused(refusal)) refusal = ChooseBlock(asked, part);
  if (!IsRefused(refusal)) refusal = CheckKernel(part.module, part.findings);
  if (!IsRefused(refusal)) refusal = CheckStatements(part);
  if (!IsRefused(refusal)) refusal = CarveShared(asked, part);
  if (!IsRefused(refusal)) refusal = CheckRegisters(asked.registers);
  if (!IsRefused(refusal)) refusal = ReadOutline(part.module, part.outline);
  if (IsRefused(refusal)) return refusal;
  PackParameters(part);
  part.needs.registers = asked.registers;
  StepBudget budget;
  return CheckVariables(part.module, part.outline, budget, part.variable_items);
}

}  // namespace gpushare::ptx
