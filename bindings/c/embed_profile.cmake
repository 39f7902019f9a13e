# Writes a .cc file that holds a profile as string literals of at most 8000 bytes each (compilers
# need not take more than 65536 in one). Run as:
#   cmake -DINPUT=profile.json -DOUTPUT=profile.cc -P embed_profile.cmake

file(READ "${INPUT}" text)
string(LENGTH "${text}" length)
set(literals "")
set(position 0)
while(position LESS length)
  string(SUBSTRING "${text}" ${position} 8000 piece)
  string(APPEND literals "    R\"profile(${piece})profile\"\n")
  math(EXPR position "${position} + 8000")
endwhile()
file(WRITE "${OUTPUT}.new" "// Made by the build from a profile; do not edit.

#include \"bindings/c/built_in_profile.h\"

namespace gpushare::abi {
namespace {

constexpr char kText[] =
${literals};

}  // namespace

absl::string_view BuiltInProfileText() { return absl::string_view(kText, sizeof(kText) - 1); }

}  // namespace gpushare::abi
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new")
