# Abseil: the installed shared libraries, or a private copy inside libgpushare.so.
#
# GPUSHARE_ABSEIL_SOURCE: the unpacked source of the installed Abseil (tools/abseil_source.sh). Empty: the installed
# libraries.
#
# A package must run where Debian's Abseil is not installed, and beside a host's own Abseil. The source is then compiled
# into a static library whose symbols are hidden; Debian's archives are not position-independent
# (docs/decisions/0015-private-abseil.md). The project's code is compiled with the installed headers in both cases,
# and they must be those of the source.

include_guard(GLOBAL)

set(GPUSHARE_ABSEIL_SOURCE "" CACHE PATH "Source of the installed Abseil, to link it privately; empty: link the installed one")
if(NOT GPUSHARE_ABSEIL_SOURCE)
  find_package(absl REQUIRED)
  return()
endif()

# What the library and the tests use. The linker names what is missing.
set(sources "")
# gpushare_abseil_sources(FOLDER NAME...): FOLDER is below absl/; a name has no ending.
macro(gpushare_abseil_sources folder)
  foreach(name IN ITEMS ${ARGN})
    list(APPEND sources ${GPUSHARE_ABSEIL_SOURCE}/absl/${folder}/${name}.cc)
  endforeach()
endmacro()
gpushare_abseil_sources(base/internal cycleclock low_level_alloc raw_logging spinlock spinlock_wait strerror sysinfo
  thread_identity throw_delegate unscaledcycleclock)
gpushare_abseil_sources(container/internal raw_hash_set)
gpushare_abseil_sources(debugging stacktrace symbolize)
gpushare_abseil_sources(debugging/internal address_is_readable demangle elf_mem_image vdso_support)
gpushare_abseil_sources(hash/internal city hash low_level_hash)
gpushare_abseil_sources(numeric int128)
gpushare_abseil_sources(profiling/internal exponential_biased)
gpushare_abseil_sources(status status status_payload_printer statusor)
gpushare_abseil_sources(strings ascii charconv cord escaping match numbers str_cat str_replace str_split string_view
  substitute)
gpushare_abseil_sources(strings/internal charconv_bigint charconv_parse cord_internal cord_rep_btree
  cord_rep_btree_navigator cord_rep_btree_reader cord_rep_consume cord_rep_crc cord_rep_ring cordz_functions
  cordz_handle cordz_info escaping memutil utf8)
gpushare_abseil_sources(synchronization mutex)
gpushare_abseil_sources(synchronization/internal create_thread_identity per_thread_sem waiter)
gpushare_abseil_sources(time clock duration time)
gpushare_abseil_sources(time/internal/cctz/src time_zone_fixed time_zone_if time_zone_impl time_zone_info
  time_zone_libc time_zone_lookup time_zone_posix zone_info_source)

# Code that is compiled with one Abseil's headers and linked to another's code breaks silently.
find_path(GPUSHARE_ABSEIL_HEADERS absl/base/config.h REQUIRED)
set(folders base container debugging functional hash memory meta numeric profiling status strings synchronization time
  types utility)
list(TRANSFORM folders PREPEND ${GPUSHARE_ABSEIL_HEADERS}/absl/)
list(TRANSFORM folders APPEND /*.h)
file(GLOB_RECURSE headers RELATIVE ${GPUSHARE_ABSEIL_HEADERS} ${folders})
foreach(header IN LISTS headers)
  file(SHA256 ${GPUSHARE_ABSEIL_HEADERS}/${header} installed)
  set(given "missing")
  if(EXISTS ${GPUSHARE_ABSEIL_SOURCE}/${header})
    file(SHA256 ${GPUSHARE_ABSEIL_SOURCE}/${header} given)
  endif()
  if(NOT installed STREQUAL given)
    message(FATAL_ERROR "${GPUSHARE_ABSEIL_SOURCE} is not the source of the installed Abseil: ${header} differs. "
                        "tools/abseil_source.sh fetches the right one.")
  endif()
endforeach()

add_library(gpushare_abseil STATIC ${sources})
# In three groups: 20 s of CPU time instead of 110 s. Two sources are alone, because they declare names of others again.
set(strings ${sources})
list(FILTER strings INCLUDE REGEX "/absl/strings/")
list(FILTER strings EXCLUDE REGEX "/charconv_parse\\.cc$")
set(time ${sources})
list(FILTER time INCLUDE REGEX "/absl/time/")
list(FILTER time EXCLUDE REGEX "/time_zone_posix\\.cc$")
set(rest ${sources})
list(FILTER rest EXCLUDE REGEX "/absl/(strings|time)/")
foreach(group IN ITEMS strings time rest)
  set_source_files_properties(${${group}} PROPERTIES UNITY_GROUP ${group})
endforeach()
set_target_properties(gpushare_abseil PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
target_include_directories(gpushare_abseil PRIVATE ${GPUSHARE_ABSEIL_SOURCE})
# As Debian compiles it, also in Debug: without the detection of deadlocks, which needs more sources.
target_compile_definitions(gpushare_abseil PRIVATE NDEBUG)
target_compile_options(gpushare_abseil PRIVATE -w)
set_target_properties(gpushare_abseil PROPERTIES
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON
  CXX_CLANG_TIDY "")
target_link_libraries(gpushare_abseil PUBLIC Threads::Threads)
foreach(name IN ITEMS cleanup cord flat_hash_map function_ref hash span status statusor string_view strings synchronization
    time)
  add_library(absl::${name} ALIAS gpushare_abseil)
endforeach()
message(STATUS "gpushare: Abseil is linked privately.")
