// Variables that a fused twin copies. See variables.h.

#include "src/ptx/fused/variables.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/ptx/analysis/opcodes.h"

namespace gpushare::ptx {
namespace {

Refusal At(uint32_t line, std::string_view name, const std::string& why) {
  return {Reason::kVariable, line,
          "Line " + std::to_string(line) + " uses the variable '" +
              std::string(name.substr(0, 80)) + "', " + why + "."};
}

bool IsGlobal(const Module& module, const Word& word) {
  return word.symbol != kNoSymbol &&
         module.symbols[static_cast<size_t>(word.symbol)].kind == SymbolKind::kGlobal;
}

// Tables of CUDA's mathematical functions, which its own code reads and nothing writes.
bool IsCudaTable(std::string_view name) { return name.starts_with("__cudart_"); }

Refusal CheckItem(const Word& word, const VariableItem& item) {
  if (item.is_texture) return At(word.line, word.text, "which the host binds to a module");
  if (item.has_attribute) {
    return At(word.line, word.text, "which has an .attribute, so that the host may write it");
  }
  if (item.is_linked) return At(word.line, word.text, "which other code can name and may write");
  if (!item.all_have_values) {
    return At(word.line, word.text, "which has no value in the text, so that something writes it");
  }
  if (item.values_have_names) {
    return At(word.line, word.text, "whose value is an address in its own module");
  }
  return {};
}

// Follows addresses of variables through registers to what is done with them. CUDA's tables may be
// read. Of another variable only the address may be used, as an argument of __assertfail: a
// `static` one has neither linkage nor another mark in the text, and the host may write it.
class Addresses {
 public:
  Addresses(const Module& module, StepBudget& budget)
      : module_(module), budget_(budget), holds_(module.symbols.size()) {}

  Refusal Run() {
    for (bool grown = true; grown;) {
      grown = false;
      for (const Statement& statement : module_.statements) {
        if (!budget_.Take(4 + statement.word_count)) return TooLarge();
        if (statement.kind != StatementKind::kInstruction) continue;
        Refusal refusal = Visit(statement, grown);
        if (refusal.reason != Reason::kNone) return refusal;
      }
    }
    return {};
  }

 private:
  // The variable whose address the word perhaps is, as a word of the text; null: none.
  const Word* VariableOf(const Word& word) const {
    if (word.symbol == kNoSymbol) return nullptr;
    return IsGlobal(module_, word) ? &word : holds_[static_cast<size_t>(word.symbol)];
  }

  // Whether `variable` is the one of which less is allowed.
  static bool IsStricter(const Word* variable, const Word* other) {
    return variable != nullptr &&
           (other == nullptr || (IsCudaTable(other->text) && !IsCudaTable(variable->text)));
  }

  Refusal TooLarge() const {
    return {Reason::kTooLarge, module_.entry.line,
            "The kernel's variables are more than their analysis can follow."};
  }

  Refusal Visit(const Statement& statement, bool& grown) {
    const Opcode& opcode = *FindOpcode(statement.name);
    const Word* used = nullptr;
    const Word* variable = nullptr;
    for (uint32_t w = 0; w < statement.word_count; ++w) {
      const Word& word = module_.words[statement.first_word + w];
      const Word* const of = VariableOf(word);
      if (of == nullptr) continue;
      if (opcode.has_result && word.operand == 0 && !word.in_address) continue;  // written
      used = &word;
      if (IsStricter(of, variable)) variable = of;
    }
    if (used == nullptr) return {};
    const std::string_view name = statement.name;
    if (used->in_address && (opcode.kind == OpKind::kLoad || name.starts_with("prefetch"))) {
      if (IsCudaTable(variable->text)) return {};
      return At(statement.line, variable->text,
                "whose value it reads in '" + std::string(name.substr(0, 80)) +
                    "', and which the host may write");
    }
    // An argument of __assertfail, the only call that there is.
    if (!used->in_address && name.starts_with("st.param")) return {};
    const bool computes = opcode.kind == OpKind::kMove || opcode.kind == OpKind::kAdd ||
                          (opcode.kind == OpKind::kPlain && opcode.has_result);
    if (used->in_address || !computes) {
      return At(statement.line, variable->text,
                "or its address, in '" + std::string(name.substr(0, 80)) + "', which may write it");
    }
    for (uint32_t w = 0; w < statement.word_count; ++w) {
      const Word& word = module_.words[statement.first_word + w];
      if (word.operand != 0 || word.symbol == kNoSymbol) continue;
      const auto symbol = static_cast<size_t>(word.symbol);
      if (!IsStricter(variable, holds_[symbol])) continue;
      holds_[symbol] = variable;
      grown = true;
    }
    return {};
  }

  const Module& module_;
  StepBudget& budget_;
  // By symbol: the variable whose address it perhaps holds, the strictest of several.
  std::vector<const Word*> holds_;
};

}  // namespace

Refusal CheckVariables(const Module& module, const Outline& outline, StepBudget& budget,
                       std::vector<uint32_t>& items) {
  items.clear();
  std::unordered_map<std::string_view, uint32_t> item_of;
  for (uint32_t i = 0; i < outline.variables.size(); ++i) {
    for (const std::string_view name : outline.variables[i].names) item_of[name] = i;
  }
  for (const Word& word : module.words) {
    if (!IsGlobal(module, word)) continue;
    const auto found = item_of.find(word.text);
    if (found == item_of.end()) {
      return At(word.line, word.text, "which is not declared outside of bodies");
    }
    Refusal refusal = CheckItem(word, outline.variables[found->second]);
    if (refusal.reason != Reason::kNone) return refusal;
    items.push_back(found->second);
  }
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items.empty() ? Refusal{} : Addresses(module, budget).Run();
}

}  // namespace gpushare::ptx
