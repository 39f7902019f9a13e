# Precompiled headers: what most files include is parsed once for all libraries and once for all
# tests, which a machine without a compiler cache gains by.
#
#   gpushare_precompile(TARGET LIBRARY|COLD|TEST)
#
# does nothing unless GPUSHARE_PRECOMPILED_HEADERS is ON. Only headers from outside the project are in
# them, so that no change of the project compiles everything again. With them a file need not include
# what it uses: clang-tidy and every build with the option OFF find that.
# nlohmann/json.hpp is left out: every file would take 0.5 s to load it, and the few that use it save no more.
# ccache keeps no such compilation unless it is told to be sloppy, so that OFF is the default.
#
# GPUSHARE_UNITY also compiles the sources of a library in groups, each as one file: a template that
# several of them use is compiled once a group. Four sources with JSON take 13 s of CPU time with the
# sanitizers instead of 22 s. cmake/unity_groups.py keeps sources apart whose names could clash; should
# names clash all the same, tools/common.sh builds without the option. Optimised, 17 sources of the planner take 8 s of
# CPU time as one group and 61 s one by one, so that the preset release has groups of 24.

include_guard(GLOBAL)

option(GPUSHARE_PRECOMPILED_HEADERS "Parse the headers from outside once" OFF)
option(GPUSHARE_UNITY "Compile the sources of a library in groups" OFF)
set(GPUSHARE_UNITY_SIZE 10 CACHE STRING "Sources of a group; fewer where names clash")

set(gpushare_precompiled_library
  <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque> <fstream> <functional>
  <limits> <map> <memory> <optional> <set> <sstream> <string> <thread> <unordered_map> <utility>
  <vector>
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/string_view.h> <absl/synchronization/mutex.h> <absl/types/span.h>)
set(gpushare_precompiled_cold ${gpushare_precompiled_library})
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
    set_target_properties(${name} PROPERTIES GPUSHARE_IS_TEST ON)
    target_link_libraries(${name} PRIVATE gpushare_test_options)
  else()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${name} PRIVATE gpushare_options)
    if(kind STREQUAL "COLD")
      target_link_libraries(${name} PRIVATE gpushare_cold_options)
    endif()
  endif()
  target_precompile_headers(${name} PRIVATE ${gpushare_precompiled_${lower}})
endfunction()

function(_gpushare_unity target)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(paths "")
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${folder})
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${path} NORMALIZE generated)
    if(path MATCHES "\\.cc$" AND NOT generated)
      list(APPEND paths ${path})
    endif()
  endforeach()
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py ${GPUSHARE_UNITY_SIZE} ${paths}
    OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" groups "${groups}")
  foreach(path group IN ZIP_LISTS paths groups)
    set(members ${groups})
    list(FILTER members INCLUDE REGEX "^${group}$")
    list(LENGTH members members)
    if(members EQUAL 1)
      continue()  # alone it is compiled as it is
    endif()
    set_source_files_properties(${path} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP group_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # gcc warns of a class with members of unnamed namespaces unless its file is the one that is compiled.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

function(gpushare_precompile target kind)
  if(NOT kind MATCHES "^(LIBRARY|COLD|TEST)$")
    message(FATAL_ERROR "gpushare_precompile(${target}) knows LIBRARY, COLD and TEST, and not '${kind}'.")
  endif()
  if(kind STREQUAL "COLD")
    target_link_libraries(${target} PRIVATE gpushare_cold_options)
  endif()
  if(GPUSHARE_UNITY AND NOT kind STREQUAL "TEST")
    _gpushare_unity(${target})
  endif()
  if(NOT GPUSHARE_PRECOMPILED_HEADERS)
    return()
  endif()
  _gpushare_precompiled_target(${kind} from)
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()
