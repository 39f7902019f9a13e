// Writes JSON text value by value, without a tree: what is written is what memory holds.
//
//   JsonWriter json(out, 1);
//   json.BeginObject(); json.Key("sms"); json.Write(132); json.EndObject();
//
// The text is that of nlohmann-json's dump with the same indentation. Bytes that are not UTF-8
// become U+FFFD. std::bad_alloc is the caller's. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_JSON_JSON_WRITER_H_
#define GPUSHARE_SRC_MODELS_JSON_JSON_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace gpushare::models {

class JsonWriter {
 public:
  // Appends to `out`. An indentation below 0: one line without spaces.
  JsonWriter(std::string& out, int indentation) : out_(out), indentation_(indentation) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }
  // Of the next value; `key` needs no escapes.
  void Key(absl::string_view key);

  void Write(int32_t value) { Write(int64_t{value}); }
  void Write(int64_t value);
  void Write(uint64_t value);
  void Write(double value);
  void Write(bool value);
  void Write(absl::string_view text);
  void Write(const char* text) { Write(absl::string_view(text)); }
  void Write(const std::string& text) { Write(absl::string_view(text)); }
  void WriteNull();

 private:
  void Begin(char bracket);
  void End(char bracket);
  void BeginValue();
  void BeginLine();

  std::string& out_;
  const int indentation_;
  int depth_ = 0;
  bool after_key_ = false;
  bool first_ = true;  // in its object or array
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_JSON_JSON_WRITER_H_
