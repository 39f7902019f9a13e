// Waits for other blocks, and mbarriers that outlive a block task. See hazards.h.

#include "src/ptx/analysis/hazards.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "src/ptx/analysis/definitions.h"
#include "src/ptx/analysis/opcodes.h"

namespace gpushare::ptx {
namespace {

constexpr uint64_t kStepsOfOpcode = 16;  // a search in the table

bool IsOfBlockOrThread(std::string_view name) {
  constexpr std::array<std::string_view, 8> kSpaces = {
      "shared", "shared::cta", "local", "param", "const", "param::entry", "param::func", "cta"};
  return std::any_of(kSpaces.begin(), kSpaces.end(),
                     [name](std::string_view space) { return HasModifier(name, space); });
}

bool HasAny(std::string_view name, std::initializer_list<std::string_view> modifiers) {
  return std::any_of(modifiers.begin(), modifiers.end(),
                     [name](std::string_view modifier) { return HasModifier(name, modifier); });
}

// Whether an atomic operation that is repeated may wait for a value of another block's.
bool IsWait(const Module& module, const Statement& statement, const Definitions& definitions) {
  const std::string_view name = statement.name;
  if (HasModifier(name, "exch")) return true;
  const bool counts = HasAny(name, {"add", "inc", "dec"});
  if (!counts && !HasAny(name, {"cas", "and", "or", "xor", "max", "min"})) return false;
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module.words[statement.first_word + w];
    if (word.operand != 2) continue;
    // A counter that takes a step ends by itself; with the number 0 it only reads. The others set
    // or test with a number: a lock. With what was read before: an update that is tried again.
    if (counts) return definitions.MayBeZero(word);
    return word.is_number || word.symbol == kNoSymbol || definitions.IsNumber(word.symbol);
  }
  return true;
}

// Reads what another block may be waited for with.
bool ReadsOthers(const Module& module, const Statement& statement, OpKind kind,
                 const Definitions& definitions) {
  const std::string_view name = statement.name;
  if (IsOfBlockOrThread(name)) return false;
  if (kind == OpKind::kLoad) {
    return HasModifier(name, "volatile") || HasModifier(name, "acquire") ||
           HasModifier(name, "relaxed") || HasModifier(name, "mmio") || HasModifier(name, "cv");
  }
  return kind == OpKind::kAtomic && IsWait(module, statement, definitions);
}

Refusal TooLarge(const Module& module, const std::string& what) {
  return {Reason::kTooLarge, module.entry.line,
          "The kernel's " + what + " are more than their analysis can follow."};
}

// The statements of one loop, in which values that depend on a read are followed.
class Loop {
 public:
  Loop(const Module& module, std::vector<bool>& tainted, StepBudget& budget)
      : module_(module), tainted_(tainted), budget_(budget) {}

  bool IsTainted(SymbolId symbol) const {
    return symbol != kNoSymbol && tainted_[static_cast<size_t>(symbol)];
  }

  // By its guard, or by the index of brx.idx.
  bool DecidesBranch(const Statement& branch) const {
    return IsTainted(branch.guard) || (branch.name.starts_with("brx") && branch.word_count > 0 &&
                                       IsTainted(module_.words[branch.first_word].symbol));
  }

  // Whether something new depends on the reads.
  bool Pass(const std::vector<uint32_t>& statements, const std::vector<bool>& reads) {
    bool grown = false;
    for (const uint32_t i : statements) {
      const Statement& statement = module_.statements[i];
      if (statement.kind != StatementKind::kInstruction) continue;
      if (!budget_.Take(kStepsOfOpcode + statement.word_count)) return false;
      if (!FindOpcode(statement.name)->has_result) continue;
      if (!reads[i] && !DependsOnTainted(statement)) continue;
      for (uint32_t w = 0; w < statement.word_count; ++w) {
        const Word& word = module_.words[statement.first_word + w];
        if (word.operand != 0 || word.in_address || word.symbol == kNoSymbol) continue;
        if (tainted_[static_cast<size_t>(word.symbol)]) continue;
        tainted_[static_cast<size_t>(word.symbol)] = true;
        grown = true;
      }
    }
    return grown;
  }

 private:
  bool DependsOnTainted(const Statement& statement) const {
    if (IsTainted(statement.guard)) return true;
    for (uint32_t w = 0; w < statement.word_count; ++w) {
      const Word& word = module_.words[statement.first_word + w];
      if ((word.operand != 0 || word.in_address) && IsTainted(word.symbol)) return true;
    }
    return false;
  }

  const Module& module_;
  std::vector<bool>& tainted_;
  StepBudget& budget_;
};

struct Component {
  bool is_loop = false;
  uint32_t read = UINT32_MAX;  // the first statement that reads others
  std::vector<uint32_t> statements;
  std::vector<uint32_t> branches;  // blocks
};

std::vector<Component> CollectLoops(const Module& module, const FlowGraph& graph,
                                    const Definitions& definitions, std::vector<bool>& reads) {
  const std::vector<uint32_t> number = Components(graph);
  std::vector<Component> components(graph.blocks.size());
  for (uint32_t block = 0; block < graph.blocks.size(); ++block) {
    Component& component = components[number[block]];
    for (const uint32_t next : graph.blocks[block].successors) {
      component.is_loop |= next != graph.exit() && number[next] == number[block];
    }
    if (graph.blocks[block].branch != UINT32_MAX) component.branches.push_back(block);
    for (uint32_t i = graph.blocks[block].first; i < graph.blocks[block].end; ++i) {
      component.statements.push_back(i);
      const Statement& statement = module.statements[i];
      if (statement.kind != StatementKind::kInstruction) continue;
      reads[i] = ReadsOthers(module, statement, FindOpcode(statement.name)->kind, definitions);
      if (reads[i]) component.read = std::min(component.read, i);
    }
  }
  return components;
}

// Whether statements of one block invalidate the mbarrier; false once the budget is used up.
bool BlockInvalidates(const Module& module, const Definitions& definitions, uint32_t first,
                      uint32_t end, const Address& address, StepBudget& budget) {
  for (uint32_t i = first; i < end; ++i) {
    const Statement& statement = module.statements[i];
    if (!budget.Take(1 + statement.word_count)) return false;
    if (statement.kind == StatementKind::kInstruction &&
        FindOpcode(statement.name)->kind == OpKind::kMbarrierInval &&
        definitions.AddressOf(statement) == address) {
      return true;
    }
  }
  return false;
}

bool LiesInLoop(const FlowGraph& graph, const std::vector<uint32_t>& components, uint32_t block) {
  const std::vector<uint32_t>& next = graph.blocks[block].successors;
  return std::any_of(next.begin(), next.end(), [&](uint32_t node) {
    return node != graph.exit() && components[node] == components[block];
  });
}

// Whether one statement initialises several mbarriers: a loop that computes their address.
bool InitsSeveral(const Module& module, const FlowGraph& graph, const Definitions& definitions,
                  const std::vector<uint32_t>& components, uint32_t init, SymbolId base) {
  if (module.symbols[static_cast<size_t>(base)].kind != SymbolKind::kRegister) return false;
  const uint32_t written = definitions.Only(base);
  if (written == UINT32_MAX) return true;
  return components[graph.block_of[written]] == components[graph.block_of[init]] &&
         LiesInLoop(graph, components, graph.block_of[init]);
}

// Whether the exit can be reached from behind a statement without invalidating the mbarrier.
bool Outlives(const Module& module, const FlowGraph& graph, const Definitions& definitions,
              uint32_t init, const Address& address, StepBudget& budget) {
  if (!budget.Take(graph.blocks.size() / 8 + 1)) return true;
  std::vector<bool> seen(graph.blocks.size());
  struct Range {
    uint32_t block;
    uint32_t first;
  };
  std::vector<Range> open = {{graph.block_of[init], init + 1}};
  while (!open.empty()) {
    const Range at = open.back();
    open.pop_back();
    const Block& block = graph.blocks[at.block];
    if (!budget.Take(1 + block.successors.size())) return true;
    if (BlockInvalidates(module, definitions, at.first, block.end, address, budget)) continue;
    if (budget.exhausted()) return true;
    for (const uint32_t next : block.successors) {
      if (next == graph.exit()) return true;
      if (seen[next]) continue;
      seen[next] = true;
      open.push_back({next, graph.blocks[next].first});
    }
  }
  return false;
}

}  // namespace

Refusal CheckWaits(const Module& module, const FlowGraph& graph, StepBudget& budget) {
  const Definitions definitions(module);
  std::vector<bool> reads(module.statements.size());
  std::vector<bool> tainted(module.symbols.size());
  for (const Component& component : CollectLoops(module, graph, definitions, reads)) {
    if (!component.is_loop || component.read == UINT32_MAX) continue;
    Loop loop(module, tainted, budget);
    while (loop.Pass(component.statements, reads)) continue;
    if (budget.exhausted()) return TooLarge(module, "loops");
    for (const uint32_t block : component.branches) {
      const Statement& branch = module.statements[graph.blocks[block].branch];
      if (!loop.DecidesBranch(branch)) continue;
      const Statement& read = module.statements[component.read];
      return {Reason::kGridSync, read.line,
              "Line " + std::to_string(read.line) + " reads global memory by '" +
                  std::string(read.name) + "' in a loop that ends when another block has " +
                  "written it (line " + std::to_string(branch.line) + ")."};
    }
  }
  return {};
}

Refusal CheckMbarriers(const Module& module, const FlowGraph& graph, StepBudget& budget) {
  const Definitions definitions(module);
  const std::vector<uint32_t> components = Components(graph);
  for (uint32_t i = 0; i < module.statements.size(); ++i) {
    const Statement& statement = module.statements[i];
    if (statement.kind != StatementKind::kInstruction ||
        FindOpcode(statement.name)->kind != OpKind::kMbarrierInit) {
      continue;
    }
    const Address address = definitions.AddressOf(statement);
    if (address.base != kNoSymbol &&
        !InitsSeveral(module, graph, definitions, components, i, address.base) &&
        !Outlives(module, graph, definitions, i, address, budget)) {
      continue;
    }
    if (budget.exhausted()) return TooLarge(module, "mbarriers");
    return {Reason::kMbarrier, statement.line,
            "Line " + std::to_string(statement.line) +
                " initialises an mbarrier that is not invalidated on every way to the exit."};
  }
  return {};
}

}  // namespace gpushare::ptx
