// Twins of kernels as text, by a library of its own: libgpushare_ptx.so, CMake target
// gpushare::ptx.
//
// For what makes or checks twins where nothing runs: a compiler's plug-in, a build step, a tool. It
// needs neither CUDA nor libgpushare.so. A program that links libgpushare.so does not need it:
// gpushare_kernel_register_ptx and gpushare_ptx_check have the same code inside (docs/ptx.md).
// This header compiles alone as C99 to C23 and as C++17 to C++23.
//
// The interface has a version of its own, and it is 0: any release may remove or change functions,
// structs, the numbers of values, and what is refused. The SONAME stays libgpushare_ptx.so.0 then,
// so that the loader does not notice. Build with the header of the release that you run. A struct
// that grew is refused with GPUSHARE_TWIN_INVALID_ARGUMENT by its struct_size; other changes are
// not found. From version 1 on the rules are those of gpushare.h.
//
//   gpushare_twin_options options = GPUSHARE_TWIN_OPTIONS_INIT;
//   options.text = text;                     // ends with a NUL, or text_bytes says its length
//   options.forms = GPUSHARE_TWIN_WORKERS | GPUSHARE_TWIN_SLICE;  // 0: only the check
//   gpushare_twin* twin = NULL;
//   if (gpushare_twin_create(&options, &twin) != GPUSHARE_TWIN_OK) return 1;
//   gpushare_twin_facts facts = GPUSHARE_TWIN_FACTS_INIT;
//   gpushare_twin_get_facts(twin, &facts);
//   if (facts.refusal[0] != 0) report(facts.line, facts.reason, facts.refusal);
//   else assemble(facts.module, facts.module_bytes);
//   gpushare_twin_release(twin);
//
// Functions: any thread; none keeps state, prints or throws.

#ifndef GPUSHARE_PTX_H_
#define GPUSHARE_PTX_H_

#include <stddef.h>
#include <stdint.h>

#define GPUSHARE_TWIN_VERSION 0

#if defined(__GNUC__) || defined(__clang__)
#define GPUSHARE_TWIN_API __attribute__((visibility("default")))
#else
#define GPUSHARE_TWIN_API
#endif

#ifdef __cplusplus
#define GPUSHARE_TWIN_NOEXCEPT noexcept
extern "C" {
#else
#define GPUSHARE_TWIN_NOEXCEPT
#endif

typedef int32_t gpushare_twin_status;
enum gpushare_twin_status_value {
  GPUSHARE_TWIN_OK = 0,  // also where the kernel is refused: the facts say so
  GPUSHARE_TWIN_INVALID_ARGUMENT =
      1,  // a null pointer, no text, unknown forms, a wrong struct_size
  GPUSHARE_TWIN_OUT_OF_MEMORY = 2
};

enum gpushare_twin_form_bit {
  GPUSHARE_TWIN_WORKERS = 2,  // claims block tasks, and leaves when it is evicted
  GPUSHARE_TWIN_SLICE = 4     // runs a range of block tasks
};

typedef struct gpushare_twin_options {
  uint32_t struct_size;
  uint32_t forms;       // twins behind the original, of gpushare_twin_form_bit; 0: only the check
  const char* text;     // PTX
  uint64_t text_bytes;  // 0: up to the NUL
  const char* entry;    // the kernel; null: the only one
  uint32_t worker_registers_max;  // a thread, by .maxnreg; 0: the assembler decides
  uint32_t slice_registers_max;   // the same
} gpushare_twin_options;
#define GPUSHARE_TWIN_OPTIONS_INIT \
  { sizeof(gpushare_twin_options), 0, NULL, 0, NULL, 0, 0 }

// What the text says about the kernel. Pointers are the twin's, and never null. The numbers are 0
// where the kernel is refused.
typedef struct gpushare_twin_facts {
  uint32_t struct_size;
  uint32_t line;                 // of the refusal, from 1; 0: the text as a whole, or no refusal
  const char* reason;            // of docs/ptx.md: "none", "unknown opcode", ...
  const char* refusal;           // a sentence; "" where there is none
  const char* module;            // the text with its twins; "" where refused or not asked for
  uint64_t module_bytes;         // without the NUL
  const char* entry;             // the kernel
  const char* worker_entry;      // "" where not made
  const char* slice_entry;       // the same
  uint32_t parameter_count;      // of the original; a twin has the launch header before them
  uint32_t parameters_bytes;     // with their alignment
  uint32_t block_required[3];    // .reqntid; zeros: not stated
  uint32_t block_max[3];         // .maxntid; the same
  uint32_t static_shared_bytes;  // of the original
  uint32_t twin_shared_bytes;    // what a worker adds
  uint32_t dynamic_shared;       // 1: has an extern .shared array
  uint32_t early_exits;          // 1: some threads may end before the others' last barrier
  uint32_t uses_grid_size;       // 1: reads %nctaid
  uint32_t instructions;
  uint32_t needs_flat_block;  // 1: launch twins with blocks of one dimension alone
  uint32_t reserved;
} gpushare_twin_facts;
#define GPUSHARE_TWIN_FACTS_INIT                                                            \
  {                                                                                         \
    sizeof(gpushare_twin_facts), 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, {0, 0, 0}, \
        {0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0                                                   \
  }

typedef struct gpushare_twin gpushare_twin;

// GPUSHARE_TWIN_VERSION of the library.
GPUSHARE_TWIN_API uint32_t gpushare_twin_version(void) GPUSHARE_TWIN_NOEXCEPT;

// Checks a kernel and makes its twins. Owns: the caller gets the twin; the text may go.
// Blocks: for about 1 ms a kernel, at most about a second of processor time.
GPUSHARE_TWIN_API gpushare_twin_status gpushare_twin_create(
    const gpushare_twin_options* options, gpushare_twin** out_twin) GPUSHARE_TWIN_NOEXCEPT;

// Owns: the pointers are valid until the twin's release.
GPUSHARE_TWIN_API gpushare_twin_status gpushare_twin_get_facts(
    const gpushare_twin* twin, gpushare_twin_facts* out_facts) GPUSHARE_TWIN_NOEXCEPT;

// Null is allowed.
GPUSHARE_TWIN_API void gpushare_twin_release(gpushare_twin* twin) GPUSHARE_TWIN_NOEXCEPT;

// The names of a text's kernels, one a line, in its order; "" where it does not parse. Writes what
// fits, and a NUL. Returns the bytes that all need, with the NUL; 0 without a text or memory.
// `buffer` may be null if `buffer_bytes` is 0. `text_bytes` 0: up to the NUL.
GPUSHARE_TWIN_API uint64_t gpushare_twin_entries(const char* text, uint64_t text_bytes,
                                                 char* buffer,
                                                 uint64_t buffer_bytes) GPUSHARE_TWIN_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif  // GPUSHARE_PTX_H_
