// A place among the tokens of a module, and the first error.
//
// Where in the flow: what the parser of modules and the parser of bodies share.

#ifndef GPUSHARE_SRC_PTX_TEXT_TOKEN_CURSOR_H_
#define GPUSHARE_SRC_PTX_TEXT_TOKEN_CURSOR_H_

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/ptx/base/refusal.h"
#include "src/ptx/text/lexer.h"

namespace gpushare::ptx {

class TokenCursor {
 public:
  TokenCursor(std::string_view text, const std::vector<Token>& tokens)
      : text_(text), tokens_(tokens) {}

  bool AtEnd() const { return at_ >= tokens_.size(); }
  const Token& token() const { return AtEnd() ? end_ : tokens_[at_]; }
  std::string_view text() const { return TextOf(token()); }
  std::string_view TextOf(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }
  const Token& Next(size_t ahead) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : end_;
  }
  uint32_t line() const {
    if (!AtEnd()) return token().line;
    return tokens_.empty() ? 1 : tokens_.back().line;
  }
  // Of the token before.
  uint32_t last_end() const { return at_ == 0 ? 0 : tokens_[at_ - 1].end; }

  void Advance() {
    if (!AtEnd()) ++at_;
  }
  bool IsSign(char c) const {
    return token().kind == TokenKind::kSign && !AtEnd() && text_[token().begin] == c;
  }
  bool IsWord() const { return !AtEnd() && token().kind == TokenKind::kWord; }
  bool IsNumber() const { return !AtEnd() && token().kind == TokenKind::kNumber; }
  bool TakeSign(char c) {
    if (!IsSign(c)) return false;
    Advance();
    return true;
  }

  // A decimal or hexadecimal number, with the suffix U; false and no advance otherwise.
  bool TakeNumber(uint64_t& value) {
    if (!IsNumber() || !ParseNumber(text(), value)) return false;
    Advance();
    return true;
  }

  static bool ParseNumber(std::string_view digits, uint64_t& value) {
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
      base = 16;
      digits.remove_prefix(2);
    }
    if (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) digits.remove_suffix(1);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    return code == std::errc() && end == digits.data() + digits.size();
  }

  // Skips to the first token of another line.
  void SkipLine() {
    for (const uint32_t first = line(); !AtEnd() && token().line == first;) Advance();
  }

  // Skips from an opening sign to behind the sign that closes it; false without one.
  bool SkipBalanced(char open, char close) {
    size_t depth = 0;
    for (; !AtEnd(); Advance()) {
      if (IsSign(open)) ++depth;
      if (IsSign(close) && --depth == 0) {
        Advance();
        return true;
      }
    }
    return Fail(std::string("an end of the text where '") + close + "' is expected");
  }

  bool SkipPast(char sign) {
    while (!AtEnd() && !IsSign(sign)) Advance();
    return TakeSign(sign) ||
           Fail(std::string("an end of the text where '") + sign + "' is expected");
  }

  // Keeps the first error. Always false.
  bool Fail(const std::string& what, Reason reason = Reason::kSyntax) {
    if (refusal_.reason == Reason::kNone) {
      refusal_ = {reason, line(), "Line " + std::to_string(line()) + " has " + what + "."};
    }
    return false;
  }
  bool Refuse(Reason reason, uint32_t line, std::string message) {
    if (refusal_.reason == Reason::kNone) refusal_ = {reason, line, std::move(message)};
    return false;
  }
  bool failed() const { return refusal_.reason != Reason::kNone; }
  const Refusal& refusal() const { return refusal_; }

 private:
  std::string_view text_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  Token end_;
  Refusal refusal_;
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_TOKEN_CURSOR_H_
