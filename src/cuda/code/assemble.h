// From PTX to the code of a GPU: the cache first, then the assemblers in turn.
//
// Where in the flow: a registration. Invariants: if an assembler is missing, or its version cannot
// read the text, the next one is tried. If the driver cannot load the result (INVALID_ARGUMENT,
// UNIMPLEMENTED, INTERNAL), the result is taken out of the cache and the next assembler is tried.
// The cache keeps only code that the driver has loaded.
// Threads: one at a time.

#ifndef GPUSHARE_SRC_CUDA_CODE_ASSEMBLE_H_
#define GPUSHARE_SRC_CUDA_CODE_ASSEMBLE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/cuda/code/code_cache.h"

namespace gpushare::cuda {

// A program that makes code of PTX.
class Assembler {
 public:
  virtual ~Assembler() = default;

  // With its version: code of another one is not taken from the cache. "nvJitLink 13.0".
  virtual std::string Name() const = 0;
  // All else that decides which code comes out.
  virtual std::string Options() const = 0;
  // A cubin. INVALID_ARGUMENT: it does not take the text, with its own words; otherwise it failed.
  virtual absl::StatusOr<std::string> Assemble(absl::string_view text,
                                               absl::string_view architecture) const = 0;
};

// What a GPU of this compute capability runs: "sm_90a", with its own instructions where it has
// some.
std::string ArchitectureOf(int major, int minor);

// The first lines of what an assembler says, as one.
std::string Excerpt(absl::string_view log);

class Assembly {
 public:
  Assembly(CodeCache cache, std::string architecture)
      : cache_(std::move(cache)), architecture_(std::move(architecture)) {}

  // Behind those that are there.
  void Add(std::unique_ptr<Assembler> assembler) { assemblers_.push_back(std::move(assembler)); }

  // Makes code of the text and gives it to `load`, until it takes some. `form` says which forms the
  // text has. Errors: that of the last assembler or load, with the words of all; UNAVAILABLE there
  // is no assembler. An error that is no fault of the code comes at once.
  absl::Status Make(absl::string_view text, absl::string_view form,
                    absl::FunctionRef<absl::Status(absl::string_view code)> load) const;

 private:
  absl::Status MakeWith(const Assembler& assembler, absl::string_view text, absl::string_view form,
                        absl::FunctionRef<absl::Status(absl::string_view code)> load) const;

  const CodeCache cache_;
  const std::string architecture_;
  std::vector<std::unique_ptr<Assembler>> assemblers_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_ASSEMBLE_H_
