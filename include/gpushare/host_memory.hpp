// Host memory on the NUMA node of a GPU, for copies that need not cross to another socket.
//
//   char address[32];
//   cudaDeviceGetPCIBusId(address, sizeof(address), gpu);
//   auto memory = gpushare::HostMemory::NearGpu(address, size_bytes);   // a Result: check ok()
//   cudaHostRegister(memory->data(), memory->size_bytes(), cudaHostRegisterDefault);
//   ... copy ...
//   cudaHostUnregister(memory->data());                                 // before it is destroyed
//
// Linux only; no library of the system but libc. Threads: any; an object belongs to its owner.
#ifndef GPUSHARE_HOST_MEMORY_HPP_
#define GPUSHARE_HOST_MEMORY_HPP_

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <gpushare/gpushare.hpp>
#include <string>
#include <utility>

namespace gpushare {

// The NUMA node of the device with this PCI address, "0000:1a:00.0" in either case, from
// SYSFS/bus/pci/devices/ADDRESS/numa_node. -1: the system names none, or has no such device.
inline int NumaNodeOfPci(std::string address, const std::string& sysfs = "/sys") {
  for (char& letter : address) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  // An address that CUDA gives has eight digits of domain on some systems, sysfs has four.
  const size_t colon = address.find(':');
  if (colon != std::string::npos && colon > 4) address.erase(0, colon - 4);
  if (address.find('/') != std::string::npos) return -1;
  std::ifstream file(sysfs + "/bus/pci/devices/" + address + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return -1;
  return node;
}

// Whole pages of host memory, on one node where the system has it there.
class HostMemory {
 public:
  // Memory on the node of a GPU. Where no node is known, or the system refuses it (a container
  // may), the memory is ordinary and node() is -1.
  // Errors: INVALID_ARGUMENT a size of 0; RESOURCE_EXHAUSTED no memory is left.
  static Result<HostMemory> NearGpu(const std::string& pci_address, size_t size_bytes,
                                    const std::string& sysfs = "/sys") {
    return OnNode(NumaNodeOfPci(pci_address, sysfs), size_bytes);
  }

  static Result<HostMemory> OnNode(int node, size_t size_bytes) {
    if (size_bytes == 0) {
      return Status(GPUSHARE_INVALID_ARGUMENT, "Host memory has 0 bytes, and it needs some.");
    }
    void* data =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {  // NOLINT: the macro casts an integer
      return Status(GPUSHARE_RESOURCE_EXHAUSTED,
                    "No " + std::to_string(size_bytes) +
                        " bytes of host memory are left: " + std::strerror(errno) + ".");
    }
    return HostMemory(data, size_bytes, Prefer(data, size_bytes, node) ? node : -1);
  }

  HostMemory(HostMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(other.size_bytes_),
        node_(other.node_) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~HostMemory() {
    if (data_ != nullptr) munmap(data_, size_bytes_);
  }

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  // The node that its pages come from first; -1: no node was asked of the system.
  int node() const { return node_; }

 private:
  HostMemory(void* data, size_t size_bytes, int node)
      : data_(data), size_bytes_(size_bytes), node_(node) {}

  // Pages come from the node while it has some, and else from elsewhere. They are taken at their
  // first touch, so this comes before it.
  static bool Prefer(void* data, size_t size_bytes, int node) {
    constexpr int kPreferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h
    constexpr size_t kNodesMax = 1024;
    constexpr size_t kBits = 8 * sizeof(unsigned long);
    if (node < 0 || static_cast<size_t>(node) + 1 >= kNodesMax) return false;
    unsigned long mask[kNodesMax / kBits] = {};
    mask[static_cast<size_t>(node) / kBits] = 1UL << (static_cast<size_t>(node) % kBits);
    // The system reads one bit less than it is told.
    return syscall(SYS_mbind, data, size_bytes, kPreferred, mask, kNodesMax, 0U) == 0;
  }

  void* data_;
  size_t size_bytes_;
  int node_;
};

}  // namespace gpushare

#endif  // GPUSHARE_HOST_MEMORY_HPP_
