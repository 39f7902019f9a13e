// Drives a libFuzzer target without libFuzzer: its corpus first, then seeded random inputs, some of
// them made by mutating the corpus. The same arguments give the same inputs on every machine.
//
//   NAME_replay [--runs N] [--seed N] [--corpus FOLDER]
//
// The target may define LLVMFuzzerInitialize; it must define LLVMFuzzerTestOneInput.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace {

using Input = std::vector<uint8_t>;

constexpr size_t kInputBytesMax = 4096;

std::vector<Input> ReadCorpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // the order of a folder differs between machines
  std::vector<Input> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// std::uniform_int_distribution differs between standard libraries; the engine does not.
size_t Below(std::mt19937_64& random, size_t limit) {
  return limit == 0 ? 0 : static_cast<size_t>(random() % limit);
}

Input RandomBytes(std::mt19937_64& random) {
  Input input(Below(random, kInputBytesMax));
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  return input;
}

// Flips, cuts, repeats and overwrites pieces of one input.
Input Mutated(std::mt19937_64& random, Input input) {
  const size_t steps = 1 + Below(random, 8);
  for (size_t step = 0; step < steps; ++step) {
    if (input.empty()) return RandomBytes(random);
    const size_t at = Below(random, input.size());
    const size_t length = 1 + Below(random, std::min<size_t>(input.size() - at, 64));
    const auto begin = input.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    switch (random() % 5) {
      case 0:
        *begin = static_cast<uint8_t>(*begin ^ (1U << (random() % 8)));
        break;
      case 1:
        input.erase(begin, end);
        break;
      case 2: {
        const Input piece(begin, end);
        if (input.size() + piece.size() <= kInputBytesMax * 4) {
          input.insert(begin, piece.begin(), piece.end());
        }
        break;
      }
      case 3:
        *begin = static_cast<uint8_t>(random());
        break;
      default:
        input.resize(at);
        break;
    }
  }
  return input;
}

const char* Argument(int argc, char** argv, const char* name, const char* otherwise) {
  for (int index = 1; index + 1 < argc; ++index) {
    if (std::strcmp(argv[index], name) == 0) return argv[index + 1];
  }
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  const long runs = std::atol(Argument(argc, argv, "--runs", "2000"));
  const unsigned long long seed = std::strtoull(Argument(argc, argv, "--seed", "1"), nullptr, 10);
  const std::vector<Input> corpus = ReadCorpus(Argument(argc, argv, "--corpus", ""));
  for (const Input& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  std::mt19937_64 random(seed);
  for (long run = 0; run < runs; ++run) {
    const bool mutate = !corpus.empty() && run % 4 != 0;
    const Input input =
        mutate ? Mutated(random, corpus[Below(random, corpus.size())]) : RandomBytes(random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("replayed %zu corpus files and %ld inputs of seed %llu\n", corpus.size(), runs, seed);
  return 0;
}
