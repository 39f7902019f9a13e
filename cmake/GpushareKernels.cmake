# How kernels that keep gpushare's kernel contract are compiled, in this tree and by a user of the
# installed package (it is installed beside gpushareConfig.cmake and needs nothing else of it).
#
#   gpushare_add_kernels(TARGET SOURCES file.cu... [ARCHITECTURES arch...] [OBJECT] [MAY_SPILL])
#
# TARGET is a static library (or an object library) of CUDA C++17 with the contract's headers, which
# whoever links it gets too. The project enables CUDA before. ARCHITECTURES, else
# CMAKE_CUDA_ARCHITECTURES, says for which GPUs; CMake's own default is old machine code that newer
# GPUs compile again when it is loaded, so name them: 80-real 90a-real 100-real, for example.
# Registers that spill are warned of, unless MAY_SPILL is given.
#
#   gpushare_add_fused_kernels(TARGET
#     TENSOR header.cuh:Body... CUDA header.cuh:Body... [PAIRS header.cuh:Body+header.cuh:Body...]
#     [RATIOS tensor blocks:CUDA-core blocks...] [FORMS plain setmaxnreg direct] [NAMESPACE name]
#     [PER_FILE kernels] [ARCHITECTURES arch...] [OBJECT])
#
# Every Tensor-core body fused with every CUDA-core body (fused.cuh), at every ratio, in every form;
# `direct` at 1:1 only; and the pairs of PAIRS, whose first body takes the Tensor-core part. A
# variant that no GPU can run is compiled to nothing and keeps its row. Without RATIOS: 1:1, which
# needs least, so that a pair without it has no feasible ratio at all.
# Headers are included as they are written; bodies are in NAMESPACE. PER_FILE, 6 unless it is said,
# is how many CUDA-core bodies share a generated file: fewer compile side by side, and read more
# headers. The kernel of the bodies gpushare_a and gpushare_b is called gpushare_a_with_b_1_2, with
# _setmaxnreg or _direct behind; the generated table is
#   extern "C" const gpushare_fused_kernel* TARGET_table(size_t* count);

include_guard(GLOBAL)

function(gpushare_add_kernels target)
  cmake_parse_arguments(ARG "OBJECT;MAY_SPILL" "" "SOURCES;ARCHITECTURES" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gpushare_add_kernels(${target}) does not know '${ARG_UNPARSED_ARGUMENTS}'.")
  endif()
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "gpushare_add_kernels(${target}) has no SOURCES, and it needs at least one.")
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "gpushare_add_kernels(${target}) needs the CUDA language: "
                        "enable_language(CUDA) comes before it.")
  endif()
  # In the tree the headers stand beside cmake/, installed they are under the same prefix.
  find_path(GPUSHARE_KERNEL_INCLUDE_DIR gpushare/device/launch.h
    PATHS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include
          ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../../include
          ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../../../include
    NO_DEFAULT_PATH DOC "Headers of gpushare's kernel contract")
  if(NOT GPUSHARE_KERNEL_INCLUDE_DIR)
    message(FATAL_ERROR "gpushare_add_kernels(${target}) does not find gpushare/device/launch.h.")
  endif()

  if(ARG_OBJECT)
    add_library(${target} OBJECT ${ARG_SOURCES})
  else()
    add_library(${target} STATIC ${ARG_SOURCES})
  endif()
  target_include_directories(${target} PUBLIC ${GPUSHARE_KERNEL_INCLUDE_DIR})
  target_compile_features(${target} PUBLIC cuda_std_17)
  # Line numbers for profilers; a spill costs a worker more than it looks, so it is told.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
  if(NOT ARG_MAY_SPILL)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=--warn-on-spills>)
  endif()
  # Each variant is whole in its file: no device link step, and the optimiser sees everything.
  set_target_properties(${target} PROPERTIES
    CUDA_SEPARABLE_COMPILATION OFF
    POSITION_INDEPENDENT_CODE ON)
  if(ARG_ARCHITECTURES)
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${ARG_ARCHITECTURES}")
  endif()
endfunction()

# The body and the header of "header.cuh:Body", and the body's name without gpushare_.
function(_gpushare_fused_part item header body short)
  if(NOT item MATCHES "^([^:]+):([A-Za-z_0-9]+)$")
    message(FATAL_ERROR "gpushare_add_fused_kernels takes parts as header.cuh:Body, and not '${item}'.")
  endif()
  set(${header} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set(${body} "${CMAKE_MATCH_2}" PARENT_SCOPE)
  string(REGEX REPLACE "^gpushare_" "" name "${CMAKE_MATCH_2}")
  set(${short} "${name}" PARENT_SCOPE)
endfunction()

# Writes only what has changed, so that nothing is compiled again.
function(_gpushare_write_if_different file content)
  if(EXISTS ${file})
    file(READ ${file} old)
    if(old STREQUAL content)
      return()
    endif()
  endif()
  file(WRITE ${file} "${content}")
endfunction()

# The variants of one pair: the caller's pair_macros are their kernels, pair_names what their host
# functions are called, pair_rows their lines of the table.
function(_gpushare_fused_pair tensor tensor_short cuda cuda_short ratios forms)
  set(kernels "")
  set(names "")
  set(rows "")
  set(form_plain 0)
  set(form_setmaxnreg 1)
  set(form_direct 2)
  set(suffix_plain "")
  set(suffix_setmaxnreg "_setmaxnreg")
  set(suffix_direct "_direct")
  foreach(form IN LISTS forms)
    if(NOT DEFINED form_${form})
      message(FATAL_ERROR "gpushare_add_fused_kernels has the forms plain, setmaxnreg and direct, and not '${form}'.")
    endif()
    set(form_ratios ${ratios})
    if(form STREQUAL "direct")
      set(form_ratios 1:1)
    endif()
    foreach(ratio IN LISTS form_ratios)
      if(NOT ratio MATCHES "^([1-9][0-9]*):([1-9][0-9]*)$")
        message(FATAL_ERROR "gpushare_add_fused_kernels takes ratios as 2:1, and not '${ratio}'.")
      endif()
      set(a ${CMAKE_MATCH_1})
      set(b ${CMAKE_MATCH_2})
      set(name "gpushare_${tensor_short}_with_${cuda_short}_${a}_${b}${suffix_${form}}")
      string(APPEND kernels
        "GPUSHARE_FUSED_KERNEL(${name}, ${tensor}, ${a}, ${cuda}, ${b}, ${form_${form}})@SEMICOLON@\n")
      list(APPEND names ${name}_variants)
      string(APPEND rows
        "    {\"${name}\", \"${tensor_short}\", \"${cuda_short}\", ${a}, ${b}, ${form_${form}}, ${name}_variants},\n")
    endforeach()
  endforeach()
  set(pair_macros "${kernels}" PARENT_SCOPE)
  set(pair_names "${names}" PARENT_SCOPE)
  set(pair_rows "${rows}" PARENT_SCOPE)
endfunction()

# The source of the kernels of some pairs.
function(_gpushare_fused_source file target includes content)
  string(REPLACE "@SEMICOLON@" ";" content "${content}")
  _gpushare_write_if_different(${file}
    "// Generated by gpushare_add_fused_kernels(${target}).\n\n#include <gpushare/device/fused.cuh>\n\n${includes}\n${content}")
endfunction()

# The table's source: declarations of the host functions, then the rows.
function(_gpushare_fused_table file target names rows)
  set(declarations "")
  foreach(name IN LISTS names)
    string(APPEND declarations "int ${name}(gpushare_fused_variants* out);\n")
  endforeach()
  _gpushare_write_if_different(${file} "// Generated by gpushare_add_fused_kernels(${target}).

#include <gpushare/device/fused_variants.h>

#include <cstddef>

extern \"C\" {
${declarations}
const gpushare_fused_kernel* ${target}_table(size_t* count);
}

const gpushare_fused_kernel* ${target}_table(size_t* count) {
  static const gpushare_fused_kernel kAll[] = {
${rows}  };
  *count = sizeof(kAll) / sizeof(kAll[0]);
  return kAll;
}
")
endfunction()

function(gpushare_add_fused_kernels target)
  cmake_parse_arguments(ARG "OBJECT" "NAMESPACE;PER_FILE" "TENSOR;CUDA;PAIRS;RATIOS;FORMS;ARCHITECTURES" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gpushare_add_fused_kernels(${target}) does not know '${ARG_UNPARSED_ARGUMENTS}'.")
  endif()
  if(NOT (ARG_TENSOR AND ARG_CUDA) AND NOT ARG_PAIRS)
    message(FATAL_ERROR "gpushare_add_fused_kernels(${target}) needs TENSOR and CUDA bodies, or PAIRS.")
  endif()
  if(NOT ARG_CUDA)
    set(ARG_TENSOR "")
  endif()
  if(NOT ARG_RATIOS)
    set(ARG_RATIOS 1:1)
  endif()
  if(NOT ARG_FORMS)
    set(ARG_FORMS plain setmaxnreg)
  endif()
  if(NOT ARG_PER_FILE)
    set(ARG_PER_FILE 6)
  endif()
  set(open "")
  set(close "")
  if(ARG_NAMESPACE)
    set(open "namespace ${ARG_NAMESPACE} {\n\n")
    set(close "\n}  // namespace ${ARG_NAMESPACE}\n")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_generated)
  file(MAKE_DIRECTORY ${folder})
  list(LENGTH ARG_CUDA cuda_last)
  math(EXPR cuda_last "${cuda_last} - 1")
  set(sources "")
  set(names "")
  set(rows "")
  foreach(tensor_part IN LISTS ARG_TENSOR)
    _gpushare_fused_part("${tensor_part}" tensor_header tensor tensor_short)
    set(file_index 0)
    foreach(begin RANGE 0 ${cuda_last} ${ARG_PER_FILE})
      list(SUBLIST ARG_CUDA ${begin} ${ARG_PER_FILE} here)
      set(includes "#include \"${tensor_header}\"\n")
      set(macros "")
      foreach(cuda_part IN LISTS here)
        _gpushare_fused_part("${cuda_part}" cuda_header cuda cuda_short)
        string(APPEND includes "#include \"${cuda_header}\"\n")
        _gpushare_fused_pair(${tensor} ${tensor_short} ${cuda} ${cuda_short}
          "${ARG_RATIOS}" "${ARG_FORMS}")
        string(APPEND macros "${pair_macros}")
        string(APPEND rows "${pair_rows}")
        list(APPEND names ${pair_names})
      endforeach()
      set(file ${folder}/${tensor_short}_${file_index}.cu)
      _gpushare_fused_source(${file} ${target} "${includes}" "${open}${macros}${close}")
      list(APPEND sources ${file})
      math(EXPR file_index "${file_index} + 1")
    endforeach()
  endforeach()
  foreach(pair IN LISTS ARG_PAIRS)
    if(NOT pair MATCHES "^([^+]+)[+]([^+]+)$")
      message(FATAL_ERROR "gpushare_add_fused_kernels takes PAIRS as header.cuh:Body+header.cuh:Body, and not '${pair}'.")
    endif()
    set(cuda_part "${CMAKE_MATCH_2}")
    _gpushare_fused_part("${CMAKE_MATCH_1}" tensor_header tensor tensor_short)
    _gpushare_fused_part("${cuda_part}" cuda_header cuda cuda_short)
    _gpushare_fused_pair(${tensor} ${tensor_short} ${cuda} ${cuda_short}
      "${ARG_RATIOS}" "${ARG_FORMS}")
    foreach(name IN LISTS pair_names)
      if(name IN_LIST names)
        message(FATAL_ERROR "gpushare_add_fused_kernels(${target}) is given the pair '${pair}' twice.")
      endif()
    endforeach()
    string(APPEND rows "${pair_rows}")
    list(APPEND names ${pair_names})
    set(file ${folder}/${tensor_short}_with_${cuda_short}.cu)
    _gpushare_fused_source(${file} ${target}
      "#include \"${tensor_header}\"\n#include \"${cuda_header}\"\n" "${open}${pair_macros}${close}")
    list(APPEND sources ${file})
  endforeach()
  _gpushare_fused_table(${folder}/table.cc ${target} "${names}" "${rows}")

  set(options MAY_SPILL)  # calibration drops what does
  if(ARG_OBJECT)
    list(APPEND options OBJECT)
  endif()
  gpushare_add_kernels(${target} SOURCES ${sources} ARCHITECTURES ${ARG_ARCHITECTURES} ${options})
  target_sources(${target} PRIVATE ${folder}/table.cc)
endfunction()
