// The NUMA node of a GPU, from a sysfs of the test's own, and memory near it.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
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

constexpr size_t kPage = 4096;
constexpr int kPreferred = 1;   // MPOL_PREFERRED of linux/mempolicy.h
constexpr int kOfAddress = 2;   // MPOL_F_ADDR
constexpr size_t kBits = 1024;  // of a mask of nodes
using NodeMask = std::array<unsigned long, kBits / (8 * sizeof(unsigned long))>;

// Where the system takes the page of an address from: {mode, nodes}; mode -1: it does not say.
struct Policy {
  int mode = -1;
  NodeMask nodes{};
};
Policy PolicyOf(const void* address) {
  Policy policy;
  if (syscall(SYS_get_mempolicy, &policy.mode, policy.nodes.data(), kBits, address, kOfAddress) !=
      0) {
    policy.mode = -1;
  }
  return policy;
}

// Whether this system lets a process prefer node 0, and says so afterwards. A container may not.
bool MayPreferNode0() {
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const NodeMask node0 = {1};
  const bool may = syscall(SYS_mbind, page, kPage, kPreferred, node0.data(), kBits, 0U) == 0 &&
                   PolicyOf(page).mode == kPreferred;
  munmap(page, kPage);
  return may;
}

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

// Reads the memory policy back from the system, so that a machine with one NUMA node can test it
// too.
TEST_F(HostMemoryTest, EveryPageComesFromTheNodeOfTheGpu) {
  if (!MayPreferNode0()) GTEST_SKIP() << "This system lets no process choose a NUMA node.";
  AddDevice("0000:1a:00.0", "0\n");
  constexpr size_t kPages = 5;
  const HostMemory memory =
      HostMemory::NearGpu("0000:1a:00.0", kPages * kPage - 1, sysfs()).value();
  EXPECT_EQ(memory.node(), 0);
  for (size_t page = 0; page < kPages; ++page) {
    const Policy policy = PolicyOf(static_cast<const char*>(memory.data()) + page * kPage);
    EXPECT_EQ(policy.mode, kPreferred) << "page " << page;
    EXPECT_EQ(policy.nodes, NodeMask{1}) << "page " << page;
  }
  const HostMemory ordinary = HostMemory::NearGpu("0000:1c:00.0", kPage, sysfs()).value();
  EXPECT_EQ(ordinary.node(), -1);
  EXPECT_NE(PolicyOf(ordinary.data()).mode, kPreferred);
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
