# How kernels that keep gpushare's kernel contract are compiled, in this tree and by a user of the
# installed package (it is installed beside gpushareConfig.cmake and needs nothing else of it).
#
#   gpushare_add_kernels(TARGET SOURCES file.cu... [ARCHITECTURES arch...] [OBJECT])
#
# TARGET is a static library (or an object library) of CUDA C++17 with the contract's headers, which
# whoever links it gets too. The project enables CUDA before. ARCHITECTURES, else
# CMAKE_CUDA_ARCHITECTURES, says for which GPUs; CMake's own default is old machine code that newer
# GPUs compile again when it is loaded, so name them: 80-real 90a-real 100-real, for example.

include_guard(GLOBAL)

function(gpushare_add_kernels target)
  cmake_parse_arguments(ARG "OBJECT" "" "SOURCES;ARCHITECTURES" ${ARGN})
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
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;-Xptxas=--warn-on-spills>)
  # Each variant is whole in its file: no device link step, and the optimiser sees everything.
  set_target_properties(${target} PROPERTIES
    CUDA_SEPARABLE_COMPILATION OFF
    POSITION_INDEPENDENT_CODE ON)
  if(ARG_ARCHITECTURES)
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${ARG_ARCHITECTURES}")
  endif()
endfunction()
