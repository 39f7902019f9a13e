// How values differ among threads. See divergence.h.

#include "src/ptx/analysis/divergence.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/analysis/special_registers.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {
namespace {

constexpr uint64_t kWarpThreads = 32;

class Analysis {
 public:
  Analysis(const Module& module, const FlowGraph& graph, bool flat, StepBudget& budget)
      : module_(module), graph_(graph), budget_(budget), flat_(flat) {
    found_.values.resize(module.symbols.size(), Spread::kBlock);
    found_.branches.resize(graph.blocks.size(), Spread::kBlock);
    blocks_.resize(graph.blocks.size(), Spread::kBlock);
    queued_.resize(module.statements.size());
  }

  Divergence Run() {
    found_.joins = Postdominators(graph_, budget_);
    ListUsers();
    for (uint32_t i = 0; i < module_.statements.size(); ++i) Queue(i);
    while (!work_.empty()) {
      const uint32_t i = work_.back();
      work_.pop_back();
      queued_[i] = false;
      if (!budget_.Take(1 + module_.statements[i].word_count)) return Worst();
      Visit(i);
    }
    return budget_.exhausted() ? Worst() : found_;
  }

 private:
  Divergence Worst() {
    std::fill(found_.values.begin(), found_.values.end(), Spread::kVaries);
    std::fill(found_.branches.begin(), found_.branches.end(), Spread::kVaries);
    return found_;
  }

  // The statements that read each symbol, as one array with a range for each.
  void ListUsers() {
    user_begin_.resize(module_.symbols.size() + 1);
    const auto each = [this](auto&& visit) {
      for (uint32_t i = 0; i < module_.statements.size(); ++i) {
        const Statement& statement = module_.statements[i];
        if (statement.guard != kNoSymbol) visit(statement.guard, i);
        for (uint32_t w = 0; w < statement.word_count; ++w) {
          const SymbolId symbol = module_.words[statement.first_word + w].symbol;
          if (symbol != kNoSymbol) visit(symbol, i);
        }
      }
    };
    each([this](SymbolId symbol, uint32_t) { ++user_begin_[static_cast<size_t>(symbol) + 1]; });
    for (size_t s = 1; s < user_begin_.size(); ++s) user_begin_[s] += user_begin_[s - 1];
    users_.resize(user_begin_.back());
    std::vector<uint32_t> at(user_begin_.begin(), user_begin_.end() - 1);
    each([&](SymbolId symbol, uint32_t i) { users_[at[static_cast<size_t>(symbol)]++] = i; });
  }

  void Queue(uint32_t statement) {
    if (queued_[statement]) return;
    queued_[statement] = true;
    work_.push_back(statement);
  }

  Spread Of(const Word& word) const {
    if (word.symbol != kNoSymbol) return found_.values[static_cast<size_t>(word.symbol)];
    const SpecialRegister* const special = FindSpecial(word.text);
    if (special == nullptr) return Spread::kBlock;
    if (special->use == SpecialUse::kThreadX && flat_) return Spread::kThread;
    if (special->use == SpecialUse::kWarp) return Spread::kWarp;
    return special->use == SpecialUse::kThread || special->use == SpecialUse::kThreadX
               ? Spread::kVaries
               : Spread::kBlock;
  }

  // The number at an operand that is one plain number.
  bool NumberAt(const Statement& statement, uint16_t operand, uint64_t& value) const {
    for (uint32_t w = 0; w < statement.word_count; ++w) {
      const Word& word = module_.words[statement.first_word + w];
      if (word.operand != operand) continue;
      return word.is_number && !word.negative && TokenCursor::ParseNumber(word.text, value);
    }
    return false;
  }

  // Whether an operation on the thread's index gives the same in all threads of a warp.
  bool CutsToWarp(const Statement& statement) const {
    uint64_t number = 0;
    if (!NumberAt(statement, 2, number)) return false;
    const std::string_view name = statement.name;
    if (name.starts_with("shr") || name.starts_with("bfe")) return number >= 5 && number < 32;
    if (name.starts_with("and")) return number % kWarpThreads == 0;
    if (name.starts_with("div")) return number != 0 && number % kWarpThreads == 0;
    if (!name.starts_with("setp")) return false;
    if (HasModifier(name, "lt") || HasModifier(name, "ge") || HasModifier(name, "lo") ||
        HasModifier(name, "hs")) {
      return number % kWarpThreads == 0;
    }
    if (HasModifier(name, "gt") || HasModifier(name, "le") || HasModifier(name, "hi") ||
        HasModifier(name, "ls")) {
      return number % kWarpThreads == kWarpThreads - 1;
    }
    return false;
  }

  // Of the operation itself, whatever its operands.
  Spread OfOpcode(const Statement& statement, const Opcode& opcode) const {
    switch (opcode.kind) {
      case OpKind::kLoad:
        return OfLoad(statement.name);
      case OpKind::kWarpSame:
        return Spread::kWarp;
      case OpKind::kWarp:
        return IsBroadcast(statement) ? Spread::kWarp : Spread::kVaries;
      case OpKind::kBarrier:
        return Spread::kBlock;
      case OpKind::kVaries:
      case OpKind::kAtomic:
      case OpKind::kCall:
        return Spread::kVaries;
      default:
        return Spread::kBlock;
    }
  }

  // Threads that read one address together read one value, unless it is their own memory or other
  // threads may write it meanwhile. The threads of a warp read plain global memory at one time; the
  // warps of a block do not. Nobody writes what is read by nc.
  static Spread OfLoad(std::string_view name) {
    for (const char* const modifier : {"local", "volatile", "relaxed", "acquire", "mmio"}) {
      if (HasModifier(name, modifier)) return Spread::kVaries;
    }
    if (HasModifier(name, "global") && !HasModifier(name, "nc")) return Spread::kWarp;
    return HasModifier(name, "param") || HasModifier(name, "const") || HasModifier(name, "nc") ||
                   HasModifier(name, "shared") || HasModifier(name, "shared::cta")
               ? Spread::kBlock
               : Spread::kVaries;  // of a generic address, which may be local
  }

  // shfl.sync.idx from one lane, stated as a number, over a whole warp.
  bool IsBroadcast(const Statement& statement) const {
    uint64_t lane = 0;
    uint64_t clamp = 0;
    return statement.name.starts_with("shfl.sync.idx") && NumberAt(statement, 2, lane) &&
           NumberAt(statement, 3, clamp) && lane < kWarpThreads && clamp == kWarpThreads - 1;
  }

  void Visit(uint32_t i) {
    const Statement& statement = module_.statements[i];
    if (statement.kind != StatementKind::kInstruction) return;
    const Opcode* const opcode = FindOpcode(statement.name);
    if (opcode == nullptr) return;
    const uint32_t block = graph_.block_of[i];
    const Spread guard = statement.guard == kNoSymbol
                             ? Spread::kBlock
                             : found_.values[static_cast<size_t>(statement.guard)];
    Spread sources = Spread::kBlock;
    for (uint32_t w = 0; w < statement.word_count; ++w) {
      const Word& word = module_.words[statement.first_word + w];
      if (opcode->has_result && word.operand == 0 && !word.in_address) continue;
      sources = std::max(sources, Of(word));
    }
    if (opcode->kind == OpKind::kBranch || opcode->kind == OpKind::kExit) {
      RaiseBranch(block, std::max(guard, sources));
      return;
    }
    if (!opcode->has_result) return;
    // A result that all threads of a warp or block share does not depend on how operands differ.
    const bool shared = opcode->kind == OpKind::kWarpSame || opcode->kind == OpKind::kBarrier ||
                        (opcode->kind == OpKind::kWarp && IsBroadcast(statement));
    if (shared) {
      sources = Spread::kBlock;
    } else if (sources == Spread::kThread) {
      if (CutsToWarp(statement)) {
        sources = Spread::kWarp;
      } else if (opcode->kind != OpKind::kMove) {
        sources = Spread::kVaries;
      }
    }
    Raise(statement, std::max({guard, sources, OfOpcode(statement, *opcode), blocks_[block]}));
  }

  void Raise(const Statement& statement, Spread spread) {
    for (uint32_t w = 0; w < statement.word_count; ++w) {
      const Word& word = module_.words[statement.first_word + w];
      if (word.operand != 0 || word.in_address || word.symbol == kNoSymbol) continue;
      const auto symbol = static_cast<size_t>(word.symbol);
      if (found_.values[symbol] >= spread) continue;
      found_.values[symbol] = spread;
      for (uint32_t u = user_begin_[symbol]; u < user_begin_[symbol + 1]; ++u) Queue(users_[u]);
    }
  }

  // Threads are separated from the branch to its postdominator.
  void RaiseBranch(uint32_t from, Spread spread) {
    if (graph_.blocks[from].branch == UINT32_MAX || found_.branches[from] >= spread) return;
    found_.branches[from] = spread;
    std::vector<bool> seen(graph_.blocks.size());
    std::vector<uint32_t> open;
    const auto enter = [&](uint32_t block) {
      if (block == graph_.exit() || block == found_.joins[from] || seen[block]) return;
      seen[block] = true;
      open.push_back(block);
    };
    for (const uint32_t next : graph_.blocks[from].successors) enter(next);
    if (!budget_.Take(graph_.blocks.size() / 64 + 1)) return;
    while (!open.empty()) {
      const uint32_t block = open.back();
      open.pop_back();
      if (!budget_.Take(1 + graph_.blocks[block].successors.size())) return;
      for (const uint32_t next : graph_.blocks[block].successors) enter(next);
      if (blocks_[block] >= spread) continue;
      blocks_[block] = spread;
      for (uint32_t i = graph_.blocks[block].first; i < graph_.blocks[block].end; ++i) Queue(i);
    }
  }

  const Module& module_;
  const FlowGraph& graph_;
  StepBudget& budget_;
  bool flat_;
  Divergence found_;
  std::vector<Spread> blocks_;  // how threads that execute a block may be separated from others
  std::vector<uint32_t> user_begin_;
  std::vector<uint32_t> users_;
  std::vector<bool> queued_;
  std::vector<uint32_t> work_;
};

}  // namespace

BlockShape ShapeOf(const Module& module) {
  const auto& required = module.entry.block_required;
  if (required[0] != 0) {
    return required[1] == 1 && required[2] == 1 ? BlockShape::kFlat : BlockShape::kDeep;
  }
  const auto& most = module.entry.block_max;
  if (most[0] != 0 && (most[1] != 1 || most[2] != 1)) return BlockShape::kDeep;
  const bool reads_others =
      std::any_of(module.words.begin(), module.words.end(), [](const Word& word) {
        return word.text == "%tid.y" || word.text == "%tid.z" || word.text == "%tid";
      });
  return reads_others ? BlockShape::kDeep : BlockShape::kAssumed;
}

Divergence FindDivergence(const Module& module, const FlowGraph& graph, bool flat,
                          StepBudget& budget) {
  return Analysis(module, graph, flat, budget).Run();
}

}  // namespace gpushare::ptx
