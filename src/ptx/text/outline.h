// Where a module's variables and declarations are, for a module that takes them from another one.
//
// Where in the flow: parser -> outline -> fused twins. The parser keeps the symbols of the asked
// entry; this keeps the places of what stands outside of bodies.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_TEXT_OUTLINE_H_
#define GPUSHARE_SRC_PTX_TEXT_OUTLINE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/ptx/base/refusal.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

// One declaration of variables outside of bodies: `.global .u32 a = 1, b = 2;`.
struct VariableItem {
  uint32_t begin = 0;  // bytes of the text, the linkage directive included
  uint32_t end = 0;    // behind the semicolon
  uint32_t line = 0;
  bool is_linked = false;      // .visible, .extern, .weak or .common
  bool is_texture = false;     // .texref, .samplerref or .surfref
  bool has_attribute = false;  // .attribute: managed or unified memory
  bool is_shared = false;
  bool all_have_values = true;     // every name has an initialiser
  bool values_have_names = false;  // an initialiser is the address of something
  std::vector<std::string_view> names;
};

struct Outline {
  std::string_view target;  // "sm_90a"
  std::vector<VariableItem> variables;
  std::string_view assert_declaration;  // of __assertfail, its semicolon included
};

// `module` has been parsed from its text.
Refusal ReadOutline(const Module& module, Outline& outline);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TEXT_OUTLINE_H_
