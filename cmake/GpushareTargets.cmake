# One place that says how a target of the project is compiled and what a layer may link.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# SHARED is for tools/mutation_test.py: a changed source relinks one library instead of every test.
set(GPUSHARE_LAYERS STATIC CACHE STRING "STATIC or SHARED: how the folders of src/ are linked")
if(NOT GPUSHARE_LAYERS STREQUAL "SHARED")
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_C_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Sanitized builds: optimised as far as that costs the compiler nothing, with line numbers for the
# reports and the library's own checks. gcc's -O1 takes twice as long to compile as its -Og; clang's -Og is its -O1.
# project() has put empty flags of this configuration into the cache by now.
foreach(language IN ITEMS C CXX)
  if(NOT CMAKE_${language}_FLAGS_SANITIZED)
    set(flags "-Og -g1")
    if(language STREQUAL "CXX")
      string(APPEND flags " -D_GLIBCXX_ASSERTIONS")
    endif()
    set(CMAKE_${language}_FLAGS_SANITIZED "${flags}" CACHE STRING
        "Flags of sanitized ${language} builds" FORCE)
  endif()
endforeach()

find_program(GPUSHARE_CCACHE ccache)
if(GPUSHARE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GPUSHARE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${GPUSHARE_CCACHE})
endif()

add_library(gpushare_options INTERFACE)
target_compile_options(gpushare_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion>
  # gcc 12 sees overlaps in std::string's operator+ that are not there (its bug 105651).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<AND:$<BOOL:${GPUSHARE_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)
target_include_directories(gpushare_options INTERFACE ${PROJECT_SOURCE_DIR})
if(GPUSHARE_SANITIZE)
  target_compile_options(gpushare_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${GPUSHARE_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  target_link_options(gpushare_options INTERFACE -fsanitize=${GPUSHARE_SANITIZE})
endif()
if(GPUSHARE_SANITIZE MATCHES "undefined")
  # clang links the runtime of these two checks into C++ programs alone, and C programs use the shared library too.
  target_compile_options(gpushare_options INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CXX_COMPILER_ID:Clang>>:-fno-sanitize=vptr,function>)
endif()
if(GPUSHARE_BUILD_FUZZERS)
  # Coverage of the library's code, which is what steers the fuzzers. Integer comparisons are not traced, which would
  # slow the tests of the same build; the sanitizer's runtime reports memcmp() and strcmp() to libFuzzer all the same.
  # The code of the tests steers nothing, and compiles a fifth faster without.
  set(covered $<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:GPUSHARE_IS_TEST>>>>)
  target_compile_options(gpushare_options INTERFACE
    $<${covered}:-fsanitize-coverage=inline-8bit-counters,pc-table>)
endif()
if(GPUSHARE_SANITIZE MATCHES "thread")
  # gcc cannot instrument fences and warns; the code that uses them is tested by its interleavings.
  target_compile_options(gpushare_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()

# Code whose time no test waits for: what reads files and arguments, and what calls the rest. clang compiles ten sources of
# the command with the address and the undefined-behaviour sanitizers in 90 s of CPU time at -Og and in 29 s at -O0.
add_library(gpushare_cold_options INTERFACE)
target_compile_options(gpushare_cold_options INTERFACE $<$<AND:$<CONFIG:Sanitized>,$<COMPILE_LANGUAGE:C,CXX>>:-O0>)

# gpushare_layer(NAME [COLD] SOURCES ... LINKS ...): a library of one folder under src/, as GPUSHARE_LAYERS says.
function(gpushare_layer name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} ${GPUSHARE_LAYERS} ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gpushare_options ${ARG_LINKS})
  if(ARG_COLD)
    gpushare_precompile(${name} COLD)
  else()
    gpushare_precompile(${name} LIBRARY)
  endif()
endfunction()
