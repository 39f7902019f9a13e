// A module and its entries. See parser.h.

#include "src/ptx/text/parser.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/ptx/base/limits.h"
#include "src/ptx/text/body_parser.h"
#include "src/ptx/text/declarations.h"
#include "src/ptx/text/symbol_table.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {
namespace {

bool IsLinkage(std::string_view word) {
  return word == ".visible" || word == ".extern" || word == ".weak" || word == ".common";
}

class ModuleParser {
 public:
  ModuleParser(std::string_view entry, bool entries_only, TokenCursor& cursor, Module& module)
      : asked_(entry),
        entries_only_(entries_only),
        cursor_(cursor),
        module_(module),
        symbols_(module) {}

  Refusal Run() {
    while (!cursor_.AtEnd() && Item()) continue;
    if (cursor_.failed() || entries_only_) return cursor_.refusal();
    if (!found_) {
      return {Reason::kNoEntry, 0,
              asked_.empty() ? "The module has no entry."
                             : "The module has no entry '" + std::string(asked_) + "'."};
    }
    if (asked_.empty() && module_.entries.size() > 1) {
      return {Reason::kNoEntry, 0,
              "The module has " + std::to_string(module_.entries.size()) +
                  " entries, and none is asked for by its name."};
    }
    return {};
  }

 private:
  bool Item() {
    if (!cursor_.IsWord()) return cursor_.Fail("no directive where one is expected");
    const std::string_view word = cursor_.text();
    if (IsLinkage(word)) return Linkage(word);
    const bool is_extern = extern_;
    const uint32_t begin = linked_ ? linkage_begin_ : cursor_.token().begin;
    linked_ = extern_ = false;
    if (word == ".version" || word == ".target" || word == ".address_size") return Header(word);
    if (word == ".file" || word == ".loc") {
      cursor_.SkipLine();
      return true;
    }
    if (word == ".section") {
      while (!cursor_.AtEnd() && !cursor_.IsSign('{')) cursor_.Advance();
      return cursor_.SkipBalanced('{', '}');
    }
    if (word == ".pragma" || word == ".alias") return cursor_.SkipPast(';');
    if (word == ".entry") return EntryItem(begin);
    if (word == ".func") return FunctionItem();
    if (IsStateSpace(word)) return ParseDeclaration(cursor_, is_extern, symbols_, module_);
    return cursor_.Fail("'" + std::string(word.substr(0, 80)) +
                        "', which the parser does not know outside a body");
  }

  bool Linkage(std::string_view word) {
    if (!linked_) linkage_begin_ = cursor_.token().begin;
    linked_ = true;
    extern_ |= word == ".extern";
    cursor_.Advance();
    return true;
  }

  bool Header(std::string_view word) {
    const uint32_t line = cursor_.line();
    cursor_.Advance();
    if (word == ".version") {
      module_.version_line = line;
      const std::string_view text = cursor_.text();
      const size_t dot = std::min(text.find('.'), text.size());
      uint64_t major = 0;
      uint64_t minor = 0;
      if (!TokenCursor::ParseNumber(text.substr(0, dot), major) || dot == text.size() ||
          !TokenCursor::ParseNumber(text.substr(dot + 1), minor) || major > 99 || minor > 99) {
        return cursor_.Fail("a version that is not of the form 8.7");
      }
      module_.version_major = static_cast<uint32_t>(major);
      module_.version_minor = static_cast<uint32_t>(minor);
    } else if (word == ".target") {
      module_.target_line = line;
      const std::string_view text = cursor_.text();
      if (text.starts_with("sm_")) {
        uint64_t number = 0;
        const size_t end = std::min(text.find_first_not_of("0123456789", 3), text.size());
        if (!TokenCursor::ParseNumber(text.substr(3, end - 3), number) || number > 9999) {
          return cursor_.Fail("a target that is not of the form sm_90a");
        }
        module_.target = static_cast<uint32_t>(number);
      }
    } else {
      uint64_t bits = 0;
      if (!cursor_.TakeNumber(bits) || bits > 64) return cursor_.Fail("an address size");
      module_.address_bits = static_cast<uint32_t>(bits);
      return true;
    }
    // A header's line ends it; what follows on it are further names of the target.
    while (!cursor_.AtEnd() && cursor_.token().line == line) cursor_.Advance();
    return true;
  }

  bool FunctionItem() {
    cursor_.Advance();
    while (cursor_.IsWord() && cursor_.text() == ".attribute") {
      cursor_.Advance();
      if (!cursor_.SkipBalanced('(', ')')) return false;
    }
    if (cursor_.IsSign('(') && !cursor_.SkipBalanced('(', ')')) return false;
    if (!cursor_.IsWord()) return cursor_.Fail("a function without a name");
    symbols_.Declare(cursor_.text(), Symbol{SymbolKind::kFunction, 0, 1});
    while (!cursor_.AtEnd() && !cursor_.IsSign(';') && !cursor_.IsSign('{')) cursor_.Advance();
    if (cursor_.TakeSign(';')) return true;
    return cursor_.SkipBalanced('{', '}');
  }

  bool EntryItem(uint32_t begin) {
    cursor_.Advance();
    if (!cursor_.IsWord()) return cursor_.Fail("an entry without a name");
    Entry entry;
    entry.name = cursor_.text();
    entry.line = cursor_.line();
    entry.begin = begin;
    entry.name_begin = cursor_.token().begin;
    entry.name_end = cursor_.token().end;
    cursor_.Advance();
    const bool wanted = !entries_only_ && !found_ && (asked_.empty() || entry.name == asked_);
    symbols_.Open();
    bool is_defined = false;
    const bool ok = EntryHead(entry, is_defined) && (!is_defined || EntryBody(entry, wanted));
    symbols_.Close();
    if (ok && is_defined) module_.entries.push_back(entry.name);
    if (ok && is_defined && wanted) {
      found_ = true;
      module_.entry = std::move(entry);
    }
    return ok;
  }

  bool EntryHead(Entry& entry, bool& is_defined) {
    if (cursor_.TakeSign('(')) {
      entry.parameters_begin = cursor_.last_end();
      if (!ParseParameters(cursor_, symbols_, entry.parameters)) return false;
    }
    for (;;) {
      if (cursor_.IsSign('{')) {
        is_defined = true;
        return true;
      }
      if (cursor_.TakeSign(';')) return true;
      if (!cursor_.IsWord() || !EntryDirective(entry)) {
        return cursor_.Fail("no directive of an entry where one is expected");
      }
    }
  }

  bool EntryDirective(Entry& entry) {
    const std::string_view word = cursor_.text();
    const uint32_t line = cursor_.line();
    cursor_.Advance();
    if (word == ".pragma") return cursor_.SkipPast(';');
    if (word == ".reqntid") return TakeShape(entry.block_required);
    if (word == ".maxntid") return TakeShape(entry.block_max);
    if (word == ".minnctapersm" || word == ".maxnreg" || word == ".maxnctapersm") {
      uint64_t number = 0;
      if (!cursor_.TakeNumber(number) || number > 65536) {
        return cursor_.Fail("a directive without its number");
      }
      if (word == ".maxnreg") entry.registers_max = static_cast<uint32_t>(number);
      return true;
    }
    if (word == ".explicitcluster" || word == ".reqnctapercluster" || word == ".maxclusterrank" ||
        word == ".blocksareclusters") {
      entry.cluster = word;
      entry.cluster_line = line;
      std::array<uint32_t, 3> shape{};
      return !cursor_.IsNumber() || TakeShape(shape);
    }
    return word == ".noreturn" || cursor_.Fail("'" + std::string(word.substr(0, 80)) +
                                               "', which the parser does not know at an entry");
  }

  bool TakeShape(std::array<uint32_t, 3>& shape) {
    shape = {1, 1, 1};
    size_t at = 0;
    do {
      uint64_t size = 0;
      if (at == shape.size() || !cursor_.TakeNumber(size) || size > 65536) {
        return cursor_.Fail("a block shape that is not one to three numbers");
      }
      shape[at++] = static_cast<uint32_t>(size);
    } while (cursor_.TakeSign(','));
    return true;
  }

  bool EntryBody(Entry& entry, bool wanted) {
    entry.body_begin = cursor_.token().begin;
    if (wanted) {
      if (!BodyParser(cursor_, symbols_, module_).Run()) return false;
    } else if (!cursor_.SkipBalanced('{', '}')) {
      return false;
    }
    entry.end = cursor_.last_end();
    return true;
  }

  std::string_view asked_;
  bool entries_only_;
  TokenCursor& cursor_;
  Module& module_;
  SymbolTable symbols_;
  bool found_ = false;
  bool linked_ = false;  // a linkage directive stands before the item
  bool extern_ = false;
  uint32_t linkage_begin_ = 0;
};

}  // namespace

Refusal Parse(std::string_view text, std::string_view entry, bool entries_only, Module& module) {
  module = {};
  module.text = text;
  std::vector<Token> tokens;
  Refusal refusal = Lex(text, tokens);
  if (refusal.reason != Reason::kNone) return refusal;
  TokenCursor cursor(text, tokens);
  return ModuleParser(entry, entries_only, cursor, module).Run();
}

}  // namespace gpushare::ptx
