# The layer rules of the sources, checked in every build: a file that includes what its layer may not
# use fails the target `gpushare_check_layers`, and with it the build. So does a circle of Python imports.

include_guard(GLOBAL)
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
file(GLOB_RECURSE gpushare_checked_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/*.h ${PROJECT_SOURCE_DIR}/src/*.cc ${PROJECT_SOURCE_DIR}/src/*.cu
  ${PROJECT_SOURCE_DIR}/src/*.cuh ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/*.hpp
  ${PROJECT_SOURCE_DIR}/include/*.cuh ${PROJECT_SOURCE_DIR}/bindings/*.h
  ${PROJECT_SOURCE_DIR}/bindings/*.cc ${PROJECT_SOURCE_DIR}/tools/*.h ${PROJECT_SOURCE_DIR}/tools/*.cc
  ${PROJECT_SOURCE_DIR}/examples/*.c ${PROJECT_SOURCE_DIR}/examples/*.cc
  ${PROJECT_SOURCE_DIR}/kernels/*.h ${PROJECT_SOURCE_DIR}/kernels/*.cc ${PROJECT_SOURCE_DIR}/kernels/*.cu
  ${PROJECT_SOURCE_DIR}/kernels/*.cuh
  ${PROJECT_SOURCE_DIR}/benchmarks/*.cc ${PROJECT_SOURCE_DIR}/benchmarks/*.cu
  ${PROJECT_SOURCE_DIR}/examples/*.cu ${PROJECT_SOURCE_DIR}/tools/*.cu)
set(stamp ${PROJECT_BINARY_DIR}/layers.stamp)
add_custom_command(OUTPUT ${stamp}
  COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/check_layers.py --root ${PROJECT_SOURCE_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/check_layers.py ${PROJECT_SOURCE_DIR}/tools/gate.py ${gpushare_checked_sources}
  COMMENT "Checking the layer rules" VERBATIM)
set(imports ${PROJECT_BINARY_DIR}/imports)
add_custom_command(OUTPUT ${imports}.stamp
  COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/check_imports.py --root ${PROJECT_SOURCE_DIR}
          --depfile ${imports}.d
  COMMAND ${CMAKE_COMMAND} -E touch ${imports}.stamp
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/check_imports.py ${PROJECT_SOURCE_DIR}/tools/check_layers.py
          ${PROJECT_SOURCE_DIR}/tools/gate.py
  DEPFILE ${imports}.d COMMENT "Checking the Python imports for circles" VERBATIM)
add_custom_target(gpushare_check_layers ALL DEPENDS ${stamp} ${imports}.stamp)
