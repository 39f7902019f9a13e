// The outline of a module. See outline.h.

#include "src/ptx/text/outline.h"

#include <utility>

#include "src/ptx/text/declarations.h"
#include "src/ptx/text/lexer.h"
#include "src/ptx/text/token_cursor.h"

namespace gpushare::ptx {
namespace {

bool IsLinkage(std::string_view word) {
  return word == ".visible" || word == ".extern" || word == ".weak" || word == ".common";
}

class OutlineReader {
 public:
  OutlineReader(const Module& module, TokenCursor& cursor, Outline& outline)
      : module_(module), cursor_(cursor), outline_(outline) {}

  Refusal Run() {
    while (!cursor_.AtEnd() && TakeItem()) continue;
    return cursor_.refusal();
  }

 private:
  bool TakeItem() {
    const uint32_t begin = cursor_.token().begin;
    const bool linked = cursor_.IsWord() && IsLinkage(cursor_.text());
    while (cursor_.IsWord() && IsLinkage(cursor_.text())) cursor_.Advance();
    if (!cursor_.IsWord()) return cursor_.Fail("no directive where one is expected");
    const std::string_view word = cursor_.text();
    if (IsStateSpace(word)) return TakeVariables(begin, linked);
    if (word == ".target") {
      outline_.target = cursor_.TextOf(cursor_.Next(1));
      cursor_.SkipLine();
      return true;
    }
    if (word == ".entry") return SkipBody();
    if (word == ".func") return TakeFunction(begin);
    if (word == ".section") {
      while (!cursor_.AtEnd() && !cursor_.IsSign('{')) cursor_.Advance();
      return cursor_.SkipBalanced('{', '}');
    }
    if (word == ".pragma" || word == ".alias") return cursor_.SkipPast(';');
    cursor_.SkipLine();  // .version, .address_size, .file and .loc
    return true;
  }

  // To behind the body, or the semicolon of a declaration.
  bool SkipBody() {
    while (!cursor_.AtEnd() && !cursor_.IsSign('{')) {
      const bool pragma = cursor_.IsWord() && cursor_.text() == ".pragma";
      if (pragma && !cursor_.SkipPast(';')) return false;
      if (pragma) continue;
      if (cursor_.TakeSign(';')) return true;
      cursor_.Advance();
    }
    return cursor_.SkipBalanced('{', '}');
  }

  bool TakeFunction(uint32_t begin) {
    cursor_.Advance();
    while (cursor_.IsWord() && cursor_.text() == ".attribute") {
      cursor_.Advance();
      if (!cursor_.SkipBalanced('(', ')')) return false;
    }
    if (cursor_.IsSign('(') && !cursor_.SkipBalanced('(', ')')) return false;
    const bool is_assert = cursor_.text() == "__assertfail";
    while (!cursor_.AtEnd() && !cursor_.IsSign(';') && !cursor_.IsSign('{')) cursor_.Advance();
    if (!cursor_.TakeSign(';')) return cursor_.SkipBalanced('{', '}');
    if (is_assert) {
      outline_.assert_declaration = module_.text.substr(begin, cursor_.last_end() - begin);
    }
    return true;
  }

  bool TakeVariables(uint32_t begin, bool linked) {
    VariableItem item;
    item.begin = begin;
    item.line = cursor_.line();
    item.is_linked = linked;
    item.is_shared = cursor_.text().starts_with(".shared");
    // The type: directives with their numbers, up to the first name.
    while (!cursor_.AtEnd() && (!cursor_.IsWord() || cursor_.text().front() == '.')) {
      const std::string_view word = cursor_.text();
      item.is_texture |= word == ".texref" || word == ".samplerref" || word == ".surfref";
      cursor_.Advance();
      if (word != ".attribute") continue;
      item.has_attribute = true;
      if (!cursor_.SkipBalanced('(', ')')) return false;
    }
    do {
      if (!TakeName(item)) return false;
    } while (cursor_.TakeSign(','));
    if (!cursor_.TakeSign(';')) return cursor_.Fail("a declaration that does not end with ';'");
    item.end = cursor_.last_end();
    outline_.variables.push_back(std::move(item));
    return true;
  }

  bool TakeName(VariableItem& item) {
    if (!cursor_.IsWord()) return cursor_.Fail("a declaration without a name");
    item.names.push_back(cursor_.text());
    cursor_.Advance();
    while (cursor_.IsSign('[')) {
      if (!cursor_.SkipBalanced('[', ']')) return false;
    }
    if (!cursor_.TakeSign('=')) {
      item.all_have_values = false;
      return true;
    }
    uint32_t depth = 0;
    for (; !cursor_.AtEnd(); cursor_.Advance()) {
      if (depth == 0 && (cursor_.IsSign(',') || cursor_.IsSign(';'))) break;
      item.values_have_names |= cursor_.IsWord();
      if (cursor_.IsSign('{')) ++depth;
      if (cursor_.IsSign('}') && depth > 0) --depth;
    }
    return true;
  }

  const Module& module_;
  TokenCursor& cursor_;
  Outline& outline_;
};

}  // namespace

Refusal ReadOutline(const Module& module, Outline& outline) {
  outline = {};
  std::vector<Token> tokens;
  Refusal refusal = Lex(module.text, tokens);
  if (refusal.reason != Reason::kNone) return refusal;
  TokenCursor cursor(module.text, tokens);
  return OutlineReader(module, cursor, outline).Run();
}

}  // namespace gpushare::ptx
