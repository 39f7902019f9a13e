# How a test of the project is declared: one GoogleTest executable is one ctest entry.
#
#   gpushare_test(NAME name SOURCES file... [LINKS target...] [LABELS label...] [TIMEOUT seconds]
#                 [ARGS argument...] [ENVIRONMENT variable=value...] [NO_MAIN])
#   gpushare_script_test(NAME name COMMAND command... [LABELS label...] [TIMEOUT seconds] ...)
#
# Labels that the test presets and scripts know:
#   gpu       needs a GPU; skips, visibly, where there is none
#   slow      left out under sanitizers, where it would take many minutes
#   threaded  several threads touch the same objects: runs under the thread sanitizer
#   gate      a check of the sources or of the ABI, not of a run: left out under sanitizers
#   perf      asserts a time: left out under sanitizers and in Debug
# What sanitizers leave out is not built with them either, unless by its name.
# The target tests_LABEL builds the executables of one label.
# A test that exits with 77 is reported as skipped.

include_guard(GLOBAL)
include(CMakeParseArguments)

find_package(GTest REQUIRED)

# A test's time is spent in the library; optimising the templates of the test itself is not worth it.
add_library(gpushare_test_options INTERFACE)
target_link_libraries(gpushare_test_options INTERFACE gpushare_options GTest::gtest GTest::gmock)
target_compile_options(gpushare_test_options INTERFACE
  $<$<AND:$<CONFIG:Sanitized>,$<COMPILE_LANGUAGE:C,CXX>>:-O0>)

set(GPUSHARE_TEST_TIMEOUT 300 CACHE STRING "Seconds that a test may take unless it says otherwise")

# A test that calls no CUDA code runs the same code with the address sanitizer. Where that has just passed, as in continuous
# integration, the build without sanitizers does not repeat it. There gcc compiles these tests for their warnings alone
# (tools/check_warnings.py), and clang for their code.
set(GPUSHARE_TESTS ALL CACHE STRING "ALL, or NOT_SANITIZED: only those that differ in a sanitized build")
if(NOT GPUSHARE_TESTS MATCHES "^(ALL|NOT_SANITIZED)$")
  message(FATAL_ERROR "GPUSHARE_TESTS is '${GPUSHARE_TESTS}', and it must be ALL or NOT_SANITIZED.")
endif()
# These call no CUDA code and are repeated: the first three run a few of their seeds with a sanitizer, the next two count
# allocations, which a sanitizer replaces, and the others look for a device, a driver or the library's own symbols.
set(gpushare_repeated_tests fault_simulation_test bounds_property_test policies_property_test
  no_allocation_test policies_allocation_test
  faults_device_test environment_test process_manners_test tools_command_test tools_workloads_test)

# The tests that take longest start first, so that none is left to run alone at the end.
set(gpushare_long_tests
  python_ray tail_credit_test calibration_test bounds_property_test tools_profile_files_test lc_gate_test
  tools_fused_test segments_beside_queries_test
  tools_models_test sim_measured_colocation_test fault_simulation_test api_sequence_fuzzer_replay
  tools_moving_loads_test tools_h200_measured_test tools_command_test tools_h200_gpu_test
  sim_tiers_agree_test policies_property_test c_api_test tools_real_time_test)

function(_gpushare_test_properties name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT ${GPUSHARE_TEST_TIMEOUT})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
  list(FIND gpushare_long_tests ${name} place)
  if(NOT place EQUAL -1)
    math(EXPR cost "100 - ${place}")
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
  if(ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
    if("gpu" IN_LIST ARG_LABELS)
      set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
    endif()
  endif()
  if(ARG_ENVIRONMENT)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ARG_ENVIRONMENT}")
  endif()
endfunction()

function(gpushare_test)
  cmake_parse_arguments(ARG "NO_MAIN" "NAME;TIMEOUT" "SOURCES;LINKS;LABELS;ARGS;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gpushare_test(${ARG_NAME}) does not know '${ARG_UNPARSED_ARGUMENTS}'.")
  endif()
  if(NOT GPUSHARE_BUILD_TESTS)
    return()
  endif()
  set(excluded "")
  if(GPUSHARE_SANITIZE)
    if(ARG_LABELS MATCHES "(^|;)(slow|gate|perf|gpu)(;|$)")
      set(excluded EXCLUDE_FROM_ALL)
    endif()
  elseif(GPUSHARE_TESTS STREQUAL "NOT_SANITIZED" AND NOT ARG_LABELS AND NOT ARG_NAME IN_LIST gpushare_repeated_tests
         AND NOT ARG_LINKS MATCHES "gpushare_(cuda|[a-z_]*kernels)(;|$)")
    set(excluded EXCLUDE_FROM_ALL)
    set_property(GLOBAL APPEND PROPERTY gpushare_sanitized_tests ${ARG_NAME})
  endif()
  add_executable(${ARG_NAME} ${excluded} ${ARG_SOURCES})
  set_target_properties(${ARG_NAME} PROPERTIES GPUSHARE_IS_TEST ON)
  target_link_libraries(${ARG_NAME} PRIVATE gpushare_test_options ${ARG_LINKS} GTest::gtest GTest::gmock)
  if(NOT ARG_NO_MAIN)
    target_link_libraries(${ARG_NAME} PRIVATE GTest::gtest_main)
  endif()
  gpushare_precompile(${ARG_NAME} TEST)
  if(excluded)
    return()
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} ${ARG_ARGS})
  _gpushare_test_properties(${ARG_NAME} TIMEOUT ${ARG_TIMEOUT} LABELS ${ARG_LABELS}
                            ENVIRONMENT ${ARG_ENVIRONMENT})
  foreach(label IN LISTS ARG_LABELS)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${ARG_NAME})
  endforeach()
endfunction()

# The tests that NOT_SANITIZED leaves out, a name a line, for tools/check_warnings.py. After the last gpushare_test.
function(gpushare_list_sanitized_tests)
  get_property(tests GLOBAL PROPERTY gpushare_sanitized_tests)
  string(REPLACE ";" "\n" names "${tests}")
  file(WRITE ${PROJECT_BINARY_DIR}/sanitized_tests.txt "${names}\n")
endfunction()

# A test that is a command: a script, an example, the tool with arguments.
function(gpushare_script_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gpushare_script_test(${ARG_NAME}) does not know '${ARG_UNPARSED_ARGUMENTS}'.")
  endif()
  if(NOT GPUSHARE_BUILD_TESTS)
    return()
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND})
  _gpushare_test_properties(${ARG_NAME} TIMEOUT ${ARG_TIMEOUT} LABELS ${ARG_LABELS}
                            ENVIRONMENT ${ARG_ENVIRONMENT})
endfunction()
