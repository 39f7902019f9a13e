// The NUMA node of a GPU, from a sysfs of the test's own, and memory near it.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gpushare/host_memory.hpp>
#include <string>
#include <utility>

#include "tests/temporary_folder.h"

namespace gpushare_test {
namespace {

using gpushare::HostMemory;
using gpushare::NumaNodeOfPci;

class HostMemoryTest : public ::testing::Test {
 protected:
  // A device with this text as its node.
  void AddDevice(const std::string& address, const std::string& node) {
    const std::filesystem::path path =
        std::filesystem::path(sysfs()) / "bus" / "pci" / "devices" / address;
    std::filesystem::create_directories(path);
    std::ofstream(path / "numa_node") << node;
  }
  std::string sysfs() const { return folder_.path(); }

  gpushare::TemporaryFolder folder_;
};

TEST_F(HostMemoryTest, TheNodeIsThatOfSysfsWhateverTheAddressLooksLike) {
  AddDevice("0000:1a:00.0", "1\n");
  EXPECT_EQ(NumaNodeOfPci("0000:1a:00.0", sysfs()), 1);
  EXPECT_EQ(NumaNodeOfPci("0000:1A:00.0", sysfs()), 1);
  EXPECT_EQ(NumaNodeOfPci("00000000:1A:00.0", sysfs()), 1);
}

TEST_F(HostMemoryTest, WithoutANodeTheAnswerIsMinusOne) {
  AddDevice("0000:1a:00.0", "-1\n");
  AddDevice("0000:1b:00.0", "");
  for (const char* address : {"0000:1a:00.0", "0000:1b:00.0", "0000:1c:00.0", "", "../../x"}) {
    EXPECT_EQ(NumaNodeOfPci(address, sysfs()), -1) << address;
  }
}

TEST_F(HostMemoryTest, MemoryIsUsableWithAndWithoutANode) {
  AddDevice("0000:1a:00.0", "0\n");
  constexpr size_t kBytes = 1 << 20;
  for (const char* address : {"0000:1a:00.0", "0000:1c:00.0"}) {
    HostMemory memory = HostMemory::NearGpu(address, kBytes, sysfs()).value();
    std::memset(memory.data(), 7, memory.size_bytes());
    EXPECT_EQ(memory.size_bytes(), kBytes);
    EXPECT_LE(memory.node(), 0);
    const HostMemory moved = std::move(memory);
    EXPECT_EQ(static_cast<const char*>(moved.data())[kBytes - 1], 7);
  }
}

TEST_F(HostMemoryTest, ANodeThatTheHostLacksGivesOrdinaryMemory) {
  const HostMemory memory = HostMemory::OnNode(1000, 4096).value();
  EXPECT_EQ(memory.node(), -1);
  EXPECT_EQ(HostMemory::OnNode(5000, 4096).value().node(), -1);
  std::memset(memory.data(), 1, 4096);
}

TEST_F(HostMemoryTest, SizesThatCannotBeAreRefused) {
  EXPECT_EQ(HostMemory::OnNode(0, 0).status().code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(HostMemory::OnNode(0, SIZE_MAX / 2).status().code(), GPUSHARE_RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace gpushare_test
