# Precompiled headers: what most files include is parsed once for all libraries and once for all
# tests, which a machine without a compiler cache gains by.
#
#   gpushare_precompile(TARGET LIBRARY|TEST)
#
# does nothing unless GPUSHARE_PRECOMPILED_HEADERS is ON. Only headers from outside the project are in
# them, so that no change of the project compiles everything again. With them a file need not include
# what it uses: clang-tidy and every build with the option OFF find that.
# ccache keeps no such compilation unless it is told to be sloppy, so that OFF is the default.

include_guard(GLOBAL)

option(GPUSHARE_PRECOMPILED_HEADERS "Parse the headers from outside once" OFF)

set(gpushare_precompiled_library
  <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque> <fstream> <functional>
  <limits> <map> <memory> <optional> <set> <sstream> <string> <thread> <unordered_map> <utility>
  <vector>
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/string_view.h> <absl/synchronization/mutex.h> <absl/types/span.h>
  <nlohmann/json.hpp>)
set(gpushare_precompiled_test ${gpushare_precompiled_library} <gmock/gmock.h> <gtest/gtest.h>)

# The target whose precompiled headers those of `kind` are. An executable's code is compiled otherwise
# (-fPIE) than a library's (-fPIC), and the headers go with it.
function(_gpushare_precompiled_target kind out)
  string(TOLOWER ${kind} lower)
  set(name gpushare_precompiled_${lower})
  set(${out} ${name} PARENT_SCOPE)
  if(TARGET ${name})
    return()
  endif()
  set(source ${PROJECT_BINARY_DIR}/${name}.cc)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "int main() { return 0; }\n")
  endif()
  # Whoever takes them must be compiled with the same options.
  if(kind STREQUAL "TEST")
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${name} PRIVATE gpushare_test_options)
  else()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${name} PRIVATE gpushare_options)
  endif()
  target_precompile_headers(${name} PRIVATE ${gpushare_precompiled_${lower}})
endfunction()

function(gpushare_precompile target kind)
  if(NOT GPUSHARE_PRECOMPILED_HEADERS)
    return()
  endif()
  if(NOT kind MATCHES "^(LIBRARY|TEST)$")
    message(FATAL_ERROR "gpushare_precompile(${target}) knows LIBRARY and TEST, and not '${kind}'.")
  endif()
  _gpushare_precompiled_target(${kind} from)
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()
