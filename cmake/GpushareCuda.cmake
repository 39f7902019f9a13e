# Finds nvcc and enables the CUDA language, or says why the build goes on without it.
#
# GPUSHARE_CUDA:          AUTO (when nvcc works), ON (a missing or broken nvcc is an error; CI), OFF
# GPUSHARE_CUDA_TOOLKIT:  root of the toolkit to use, before the usual places
# Sets GPUSHARE_HAVE_CUDA. The runtime is linked statically and libcuda is opened at run time, so that
# the library loads on a machine without a driver.

include_guard(GLOBAL)

set(GPUSHARE_HAVE_CUDA OFF)
set(GPUSHARE_CUDA_TOOLKIT "" CACHE PATH "Root of the CUDA toolkit; empty: look for nvcc")

if(NOT GPUSHARE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "GPUSHARE_CUDA is '${GPUSHARE_CUDA}', and it must be AUTO, ON or OFF.")
endif()

if(GPUSHARE_CUDA STREQUAL "OFF")
  message(STATUS "gpushare: built without CUDA code (GPUSHARE_CUDA=OFF).")
  return()
endif()

find_program(GPUSHARE_NVCC nvcc
  HINTS ${GPUSHARE_CUDA_TOOLKIT}/bin
  PATHS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/build/cuda-toolchain/bin
  DOC "The CUDA compiler")
if(NOT GPUSHARE_NVCC)
  set(reason "nvcc was not found on PATH, in /usr/local/cuda or in build/cuda-toolchain")
  if(GPUSHARE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GPUSHARE_CUDA is ON, and ${reason}. tools/setup.sh --cuda installs it.")
  endif()
  message(STATUS "gpushare: built without CUDA code: ${reason}. tools/setup.sh --cuda installs it.")
  return()
endif()

# A wrapper script on PATH may stand before the compiler; CMake wants the compiler itself.
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${GPUSHARE_NVCC})
endif()
# Ampere, Hopper (with its architecture-specific instructions) and Blackwell.
set(gpushare_architectures 80-real 90a-real 100-real)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${gpushare_architectures})
endif()
# libgpushare.so has three small kernels: for all of these, and as PTX for what comes later.
set(GPUSHARE_LIBRARY_ARCHITECTURES ${gpushare_architectures} 80-virtual)
if(GPUSHARE_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "gpushare: built without CUDA code: ${GPUSHARE_NVCC} does not compile a test "
                   "program. GPUSHARE_CUDA=ON shows its error.")
    return()
  endif()
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
if(GPUSHARE_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${GPUSHARE_CCACHE})
endif()
set(GPUSHARE_HAVE_CUDA ON)
message(STATUS "gpushare: CUDA code is compiled with nvcc ${CMAKE_CUDA_COMPILER_VERSION}.")
