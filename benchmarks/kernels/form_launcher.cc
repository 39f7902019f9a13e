#include "benchmarks/kernels/form_launcher.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>

namespace gpushare::kernels {
namespace {

constexpr uint32_t kWorkersPerSmMax = 32;  // blocks that an SM holds at most
constexpr unsigned kDriverVersion = 12000;

Status Broken(const std::string& message) {
  Status status = {.code = -1, .message = message};
  return status;
}

Status Zero(const DeviceBuffer& buffer) {
  return CudaStatus(cudaMemset(buffer.data(), 0, buffer.bytes()), "cudaMemset");
}

}  // namespace

FormLauncher::~FormLauncher() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  if (eviction_stream_ != nullptr) cudaStreamDestroy(eviction_stream_);
  if (completion_ != nullptr) cudaFreeHost(completion_);
  if (host_word_ != nullptr) cudaFreeHost(host_word_);
}

Status FormLauncher::InitMemory() {
  yield_capacity_ = static_cast<uint64_t>(sms_) * kWorkersPerSmMax;
  const size_t sm_bytes = static_cast<size_t>(sms_) * sizeof(uint32_t);
  struct Wanted {
    DeviceBuffer* buffer;
    size_t bytes;
  };
  const Wanted all[] = {{&eviction_word_, sizeof(uint64_t)},
                        {&counter_, sizeof(uint32_t)},
                        {&scratch_, sizeof(gpushare_worker_scratch)},
                        {&sm_workers_, sm_bytes},
                        {&yield_list_, (1 + yield_capacity_) * sizeof(uint64_t)}};
  for (const Wanted& wanted : all) {
    Status status = wanted.buffer->Allocate(wanted.bytes);
    if (status.ok()) status = Zero(*wanted.buffer);
    if (!status.ok()) return status;
  }
  struct HostWanted {
    void** pointer;
    size_t bytes;
  };
  void* completion = nullptr;
  void* host_word = nullptr;
  for (const HostWanted& wanted : {HostWanted{&completion, sizeof(*completion_)},
                                   HostWanted{&host_word, sizeof(*host_word_)}}) {
    const Status status = CudaStatus(
        cudaHostAlloc(wanted.pointer, wanted.bytes, cudaHostAllocMapped), "cudaHostAlloc");
    if (!status.ok()) return status;
    std::memset(*wanted.pointer, 0, wanted.bytes);
    completion_ = static_cast<gpushare_worker_completion*>(completion);
    host_word_ = static_cast<uint64_t*>(host_word);
  }
  return {};
}

Status FormLauncher::Init() {
  int device = 0;
  int clock_khz = 0;
  Status status = CudaStatus(cudaGetDevice(&device), "cudaGetDevice");
  if (status.ok()) {
    status = CudaStatus(cudaDeviceGetAttribute(&sms_, cudaDevAttrMultiProcessorCount, device),
                        "cudaDeviceGetAttribute");
  }
  if (status.ok()) {
    status = CudaStatus(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device),
                        "cudaDeviceGetAttribute");
  }
  if (!status.ok()) return status;
  clock_mhz_ = clock_khz / 1000.0;
  int least = 0;
  int greatest = 0;
  status = CudaStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                      "cudaDeviceGetStreamPriorityRange");
  if (status.ok()) {
    status = CudaStatus(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, least),
                        "cudaStreamCreateWithPriority");
  }
  if (status.ok()) {
    status =
        CudaStatus(cudaStreamCreateWithPriority(&eviction_stream_, cudaStreamNonBlocking, greatest),
                   "cudaStreamCreateWithPriority");
  }
  if (!status.ok()) return status;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  status = CudaStatus(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry,
                                                       kDriverVersion, cudaEnableDefault, &found),
                      "cudaGetDriverEntryPointByVersion");
  if (!status.ok()) return status;
  if (found != cudaDriverEntryPointSuccess) {
    return Broken("The driver has no cuStreamWriteValue64, and eviction needs it.");
  }
  stream_write_ = reinterpret_cast<StreamWriteValue>(entry);
  status = InitMemory();
  if (!status.ok()) return status;
  return CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

Status FormLauncher::BeginTask() {
  Status status = Zero(counter_);
  if (status.ok()) status = Zero(yield_list_);
  if (status.ok()) status = CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return status;
}

gpushare_worker_launch FormLauncher::Header(const FormTask& task) {
  gpushare_worker_launch header = {};
  header.eviction_word = eviction_word_.as<uint64_t>();
  header.counter = counter_.as<uint32_t>();
  header.scratch = scratch_.as<gpushare_worker_scratch>();
  header.completion = completion_;
  header.sequence = next_sequence_++;
  // The word starts at epoch 0, so that the first launch is one ahead.
  header.epoch = next_epoch_++;
  header.block_count = task.block_tasks();
  header.grid_x = task.grid.x;
  header.grid_y = task.grid.y;
  header.grid_z = task.grid.z;
  header.claim_batch = 1;
  header.yield_list = yield_list_.as<uint64_t>();
  header.yield_capacity = yield_capacity_;
  return header;
}

Status FormLauncher::LaunchOriginal(const FormTask& task) {
  void* arguments[] = {const_cast<void*>(task.params)};
  const dim3 grid(task.grid.x, task.grid.y, task.grid.z);
  return CudaStatus(
      cudaLaunchKernel(task.variants.original_symbol, grid, dim3(task.variants.threads_per_block),
                       arguments, task.variants.dynamic_shared_bytes, stream()),
      "cudaLaunchKernel of the original variant");
}

Status FormLauncher::LaunchWithHeader(const void* symbol, const char* what, const FormTask& task,
                                      const gpushare_worker_launch& header, uint32_t blocks) {
  void* arguments[] = {const_cast<gpushare_worker_launch*>(&header),
                       const_cast<void*>(task.params)};
  return CudaStatus(cudaLaunchKernel(symbol, dim3(blocks), dim3(task.variants.threads_per_block),
                                     arguments, task.variants.dynamic_shared_bytes, stream()),
                    what);
}

Status FormLauncher::LaunchWorkers(const FormTask& task, const gpushare_worker_launch& header,
                                   uint32_t workers) {
  return LaunchWithHeader(task.variants.worker_symbol, "cudaLaunchKernel of the worker variant",
                          task, header, workers);
}

Status FormLauncher::LaunchSlice(const FormTask& task, gpushare_worker_launch header) {
  header.counter = nullptr;
  return LaunchWithHeader(task.variants.slice_symbol, "cudaLaunchKernel of the slice variant", task,
                          header, header.block_count);
}

Status FormLauncher::LaunchFused(const gpushare_fused_variants& variants, const FusedPart& tensor,
                                 const FusedPart& cuda, uint32_t blocks) {
  if (variants.blocks_per_sm == 0) {
    return Broken("The fused kernel has no block on this device, and a launch needs one.");
  }
  void* arguments[] = {
      const_cast<gpushare_worker_launch*>(&tensor.header), const_cast<void*>(tensor.params),
      const_cast<gpushare_worker_launch*>(&cuda.header), const_cast<void*>(cuda.params)};
  return CudaStatus(
      cudaLaunchKernel(variants.symbol, dim3(blocks), dim3(variants.threads_per_block), arguments,
                       variants.dynamic_shared_bytes, stream()),
      "cudaLaunchKernel of a fused kernel");
}

Status FormLauncher::Evict(uint32_t epoch, uint32_t workers_to_keep) {
  const unsigned long long word = (static_cast<unsigned long long>(epoch) << 32) | workers_to_keep;
  return CudaStatus(
      stream_write_(eviction_stream_, reinterpret_cast<unsigned long long>(eviction_word_.data()),
                    word, 0),
      "cuStreamWriteValue64");
}

void FormLauncher::UseLeader(gpushare_worker_launch* header) {
  header->host_eviction_word = host_word_;
}

void FormLauncher::EvictByLeader(uint32_t epoch, uint32_t workers_to_keep) {
  const uint64_t word = (static_cast<uint64_t>(epoch) << 32) | workers_to_keep;
  std::atomic_ref<uint64_t>(*host_word_).store(word, std::memory_order_release);
}

Status FormLauncher::Wait() {
  Status status = CudaStatus(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  if (status.ok()) {
    status = CudaStatus(cudaStreamSynchronize(eviction_stream_), "cudaStreamSynchronize");
  }
  return status;
}

Status FormLauncher::Finish(const gpushare_worker_launch& header,
                            gpushare_worker_completion* record) {
  Status status = Wait();
  if (!status.ok()) return status;
  *record = *completion_;
  if (record->sequence != header.sequence) {
    return Broken("The completion record has sequence " + std::to_string(record->sequence) +
                  ", and the launch's is " + std::to_string(header.sequence) + ".");
  }
  gpushare_worker_scratch left = {};
  status = scratch_.Read(0, sizeof(left), &left);
  if (!status.ok()) return status;
  if (left.finished != 0 || left.start_globaltimer_ns != 0) {
    return Broken("The last worker left the scratch at " + std::to_string(left.finished) +
                  ", and it must be zero.");
  }
  if (record->start_globaltimer_ns == 0 ||
      record->end_globaltimer_ns < record->start_globaltimer_ns) {
    return Broken("The completion record runs from " +
                  std::to_string(record->start_globaltimer_ns) + " to " +
                  std::to_string(record->end_globaltimer_ns) + " ns.");
  }
  return {};
}

Status FormLauncher::AwaitRecord(const gpushare_worker_launch& header, double limit_s,
                                 gpushare_worker_completion* record) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (std::atomic_ref<uint64_t>(completion_->sequence).load(std::memory_order_acquire) !=
         header.sequence) {
    if (std::chrono::steady_clock::now() > end) {
      return Broken("The launch with sequence " + std::to_string(header.sequence) +
                    " has not ended within " + std::to_string(limit_s) + " s.");
    }
  }
  *record = *completion_;
  return {};
}

Status FormLauncher::ReadSmWorkers(uint32_t* counts) const {
  return sm_workers_.Read(0, sm_workers_.bytes(), counts);
}

Status FormLauncher::ReadYieldsWaiting(uint64_t* waiting) const {
  return yield_list_.Read(0, sizeof(*waiting), waiting);
}

Status FormLauncher::ReadCounter(uint32_t* counter) const {
  return counter_.Read(0, sizeof(*counter), counter);
}

}  // namespace gpushare::kernels
