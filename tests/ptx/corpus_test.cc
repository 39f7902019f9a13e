// Kernels of compiled networks through the check and both transforms: 2,616 of TorchInductor and
// Triton, which lie outside the repository; GPUSHARE_DATA names their folder.
//
//   ptx_corpus_test            all of them (label nightly)
//   ptx_corpus_test SECONDS    as many as take SECONDS, in the order of a seed (GPUSHARE_SEED)

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "src/ptx/twin.h"

namespace gpushare::ptx {
namespace {

constexpr double kLeastAccepted = 0.995;
constexpr double kMostMeanMs = 10;  // of processor time; no sanitizer runs all kernels
constexpr size_t kTarBlock = 512;

double sample_seconds = 0;  // 0: all

struct Kernel {
  std::string name;
  std::string text;
};

// The files of a tar archive. Names of more than 100 characters are cut; none is needed whole.
std::vector<Kernel> FilesOf(const std::string& tar) {
  std::vector<Kernel> files;
  for (size_t at = 0; at + kTarBlock <= tar.size() && tar[at] != '\0';) {
    const std::string name(tar.c_str() + at, strnlen(tar.c_str() + at, 100));
    const size_t bytes = std::strtoull(tar.substr(at + 124, 12).c_str(), nullptr, 8);
    const char type = tar[at + 156];
    at += kTarBlock;
    if ((type == '0' || type == '\0') && at + bytes <= tar.size()) {
      files.push_back({name, tar.substr(at, bytes)});
    }
    at += (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
  return files;
}

std::string Unpacked(const std::string& path) {
  std::string out;
  const std::string command = "xz --decompress --stdout '" + path + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<char> buffer(size_t{1} << 20);
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    out.append(buffer.data(), got);
  }
  return out;
}

// The collection lost the declaration of local depots together with the debug lines.
void Repair(std::string& text) {
  if (text.find("__local_depot0") == std::string::npos) return;
  if (text.find(".local .align") != std::string::npos) return;
  const size_t body = text.find("\n{", text.find(".entry"));
  if (body == std::string::npos) return;
  text.insert(body + 2, "\n\t.local .align 16 .b8 __local_depot0[4096];");
}

struct Count {
  uint32_t kernels = 0;
  uint32_t accepted = 0;
  double ms = 0;  // of processor time
};

void Try(const Kernel& kernel, Count& count) {
  SCOPED_TRACE(kernel.name);
  ++count.kernels;
  const std::clock_t begin = std::clock();
  const Twin twin = Transform(kernel.text, {}, {.workers = true, .slice = true});
  count.ms += 1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const Checked checked = Check(kernel.text, {});
  EXPECT_EQ(checked.ok(), twin.ok());
  if (!twin.ok()) {
    EXPECT_FALSE(twin.refusal.message.empty());
    std::printf("refused: %s: %s\n", kernel.name.c_str(), twin.refusal.message.c_str());
    return;
  }
  ++count.accepted;
  EXPECT_TRUE(twin.text.starts_with(
      std::string_view(kernel.text).substr(0, kernel.text.find_last_of('}') + 1)));
  EXPECT_EQ(Entries(twin.text).size(), 3u);
  EXPECT_EQ(Transform(kernel.text, {}, {}).text, kernel.text);
}

TEST(PtxCorpus, KernelsOfNetworksGetBothTwins) {
  const char* const data = std::getenv("GPUSHARE_DATA");
  if (data == nullptr) GTEST_SKIP() << "GPUSHARE_DATA does not name the folder of the kernels.";
  const std::string path = std::string(data) + "/ptx/inductor_triton.tar.xz";
  if (!std::ifstream(path).good()) GTEST_SKIP() << path << " is not there.";
  std::vector<Kernel> kernels = FilesOf(Unpacked(path));
  if (kernels.empty()) GTEST_SKIP() << "xz is not installed, or " << path << " is damaged.";
  EXPECT_EQ(kernels.size(), 2616u);
  const char* const given = std::getenv("GPUSHARE_SEED");
  const uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  std::shuffle(kernels.begin(), kernels.end(), std::mt19937_64(seed));
  Count count;
  const auto begin = std::chrono::steady_clock::now();
  for (Kernel& kernel : kernels) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (sample_seconds > 0 && taken.count() > sample_seconds) break;
    Repair(kernel.text);
    Try(kernel, count);
  }
  std::printf("seed %llu: %u kernels, %u accepted, %.2f ms of processor time each\n",
              static_cast<unsigned long long>(seed), count.kernels, count.accepted,
              count.ms / count.kernels);
  EXPECT_GE(count.accepted, kLeastAccepted * count.kernels);
  if (sample_seconds == 0) {
    EXPECT_LT(count.ms / count.kernels, kMostMeanMs);
  }
}

}  // namespace
}  // namespace gpushare::ptx

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) gpushare::ptx::sample_seconds = std::strtod(argv[1], nullptr);
  return RUN_ALL_TESTS();
}
