# Shared libraries that run where glibc and libstdc++ are older than this machine's: RHEL 8, Debian 11, Ubuntu 20.04.
#
# GPUSHARE_GLIBC_STUBS: a folder of tools/glibc_stubs.sh, which has the names and versions of the symbols of glibc 2.28.
# Empty: libraries need this machine's glibc and libstdc++.
#
# The objects stay those of the ordinary build; only the link differs (docs/decisions/0019-old-glibc.md). Programs are not
# linked so: their start-up code is this machine's, and an older glibc would not run their constructors.

include_guard(GLOBAL)

set(GPUSHARE_GLIBC_STUBS "" CACHE PATH "Folder of tools/glibc_stubs.sh: libraries then need glibc 2.28 alone; empty: this machine's")

# gpushare_link_portable(TARGET): a shared library or module of the packages.
function(gpushare_link_portable target)
  if(NOT GPUSHARE_GLIBC_STUBS)
    return()
  endif()
  if(NOT EXISTS ${GPUSHARE_GLIBC_STUBS}/libc.so.6)
    message(FATAL_ERROR "GPUSHARE_GLIBC_STUBS is '${GPUSHARE_GLIBC_STUBS}', and there is no libc.so.6 in it. tools/glibc_stubs.sh makes it.")
  endif()
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/bindings/c/old_glibc.c)
  # The folder stands before the compiler's own, so that -lc, -lm and the rest are found there. In glibc 2.28 threads and
  # dlopen have libraries of their own, which the library must name.
  target_link_options(${target} PRIVATE -L${GPUSHARE_GLIBC_STUBS} -static-libstdc++ LINKER:--exclude-libs,ALL)
  target_link_libraries(${target} PRIVATE -lpthread -ldl -lrt -lm)
endfunction()
