// A JSON text as a tree of bounded size, read by SAX.
//
// nlohmann-json's own tree allocates in its destructor, and so ends the process when memory is
// exhausted. This one is two arrays: the values, and the bytes of their texts. Bounds: the size of
// the text, the number of values, the nesting, the keys of one object. No key stands twice in one
// object. A document that breaks a rule is INVALID_ARGUMENT; std::bad_alloc is the caller's.
//
// The build can parse a text and keep the two arrays as constants (bindings/c/pack_profile.cc).
// Such a document costs nothing to open, and is read like any other. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_JSON_JSON_DOCUMENT_H_
#define GPUSHARE_SRC_MODELS_JSON_JSON_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gpushare::models {

class JsonValue;

class JsonDocument {
 public:
  enum class Type : uint8_t {
    kNull,
    kBool,
    kSigned,
    kUnsigned,  // above the signed range too
    kDouble,
    kText,
    kArray,
    kObject,
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Text {
    uint32_t begin;
    uint32_t bytes;
  };
  struct Children {
    uint32_t first;
    uint32_t count;
  };
  struct Node {
    Type type = Type::kNull;
    Text key = {0, 0};      // of a member of an object
    uint32_t next = kNone;  // the next member or element of the same parent
    union {
      uint64_t bits = 0;  // of kSigned and kUnsigned
      double number;
      bool truth;
      Text text;
      Children children;
    };
  };

  JsonDocument() = default;
  // Over the arrays of a parsed document, which outlive this one.
  JsonDocument(absl::Span<const Node> nodes, absl::string_view texts)
      : packed_nodes_(nodes), packed_texts_(texts) {}

  JsonValue root() const;
  absl::Span<const Node> nodes() const { return packed_nodes_.empty() ? nodes_ : packed_nodes_; }
  absl::string_view texts() const { return packed_nodes_.empty() ? texts_ : packed_texts_; }

 private:
  friend class JsonReader;
  friend class JsonValue;

  absl::string_view TextOf(const Text& text) const {
    return texts().substr(text.begin, text.bytes);
  }

  std::vector<Node> nodes_;  // the root first
  std::string texts_;
  // Instead of the two above.
  absl::Span<const Node> packed_nodes_;
  absl::string_view packed_texts_;
};

// A value of a document, which it must not outlive.
class JsonValue {
 public:
  using Type = JsonDocument::Type;

  class Iterator {
   public:
    Iterator(const JsonDocument* document, uint32_t node) : document_(document), node_(node) {}
    JsonValue operator*() const { return {document_, node_}; }
    Iterator& operator++() {
      node_ = document_->nodes()[node_].next;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return node_ != other.node_; }

   private:
    const JsonDocument* document_;
    uint32_t node_;
  };

  bool is_object() const { return node().type == Type::kObject; }
  bool is_array() const { return node().type == Type::kArray; }
  bool is_text() const { return node().type == Type::kText; }
  bool is_bool() const { return node().type == Type::kBool; }
  bool is_whole() const { return node().type == Type::kSigned || node().type == Type::kUnsigned; }
  bool is_number() const { return is_whole() || node().type == Type::kDouble; }
  Type type() const { return node().type; }

  // Only of a value of the fitting type.
  int64_t whole() const { return static_cast<int64_t>(node().bits); }
  uint64_t unsigned_whole() const { return node().bits; }
  double number() const;
  bool truth() const { return node().truth; }
  absl::string_view text() const { return document_->TextOf(node().text); }
  // Of a member of an object.
  absl::string_view key() const { return document_->TextOf(node().key); }

  // Members of an object or elements of an array, in the order of the text.
  uint32_t size() const { return node().children.count; }
  Iterator begin() const { return {document_, node().children.first}; }
  Iterator end() const { return {document_, JsonDocument::kNone}; }
  bool Has(absl::string_view key) const;

 private:
  friend class JsonDocument;
  friend class JsonReader;
  JsonValue(const JsonDocument* document, uint32_t node) : document_(document), node_(node) {}
  const JsonDocument::Node& node() const { return document_->nodes()[node_]; }

  const JsonDocument* document_;
  uint32_t node_;
};

inline JsonValue JsonDocument::root() const { return {this, 0}; }

// Strict JSON of at most `bytes_max` bytes. `what` starts the messages: "The profile".
absl::StatusOr<JsonDocument> ParseStrictJson(absl::string_view text, absl::string_view what,
                                             int64_t bytes_max);

// The value for a message: one line, and long ones are cut.
std::string ShowJson(const JsonValue& value);
std::string ShowText(absl::string_view text);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_JSON_JSON_DOCUMENT_H_
