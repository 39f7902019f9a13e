// One twin as text. See twin_writer.h.

#include "src/ptx/twins/twin_writer.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "src/ptx/analysis/opcodes.h"
#include "src/ptx/analysis/special_registers.h"
#include "src/ptx/twins/protocol.h"
#include "src/ptx/twins/text_edits.h"

namespace gpushare::ptx {
namespace {

bool IsFlat(const std::array<uint32_t, 3>& shape) {
  return shape[0] != 0 && shape[1] == 1 && shape[2] == 1;
}

void EditWords(const Module& module, const Statement& statement, TextEdits& edits) {
  for (uint32_t w = 0; w < statement.word_count; ++w) {
    const Word& word = module.words[statement.first_word + w];
    if (word.symbol != kNoSymbol || word.is_number) continue;
    const SpecialRegister* const special = FindSpecial(word.text);
    if (special == nullptr) continue;
    const auto end = static_cast<uint32_t>(word.begin + word.text.size());
    const char dimension = word.text.back();
    if (special->use == SpecialUse::kBlockIndex) {
      edits.Replace(word.begin, end, std::string("%gpushare_") + dimension);
    } else if (special->use == SpecialUse::kGridSize) {
      edits.Replace(statement.begin, statement.begin, ReadGridSize(dimension, {}));
      edits.Replace(word.begin, end, "%gpushare_n");
    }
  }
}

TextEdits EditBody(const Module& module, const Findings& findings, const ProtocolChoices& choices) {
  TextEdits edits;
  uint32_t exits = 0;
  const std::vector<uint32_t>& barriers = findings.barriers.statements;
  for (uint32_t i = 0; i < module.statements.size(); ++i) {
    const Statement& statement = module.statements[i];
    if (statement.kind == StatementKind::kLocation) {
      edits.Replace(statement.begin, statement.end, "");
    }
    if (statement.kind != StatementKind::kInstruction) continue;
    if (FindOpcode(statement.name)->kind == OpKind::kExit) {
      edits.Replace(statement.name_begin, statement.end,
                    "bra " + EndOfBlockTask(choices, exits++) + ";");
    } else if (std::binary_search(barriers.begin(), barriers.end(), i)) {
      edits.Replace(statement.name_begin, statement.end, JoinedBarrier(choices));
    } else {
      EditWords(module, statement, edits);
    }
  }
  return edits;
}

ProtocolChoices Choose(const Module& module, const Findings& findings) {
  ProtocolChoices choices;
  // .maxntid bounds the number of threads, not the shape.
  choices.flat_block = IsFlat(module.entry.block_required);
  choices.early_exits = findings.barriers.early_exits;
  choices.exits = findings.barriers.exits;
  choices.barrier = findings.barriers.loop_barrier;
  choices.shared_bytes = TwinSharedBytes(module);
  choices.copies = findings.copies;
  choices.bulk_copies = findings.bulk_copies;
  return choices;
}

}  // namespace

std::string WriteTwin(const Module& module, const Findings& findings, TwinForm form,
                      std::string_view name, uint32_t registers_max) {
  const Entry& entry = module.entry;
  const std::string_view text = module.text;
  const ProtocolChoices choices = Choose(module, findings);
  const Surroundings around =
      form == TwinForm::kWorkers ? WorkerSurroundings(choices) : SliceSurroundings(choices);
  std::string out(text.substr(entry.begin, entry.name_begin - entry.begin));
  out += name;
  uint32_t behind_name = entry.name_end;
  if (entry.parameters_begin != 0) {
    out += text.substr(entry.name_end, entry.parameters_begin - entry.name_end);
    out += kLaunchParameter;
    if (!entry.parameters.empty()) out += ',';
    behind_name = entry.parameters_begin;
  } else {
    out += '(';
    out += kLaunchParameter;
    out += "\n)";
  }
  out += text.substr(behind_name, entry.body_begin - behind_name);
  if (registers_max > 0 && entry.registers_max == 0) {
    out += ".maxnreg " + std::to_string(registers_max) + "\n";
  }
  out += '{';
  out += around.before;
  out += EditBody(module, findings, choices).Apply(text, entry.body_begin + 1, entry.end - 1);
  out += around.behind;
  out += '}';
  return out;
}

}  // namespace gpushare::ptx
