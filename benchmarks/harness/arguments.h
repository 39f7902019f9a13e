// The arguments of a benchmark, and its main function.
//
//   int Run(Arguments& given) {
//     const int repeats = given.Number("--repeats", 15, 1);
//     const bool verify = !given.Has("--no-verify");
//     given.Finish();
//     ...
//   }
//   int main(int argc, char** argv) { return Main("my_benchmark", argc, argv, Run); }
//
// An option is read once. Finish() refuses what no call has read and names the options that exist.
// Errors: Failure with exit code kBadUse.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_ARGUMENTS_H_
#define GPUSHARE_BENCHMARKS_HARNESS_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/harness/failure.h"

namespace gpushare::benchmarks {

// The items of a,b,c; empty ones are left out.
std::vector<std::string> Split(const std::string& text, char separator = ',');

class Arguments {
 public:
  explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {}

  // An option without a value.
  bool Has(const std::string& option);
  // Options with a value. A number below `least` is refused.
  std::optional<std::string> Value(const std::string& option);
  std::string Text(const std::string& option, const std::string& otherwise);
  int Number(const std::string& option, int otherwise, int least);
  double Real(const std::string& option, double otherwise, double least);
  // --seed, 1 unless it is given.
  uint64_t Seed();
  std::vector<std::string> List(const std::string& option, std::vector<std::string> otherwise);
  std::vector<int> Numbers(const std::string& option, std::vector<int> otherwise, int least);
  // After the last option.
  void Finish() const;

 private:
  std::vector<std::string> words_;    // that no call has read yet
  std::vector<std::string> options_;  // that calls have asked for
};

// Whether a list that the caller gave has the name; an empty list has all.
bool IsChosen(const std::vector<std::string>& chosen, const std::string& name);

// Runs the program; an uncaught Failure is printed to stderr after the program's name. Returns the
// exit code.
int Main(const char* program, int argc, char** argv, int (*run)(Arguments& given));

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_ARGUMENTS_H_
