// One part's scope of a fused twin. See body.h.

#include "src/ptx/fused/body.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/analysis/special_registers.h"
#include "src/ptx/twins/protocol.h"
#include "src/ptx/twins/text_edits.h"

namespace gpushare::ptx {
namespace {

std::string Number(uint64_t value) { return std::to_string(value); }

// The register that has a special register's value in the part: %tid.x -> ~tid_x.
std::string RegisterOf(std::string_view special) {
  std::string name = "~" + std::string(special.substr(1));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

class ScopeWriter {
 public:
  ScopeWriter(const Part& part, const PartLayout& layout, FusedSide side, uint32_t copy)
      : part_(part),
        module_(part.module),
        layout_(layout),
        side_(side),
        first_barrier_(layout.first_barrier + copy * layout.barriers),
        memory_(layout.shared_begin + copy * layout.shared_stride) {
    choices_.flat_block = part.is_flat;
    choices_.early_exits = part.findings.barriers.early_exits;
    choices_.exits = part.findings.barriers.exits;
    choices_.barrier = NumberOf(part.findings.barriers.loop_barrier);
    choices_.copies = part.findings.copies;
    choices_.bulk_copies = part.findings.bulk_copies;
    WorkerPlace& place = choices_.place;
    place.launch = LaunchOf(side);
    place.other_launch =
        LaunchOf(side == FusedSide::kTensor ? FusedSide::kCuda : FusedSide::kTensor);
    place.shared = kFusedMemory;
    place.shared_offset = memory_ + part.words_offset;
    place.threads = layout.threads;
    place.first_thread = layout.first_thread + copy * layout.stride;
    place.workers = layout.copies;
    place.worker = copy;
    choices_.start = Start();
    choices_.in_body = InBody();
  }

  std::string Run() {
    EditStatements();
    const Surroundings around = WorkerSurroundings(choices_);
    const Entry& entry = module_.entry;
    std::string out = "{";
    out += around.before;
    out += edits_.Apply(module_.text, entry.body_begin + 1, entry.end - 1);
    out += around.behind;
    return out + "}\n";
  }

 private:
  std::string Spelled(std::string_view text) const { return BodyText(text, choices_.place); }

  uint32_t NumberOf(uint32_t barrier) const { return first_barrier_ + part_.BarrierIndex(barrier); }

  // Whether %tid of the fused block is the part's own.
  bool KeepsThreadIndex(std::string_view special) const {
    return special == "%tid.x" && part_.is_flat && choices_.place.first_thread == 0;
  }

  std::string Start() const {
    std::string text;
    for (const std::string_view special : part_.specials) {
      if (!KeepsThreadIndex(special)) text += "\t.reg .b32 " + RegisterOf(special) + ";\n";
    }
    if (layout_.registers != 0) {
      text += std::string("\tsetmaxnreg.") + (side_ == FusedSide::kTensor ? "inc" : "dec") +
              ".sync.aligned.u32 " + Number(layout_.registers) + ";\n";
    }
    // Threads up to the next copy or part end at once.
    if (layout_.stride > layout_.threads ||
        layout_.threads_in_all > layout_.copies * layout_.stride) {
      text += FindThread(choices_.place) + "\tsetp.ge.u32 ~p1, ~r0, " + Number(layout_.threads) +
              ";\n\t@~p1 ret;\n";
    }
    return text;
  }

  std::string ValueOf(std::string_view special) const {
    const std::string set = "\tmov.u32 " + RegisterOf(special) + ", ";
    const auto& block = part_.block;
    if (special.starts_with("%ntid.")) {
      return set + Number(block[static_cast<size_t>(special.back() - 'x')]) + ";\n";
    }
    if (special == "%dynamic_smem_size") return set + Number(part_.dynamic_shared_bytes) + ";\n";
    const std::string find = FindThread(choices_.place);
    if (special == "%warpid") {
      return find + "\tshr.u32 " + RegisterOf(special) + ", ~r0, 5;\n";
    }
    if (special == "%tid.x") {
      return find + "\trem.u32 " + RegisterOf(special) + ", ~r0, " + Number(block[0]) + ";\n";
    }
    const std::string row = find + "\tdiv.u32 ~r0, ~r0, " + Number(block[0]) + ";\n";
    return special == "%tid.y"
               ? row + "\trem.u32 " + RegisterOf(special) + ", ~r0, " + Number(block[1]) + ";\n"
               : row + "\tdiv.u32 " + RegisterOf(special) + ", ~r0, " + Number(block[1]) + ";\n";
  }

  std::string InBody() const {
    std::string text;
    for (const std::string_view special : part_.specials) {
      if (!KeepsThreadIndex(special)) text += ValueOf(special);
    }
    return text;
  }

  void EditStatements() {
    uint32_t exits = 0;
    const std::vector<uint32_t>& joined = part_.findings.barriers.statements;
    for (uint32_t i = 0; i < module_.statements.size(); ++i) {
      const Statement& statement = module_.statements[i];
      if (statement.kind == StatementKind::kLocation ||
          (statement.kind == StatementKind::kDirective && statement.name.starts_with(".shared"))) {
        edits_.Replace(statement.begin, statement.end, "");
      }
      if (statement.kind != StatementKind::kInstruction) continue;
      const OpKind kind = FindOpcode(statement.name)->kind;
      if (kind == OpKind::kExit) {
        edits_.Replace(statement.name_begin, statement.end,
                       "bra " + EndOfBlockTask(choices_, exits++) + ";");
      } else if (kind == OpKind::kBarrier) {
        EditBarrier(statement, std::binary_search(joined.begin(), joined.end(), i));
      } else if (kind != OpKind::kBranch) {
        EditWords(statement);
      }
    }
  }

  void EditBarrier(const Statement& statement, bool joined) {
    const BarrierOperands operands = ReadBarrierOperands(module_, statement);
    if (joined) {
      edits_.Replace(statement.name_begin, statement.end, JoinedBarrier(choices_));
      return;
    }
    const Word& word = module_.words[operands.word];
    const uint32_t number = NumberOf(operands.number);
    edits_.Replace(word.begin, EndOf(word),
                   operands.counted ? Number(number) : OperandsOfBarrier(choices_.place, number));
  }

  static uint32_t EndOf(const Word& word) {
    return static_cast<uint32_t>(word.begin + word.text.size());
  }

  void EditWords(const Statement& statement) {
    std::string before;
    struct Change {
      const Word* word;
      std::string text;
    };
    std::vector<Change> changes;
    for (uint32_t w = 0; w < statement.word_count; ++w) {
      const Word& word = module_.words[statement.first_word + w];
      if (word.is_number) continue;
      std::string text =
          word.symbol == kNoSymbol ? TextOfSpecial(word, before) : TextOfSymbol(word);
      if (!text.empty()) changes.push_back({&word, std::move(text)});
    }
    if (!before.empty()) edits_.Replace(statement.begin, statement.begin, before);
    for (const Change& change : changes) {
      edits_.Replace(change.word->begin, EndOf(*change.word), change.text);
    }
  }

  // Empty: the word stays.
  std::string TextOfSpecial(const Word& word, std::string& before) const {
    const SpecialRegister* const special = FindSpecial(word.text);
    if (special == nullptr) return {};
    if (special->use == SpecialUse::kBlockIndex)
      return Spelled(std::string("~") + word.text.back());
    if (special->use == SpecialUse::kGridSize) {
      before += ReadGridSize(word.text.back(), choices_.place);
      return Spelled("~n");
    }
    const auto& specials = part_.specials;
    const bool computed = std::find(specials.begin(), specials.end(), word.text) != specials.end();
    return computed && !KeepsThreadIndex(word.text) ? Spelled(RegisterOf(word.text)) : "";
  }

  std::string TextOfSymbol(const Word& word) const {
    switch (module_.symbols[static_cast<size_t>(word.symbol)].kind) {
      case SymbolKind::kGlobal:
        return RenamedFor(side_, word.text);
      case SymbolKind::kParameter:
        return TextOfParameter(word.symbol);
      case SymbolKind::kShared:
      case SymbolKind::kDynamicShared:
        return AddressOf(word.symbol);
      default:
        return {};
    }
  }

  // Empty for one that a body declares for a call.
  std::string TextOfParameter(SymbolId symbol) const {
    const std::vector<Parameter>& parameters = module_.entry.parameters;
    // Their symbols follow each other.
    const size_t index = parameters.empty() || symbol < parameters.front().symbol
                             ? parameters.size()
                             : static_cast<size_t>(symbol - parameters.front().symbol);
    if (index >= parameters.size()) return {};
    return ParametersOf(side_) + "+" + Number(part_.parameter_offsets[index]);
  }

  // Of a shared variable, in place of its name.
  std::string AddressOf(SymbolId variable) const {
    const uint32_t offset = memory_ + part_.shared.at(variable);
    return offset == 0 ? kFusedMemory : std::string(kFusedMemory) + "+" + Number(offset);
  }

  const Part& part_;
  const Module& module_;
  const PartLayout& layout_;
  FusedSide side_;
  uint32_t first_barrier_;  // of this copy
  uint32_t memory_;         // where its shared memory begins
  ProtocolChoices choices_;
  TextEdits edits_;
};

}  // namespace

std::string RenamedFor(FusedSide side, std::string_view name) {
  std::string out(name.starts_with('%') ? "%" : "");
  out += side == FusedSide::kTensor ? "gpushare_0_" : "gpushare_1_";
  return out.append(name.substr(name.starts_with('%') ? 1 : 0));
}

std::string LaunchOf(FusedSide side) {
  return side == FusedSide::kTensor ? "gpushare_launch_0" : "gpushare_launch_1";
}

std::string ParametersOf(FusedSide side) {
  return side == FusedSide::kTensor ? "gpushare_parameters_0" : "gpushare_parameters_1";
}

std::string WriteScope(const Part& part, const PartLayout& layout, FusedSide side, uint32_t copy) {
  return ScopeWriter(part, layout, side, copy).Run();
}

}  // namespace gpushare::ptx
