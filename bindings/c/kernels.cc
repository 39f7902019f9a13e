// Kernels and fused kernels: registration, references, look-up by name. Threads: any.

#include "bindings/c/kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "bindings/c/convert.h"
#include "bindings/c/devices.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "bindings/c/ptx_code.h"
#include "src/core/base/mutex.h"

namespace gpushare::abi {
namespace {

// Letters that differ between two names, inserted, deleted or replaced.
size_t EditsBetween(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// "; did you mean 'chain1'?" for the profile's kernel with the fewest edits, at most a third of the
// name; "." where none is near.
std::string DidYouMean(const models::Profile& profile, absl::string_view name) {
  const core::KernelDesc* nearest = nullptr;
  size_t fewest = name.size() / 3 + 1;
  for (const core::KernelDesc& known : profile.kernels) {
    const size_t edits = EditsBetween(name, known.name);
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = &known;
  }
  return nearest == nullptr ? "." : absl::StrCat("; did you mean '", nearest->name, "'?");
}

// Fails if the description lacks something that this device needs to run the kernel.
absl::Status CheckComplete(const RuntimeObject& runtime, const core::KernelDesc& desc)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(runtime.mutex) {
  if (RunsRecords(runtime.device_name) && !desc.simulation.present) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", desc.name, "' has no simulation record, and the profile '",
                     runtime.profile.device.name, "' knows no kernel of that name",
                     DidYouMean(runtime.profile, desc.name)));
  }
  const core::LibraryCall* const call = desc.library_call();
  if (runtime.device_name == "cuda" && call != nullptr &&
      call->operation == core::LibraryOperation::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", desc.name,
                     "' is of kind library, and its kernel_options.library is null: a CUDA device "
                     "does not know what to call."));
  }
  return absl::OkStatus();
}

// Reserves a name during its registration. A registration takes long and runs the caller's capture
// callback, so no lock is held meanwhile.
class NameInRegistration {
 public:
  // `what` is "kernel 'name'".
  NameInRegistration(RuntimeObject& runtime, std::string what)
      : runtime_(runtime), what_(std::move(what)) {}
  ~NameInRegistration() {
    if (!taken_) return;
    core::MutexLock lock(&runtime_.mutex);
    runtime_.registering.erase(what_);
  }
  NameInRegistration(const NameInRegistration&) = delete;
  NameInRegistration& operator=(const NameInRegistration&) = delete;

  absl::Status Take(bool registered) ABSL_EXCLUSIVE_LOCKS_REQUIRED(runtime_.mutex) {
    taken_ = !registered && runtime_.registering.insert(what_).second;
    if (taken_) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("The runtime has a ", what_, " already."));
  }

 private:
  RuntimeObject& runtime_;
  const std::string what_;
  bool taken_ = false;
};

// What a calibration measured of slices of a kernel of this name.
void FillSlices(const models::CalibrationRecord& calibration, core::KernelDesc& desc) {
  for (const models::KernelRecord& record : calibration.kernels) {
    if (record.name == desc.name) desc.slices = {record.slice_block_tasks, record.slice_overhead};
  }
}

// The description of a kernel from its options, and from its PTX if it has some.
absl::StatusOr<core::KernelDesc> GivenDesc(const RuntimeObject& runtime,
                                           const gpushare_kernel_options& options, MadePtx* ptx)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(runtime.mutex) {
  absl::StatusOr<core::KernelDesc> desc =
      KernelDescOf(options, runtime.profile.FindKernel(options.name));
  if (!desc.ok()) return desc;
  FillSlices(runtime.profile.calibration, *desc);
  if (ptx == nullptr) return desc;
  GPUSHARE_RETURN_IF_ERROR(TakePtx(options, std::move(*ptx), *desc));
  return desc;
}

// Reads the options, reserves the name and checks the description.
absl::StatusOr<core::KernelDesc> DescOf(RuntimeObject& runtime,
                                        const gpushare_kernel_options& options, MadePtx* ptx,
                                        NameInRegistration& name) {
  core::MutexLock lock(&runtime.mutex);
  absl::StatusOr<core::KernelDesc> desc = GivenDesc(runtime, options, ptx);
  const bool registered = runtime.kernels.count(options.name) != 0;
  if (!desc.ok() && !registered) return desc.status();
  GPUSHARE_RETURN_IF_ERROR(name.Take(registered));
  GPUSHARE_RETURN_IF_ERROR(CheckComplete(runtime, *desc));
  return desc;
}

// `ptx` is the kernel's code; null: the options have it.
absl::Status Register(RuntimeObject& runtime, const gpushare_kernel_options& options, MadePtx* ptx,
                      KernelObject& kernel) {
  NameInRegistration name(runtime, absl::StrCat("kernel '", options.name, "'"));
  absl::StatusOr<core::KernelDesc> desc = DescOf(runtime, options, ptx, name);
  if (!desc.ok()) return desc.status();
  // Made before: a registration cannot be undone, and nothing may fail after it.
  std::map<std::string, const core::KernelDesc*> entry = {{options.name, nullptr}};
  std::map<uint32_t, std::string> trace_name = {{0, options.name}};
  absl::StatusOr<core::KernelId> id;
  {
    const RegistrationScope scope;
    id = runtime.scheduler->RegisterKernel(*std::move(desc));
  }
  if (!id.ok()) return id.status();
  // The description with what the device found out.
  const core::KernelDesc& registered = *runtime.scheduler->FindKernel(*id);
  kernel.id = *id;
  kernel.kind = registered.kind();
  kernel.evictable = registered.evictable;
  kernel.confinable = registered.confinable;
  entry.begin()->second = &registered;
  auto named = trace_name.extract(trace_name.begin());
  named.key() = id->value;
  core::MutexLock lock(&runtime.mutex);
  runtime.kernels.merge(entry);
  runtime.kernel_names.erase(id->value);
  runtime.kernel_names.insert(std::move(named));
  return absl::OkStatus();
}

absl::Status RegisterOptions(gpushare_runtime* runtime, const gpushare_kernel_options* options,
                             MadePtx* ptx, gpushare_kernel** out_kernel) {
  GPUSHARE_FIND(object, runtime);
  gpushare_kernel_options known;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("kernel_options", options, &known));
  GPUSHARE_RETURN_IF_ERROR(CheckName("kernel_options.name", known.name));
  auto kernel = std::make_shared<KernelObject>();
  kernel->runtime = object->shared_from_this();
  NewHandle<gpushare_kernel> handle;
  GPUSHARE_RETURN_IF_ERROR(handle.Make(kernel));
  GPUSHARE_RETURN_IF_ERROR(Register(*object, known, ptx, *kernel));
  *out_kernel = handle.Keep();
  return absl::OkStatus();
}

absl::StatusOr<core::FusedKernelDesc> FusedDescOf(const RuntimeObject& runtime,
                                                  const gpushare_fused_kernel_options& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckName("fused_kernel_options.name", options.name));
  GPUSHARE_FIND(tensor, options.tensor_part);
  GPUSHARE_FIND(cuda, options.cuda_part);
  if (tensor->runtime.get() != &runtime || cuda->runtime.get() != &runtime) {
    return absl::InvalidArgumentError(absl::StrCat("A part of fused kernel '", options.name,
                                                   "' is registered in another runtime."));
  }
  absl::StatusOr<core::FusedKernelDesc> out = FusedShapeOf(options);
  if (!out.ok()) return out.status();
  out->tensor_part = tensor->id;
  out->cuda_part = cuda->id;
  return out;
}

// What a calibration measured of a fused kernel of this name. Ratios that the caller states stay.
void FillFromProfile(const models::CalibrationRecord& calibration,
                     const gpushare_fused_kernel_options& options, core::FusedKernelDesc& desc) {
  for (const models::FusedRecord& record : calibration.fused) {
    if (record.name != desc.name) continue;
    desc.points = record.points;
    const bool stated = options.opportune_load_ratio != 0 || options.opportune_duration_ratio != 0;
    if (stated || record.opportune_load_ratio <= 0) return;
    desc.opportune_load_ratio = record.opportune_load_ratio;
    desc.opportune_duration_ratio = record.opportune_duration_ratio;
    return;
  }
}

absl::Status RegisterFused(RuntimeObject& runtime, const gpushare_fused_kernel_options& options,
                           FusedKernelObject& fused) {
  absl::StatusOr<core::FusedKernelDesc> desc = FusedDescOf(runtime, options);
  if (!desc.ok()) return desc.status();
  NameInRegistration name(runtime, absl::StrCat("fused kernel '", options.name, "'"));
  {
    core::MutexLock lock(&runtime.mutex);
    GPUSHARE_RETURN_IF_ERROR(name.Take(runtime.fused_kernel_names.count(options.name) != 0));
    FillFromProfile(runtime.profile.calibration, options, *desc);
  }
  std::set<std::string> entry = {options.name};
  fused.name = options.name;
  const absl::StatusOr<core::KernelId> id =
      runtime.scheduler->RegisterFusedKernel(*std::move(desc));
  if (!id.ok()) return id.status();
  core::MutexLock lock(&runtime.mutex);
  runtime.fused_kernel_names.merge(entry);
  fused.id = *id;
  return absl::OkStatus();
}

}  // namespace

KernelObject::~KernelObject() {
  if (id.value == 0) return;
  {
    core::MutexLock lock(&runtime->mutex);
    std::erase_if(runtime->kernels, [this](const auto& named) { return named.second->id == id; });
  }
  runtime->scheduler->RetireKernel(id);
}

FusedKernelObject::~FusedKernelObject() {
  if (id.value == 0) return;
  {
    core::MutexLock lock(&runtime->mutex);
    runtime->fused_kernel_names.erase(name);
  }
  runtime->scheduler->RetireFusedKernel(id);
}

}  // namespace gpushare::abi

using gpushare::abi::CheckNotNull;
using gpushare::abi::Enter;
using gpushare::abi::RegistrationScope;

namespace {

// Copies the texts for the calling thread: another thread may release the kernel meanwhile, and a
// later registration then takes its place.
void KeepRefusals(gpushare_kernel_info& info) {
  thread_local std::array<std::string, 2> texts;
  size_t next = 0;
  for (const char** const text : {&info.worker_refusal, &info.slice_refusal}) {
    std::string& copy = texts[next++];
    copy = *text == nullptr ? "" : *text;
    if (*text != nullptr) *text = copy.c_str();
  }
}

}  // namespace

gpushare_status gpushare_kernel_register(gpushare_runtime* runtime,
                                         const gpushare_kernel_options* options,
                                         gpushare_kernel** out_kernel) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_kernel", out_kernel));
    *out_kernel = nullptr;
    GPUSHARE_RETURN_IF_ERROR(RegistrationScope::Refuse("gpushare_kernel_register"));
    return gpushare::abi::RegisterOptions(runtime, options, nullptr, out_kernel);
  });
}

gpushare_status gpushare_kernel_register_ptx(gpushare_runtime* runtime,
                                             const gpushare_kernel_options* options,
                                             const gpushare_ptx_code* code,
                                             gpushare_kernel** out_kernel) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_kernel", out_kernel));
    *out_kernel = nullptr;
    GPUSHARE_RETURN_IF_ERROR(RegistrationScope::Refuse("gpushare_kernel_register_ptx"));
    const absl::StatusOr<gpushare::abi::PtxSource> source = gpushare::abi::ReadPtxSource(code);
    if (!source.ok()) return source.status();
    absl::StatusOr<gpushare::abi::MadePtx> ptx = gpushare::abi::MakePtxCode(*source);
    if (!ptx.ok()) return ptx.status();
    return gpushare::abi::RegisterOptions(runtime, options, &*ptx, out_kernel);
  });
}

gpushare_status gpushare_kernel_retain(gpushare_kernel* kernel) noexcept {
  return Enter([&] { return gpushare::abi::Retain(kernel); });
}

gpushare_status gpushare_kernel_release(gpushare_kernel* kernel) noexcept {
  return Enter([&] {
    return gpushare::abi::Release(kernel, [&]() -> absl::Status {
      GPUSHARE_FIND(object, kernel);
      return gpushare::abi::CheckMayEnd(object->runtime, 1);
    });
  });
}

uint32_t gpushare_kernel_id(gpushare_kernel* kernel) noexcept {
  const gpushare::abi::KernelObject* const object = gpushare::abi::Find(kernel);
  return object == nullptr ? 0 : object->id.value;
}

gpushare_status gpushare_kernel_info_by_name(gpushare_runtime* runtime, const char* name,
                                             gpushare_kernel_info* out_info) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckName("The kernel's name", name));
    gpushare::core::MutexLock lock(&object->mutex);
    const auto registered = object->kernels.find(name);
    const gpushare::core::KernelDesc* const kernel =
        registered != object->kernels.end() ? registered->second : object->profile.FindKernel(name);
    if (kernel == nullptr) {
      return absl::NotFoundError(absl::StrCat("No kernel '", name,
                                              "' is registered, and the profile '",
                                              object->profile.device.name, "' has none."));
    }
    gpushare_kernel_info info = gpushare::abi::ToC(*kernel);
    KeepRefusals(info);
    return gpushare::abi::WriteResult("kernel_info", info, out_info);
  });
}

gpushare_status gpushare_profile_kernel_names(gpushare_runtime* runtime, char* buffer,
                                              size_t buffer_size_bytes,
                                              size_t* out_size_bytes) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    std::string names;
    gpushare::core::MutexLock lock(&object->mutex);
    for (const gpushare::core::KernelDesc& kernel : object->profile.kernels) {
      absl::StrAppend(&names, names.empty() ? "" : "\n", kernel.name);
    }
    return gpushare::abi::CopyText(names, buffer, buffer_size_bytes, out_size_bytes);
  });
}

gpushare_status gpushare_fused_kernel_register(gpushare_runtime* runtime,
                                               const gpushare_fused_kernel_options* options,
                                               gpushare_fused_kernel** out_fused) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_fused", out_fused));
    *out_fused = nullptr;
    GPUSHARE_RETURN_IF_ERROR(RegistrationScope::Refuse("gpushare_fused_kernel_register"));
    gpushare_fused_kernel_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("fused_kernel_options", options, &known));
    auto fused = std::make_shared<gpushare::abi::FusedKernelObject>();
    fused->runtime = object->shared_from_this();
    gpushare::abi::NewHandle<gpushare_fused_kernel> handle;
    GPUSHARE_RETURN_IF_ERROR(handle.Make(fused));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::RegisterFused(*object, known, *fused));
    *out_fused = handle.Keep();
    return absl::OkStatus();
  });
}

gpushare_status gpushare_fused_kernel_retain(gpushare_fused_kernel* fused) noexcept {
  return Enter([&] { return gpushare::abi::Retain(fused); });
}

gpushare_status gpushare_fused_kernel_release(gpushare_fused_kernel* fused) noexcept {
  return Enter([&] {
    return gpushare::abi::Release(fused, [&]() -> absl::Status {
      GPUSHARE_FIND(object, fused);
      return gpushare::abi::CheckMayEnd(object->runtime, 1);
    });
  });
}
