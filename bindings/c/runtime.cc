// Runtime: creation, references and end of life.
//
// Where in the flow: before the first submit and after the last completion. Threads: any.

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/announce.h"
#include "bindings/c/devices.h"
#include "bindings/c/environment.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "bindings/c/ready_profile.h"
#include "bindings/c/user_cost_model.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/limits.h"
#include "src/core/base/mutex.h"
#include "src/core/base/status.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"

namespace gpushare::abi {
namespace {

constexpr int64_t kDefaultShutdownTimeoutNs = int64_t{10} * 1000 * 1000 * 1000;
constexpr char kDefaultPolicy[] = "adaptive";

absl::Status CheckDuration(absl::string_view field, int64_t value, int64_t least) {
  if (value >= least && value <= core::kMaxDurationNs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("runtime_options.", field, " is ", value,
                                                 " ns, and it must lie between ", least, " and ",
                                                 core::kMaxDurationNs, " ns."));
}

absl::Status CheckOptions(const gpushare_runtime_options& options) {
  if (options.drive != GPUSHARE_DRIVE_THREAD && options.drive != GPUSHARE_DRIVE_POLL) {
    return absl::InvalidArgumentError(
        absl::StrCat("runtime_options.drive is ", options.drive, ", and it is either 0 or 1."));
  }
  if (options.latency < GPUSHARE_LATENCY_DEFAULT || options.latency > GPUSHARE_LATENCY_SPIN) {
    return absl::InvalidArgumentError(absl::StrCat("runtime_options.latency is ", options.latency,
                                                   ", and it must lie between 0 and 2."));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("runtime_options", options.reserved));
  if (options.splits_max < -1 || options.splits_max > core::kMaxSplits) {
    return absl::InvalidArgumentError(
        absl::StrCat("runtime_options.splits_max is ", options.splits_max,
                     ", and it must lie between -1 and ", core::kMaxSplits, "."));
  }
  if (options.device_ordinal < 0) {
    return absl::InvalidArgumentError(absl::StrCat("runtime_options.device_ordinal is ",
                                                   options.device_ordinal,
                                                   ", and ordinals start at 0."));
  }
  if (options.hang_factor != 0 && !(options.hang_factor >= 1 && options.hang_factor <= 1e6)) {
    return absl::InvalidArgumentError(absl::StrCat("runtime_options.hang_factor is ",
                                                   options.hang_factor,
                                                   ", and it must be 0 or lie between 1 and 1e6."));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckDuration("hang_floor_ns", options.hang_floor_ns, 0));
  GPUSHARE_RETURN_IF_ERROR(
      CheckDuration("be_return_hysteresis_ns", options.be_return_hysteresis_ns, -1));
  GPUSHARE_RETURN_IF_ERROR(CheckDuration("caller_spin_ns", options.caller_spin_ns, -1));
  return CheckDuration("shutdown_timeout_ns", options.shutdown_timeout_ns, 0);
}

// The option, else GPUSHARE_LATENCY from the environment, else balanced.
absl::StatusOr<core::WaitMode> WaitModeOf(const gpushare_runtime_options& options) {
  if (options.latency == GPUSHARE_LATENCY_SPIN) return core::WaitMode::kSpin;
  if (options.latency == GPUSHARE_LATENCY_BALANCED) return core::WaitMode::kBalanced;
  const absl::string_view text = EnvironmentText("GPUSHARE_LATENCY");
  if (text.empty() || text == "balanced") return core::WaitMode::kBalanced;
  if (text == "spin") return core::WaitMode::kSpin;
  return absl::InvalidArgumentError(absl::StrCat("GPUSHARE_LATENCY is '", text.substr(0, 60),
                                                 "', and it is either 'balanced' or 'spin'."));
}

// GPUSHARE_PLACES from the environment, else on demand.
absl::StatusOr<core::PlacesMode> PlacesModeOf() {
  const absl::string_view text = EnvironmentText("GPUSHARE_PLACES");
  if (text.empty() || text == "on_demand") return core::PlacesMode::kOnDemand;
  if (text == "eager") return core::PlacesMode::kEager;
  return absl::InvalidArgumentError(absl::StrCat("GPUSHARE_PLACES is '", text.substr(0, 60),
                                                 "', and it is either 'on_demand' or 'eager'."));
}

core::SchedulerOptions SchedulerOptionsOf(const gpushare_runtime_options& options,
                                          core::WaitMode wait_mode, core::PlacesMode places,
                                          RuntimeObject& runtime) {
  core::SchedulerOptions out;
  out.wait_mode = wait_mode;
  out.places = places;
  if (options.hang_floor_ns > 0) out.hang_floor_ns = options.hang_floor_ns;
  if (options.hang_factor > 0) out.hang_factor = options.hang_factor;
  if (options.be_return_hysteresis_ns > 0) {
    out.be_return_hysteresis_ns = options.be_return_hysteresis_ns;
  } else if (options.be_return_hysteresis_ns < 0) {
    out.be_return_hysteresis_ns = 0;
  }
  out.caller_spin_ns = options.caller_spin_ns;
  if (options.splits_max > 0) out.splits_max = options.splits_max;
  if (options.splits_max < 0) out.splits_max = 0;
  out.events = &runtime.trace;
  if (runtime.replay != nullptr) out.events = &runtime.replay->replayer->events();
  out.report = [log = &runtime.log](const std::string& sentence) {
    log->Write(GPUSHARE_LOG_ERROR, sentence.c_str());
  };
  return out;
}

struct ChosenProfile {
  ReadyProfile ready;
  std::string from;  // where it is from
};

// The option, else GPUSHARE_PROFILE from the environment, else the built-in profile. A replay
// ignores the environment, which may be another one than that of the recorded run.
absl::StatusOr<ChosenProfile> ProfileOf(const gpushare_runtime_options& options, bool replay) {
  ChosenProfile out = {{}, "built in"};
  if (options.profile_path != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(CheckText("runtime_options.profile_path", options.profile_path));
    out.from = options.profile_path;
    GPUSHARE_ASSIGN_OR_RETURN(out.ready, ReadProfileFile(out.from));
  } else if (const std::string path(EnvironmentText("GPUSHARE_PROFILE"));
             !replay && !path.empty()) {
    out.from = path;
    absl::StatusOr<ReadyProfile> ready = ReadProfileFile(path);
    if (!ready.ok()) return FromEnvironment("GPUSHARE_PROFILE", ready.status());
    out.ready = *std::move(ready);
  } else {
    GPUSHARE_ASSIGN_OR_RETURN(out.ready, ReadBuiltInProfile());
  }
  return out;
}

// The option, else GPUSHARE_POLICY from the environment, else adaptive. A replay ignores the
// environment.
absl::StatusOr<std::unique_ptr<core::Policy>> PolicyOf(const gpushare_runtime_options& options,
                                                       bool replay, std::string& name) {
  name = options.policy == nullptr ? kDefaultPolicy : options.policy;
  const absl::string_view text = EnvironmentText("GPUSHARE_POLICY");
  if (options.policy != nullptr || replay || text.empty()) return core::MakePolicy(name);
  name = std::string(text);
  absl::StatusOr<std::unique_ptr<core::Policy>> policy = core::MakePolicy(name);
  if (!policy.ok()) return FromEnvironment("GPUSHARE_POLICY", policy.status());
  return policy;
}

absl::string_view TextOrEmpty(const char* text) { return text == nullptr ? "" : text; }

// The device of a replay can do what the recorded one could, and executes nothing.
absl::Status ReplaceByReplay(core::Replayer& replayer, OpenDevice& device) {
  const core::DeviceCapabilities capabilities = device.device->capabilities();
  if (!capabilities.virtual_time) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A replay needs a device in virtual time, and the device '", device.name, "' is not."));
  }
  device.device = replayer.MakeDevice(capabilities);
  return absl::OkStatus();
}

// A server in threads measures nonsense there, and nothing else would say why.
void WarnOfVirtualTime(const RuntimeObject& runtime) {
  if (runtime.polled || !runtime.scheduler->capabilities().virtual_time) return;
  runtime.log.Write(
      GPUSHARE_LOG_WARNING,
      "The device 'sim' has virtual time and the runtime a thread that drives it, so time runs "
      "ahead "
      "of the application's sleeps and threads: latencies and loads measured so mean nothing. Open "
      "the device 'sim:realtime', or drive by GPUSHARE_DRIVE_POLL and gpushare_poll_until.");
}

absl::StatusOr<std::shared_ptr<RuntimeObject>> Open(const gpushare_runtime_options& options,
                                                    std::unique_ptr<ReplayObject> replay) {
  auto runtime = std::make_shared<RuntimeObject>(Log(options.log, options.log_user));
  runtime->replay = std::move(replay);
  runtime->seed = options.seed == 0 ? 1 : options.seed;
  runtime->polled = options.drive == GPUSHARE_DRIVE_POLL || runtime->replay != nullptr;
  runtime->shutdown_timeout_ns =
      options.shutdown_timeout_ns == 0 ? kDefaultShutdownTimeoutNs : options.shutdown_timeout_ns;

  const bool replays = runtime->replay != nullptr;
  if (options.log == nullptr) GPUSHARE_RETURN_IF_ERROR(CheckLogVariable());
  absl::StatusOr<core::WaitMode> wait_mode = WaitModeOf(options);
  if (!wait_mode.ok()) return wait_mode.status();
  GPUSHARE_ASSIGN_OR_RETURN(const core::PlacesMode places, PlacesModeOf());
  GPUSHARE_ASSIGN_OR_RETURN(std::unique_ptr<core::Policy> policy,
                            PolicyOf(options, replays, runtime->policy_name));
  GPUSHARE_ASSIGN_OR_RETURN(ChosenProfile chosen, ProfileOf(options, replays));
  ReadyProfile& ready = chosen.ready;
  models::Profile& profile = ready.profile;
  runtime->profile_name = profile.device.name;

  DeviceChoice choice;
  ChooseDevice(options.device, choice);
  choice.ordinal = options.device_ordinal;
  choice.seed = runtime->seed;
  choice.sim_tier = TextOrEmpty(options.sim_tier);
  choice.sim_faults = TextOrEmpty(options.sim_faults);
  choice.profile = profile.device;
  absl::StatusOr<OpenDevice> device = MakeDevice(choice, runtime->log);
  if (!device.ok()) return device.status();
  if (runtime->replay != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(ReplaceByReplay(*runtime->replay->replayer, *device));
  }
  runtime->device_name = device->name;

  const core::DeviceProfile& device_profile = device->device->capabilities().profile;
  auto model = std::make_unique<UserCostModel>(
      models::MakeOnlineModel(device_profile, profile.calibration.co_resident,
                              std::move(ready.learned)),
      device_profile.sm_count);
  runtime->cost_model = model.get();
  if (runtime->log.Announces()) {
    runtime->notes = std::make_unique<ArrangementNotes>(device_profile.sm_count);
    runtime->trace.Announce(runtime->notes.get());
  }
  absl::StatusOr<std::unique_ptr<core::Scheduler>> scheduler =
      core::Scheduler::Create(SchedulerOptionsOf(options, *wait_mode, places, *runtime),
                              std::move(device->device), std::move(model), std::move(policy));
  if (!scheduler.ok()) return scheduler.status();
  runtime->scheduler = *std::move(scheduler);
  {
    core::MutexLock lock(&runtime->mutex);
    runtime->profile = std::move(profile);
  }
  AnnounceRuntime(*runtime, chosen.from);
  WarnOfVirtualTime(*runtime);
  if (!replays) GPUSHARE_RETURN_IF_ERROR(StartTraceOfEnvironment(*runtime));
  if (!runtime->polled) GPUSHARE_RETURN_IF_ERROR(runtime->scheduler->StartThread());
  return runtime;
}

// `now + duration` without overflow.
int64_t After(int64_t now_ns, int64_t duration_ns) {
  return now_ns > GPUSHARE_NEVER - duration_ns ? GPUSHARE_NEVER : now_ns + duration_ns;
}

}  // namespace

RuntimeObject::~RuntimeObject() {
  if (scheduler == nullptr) return;
  // What a replay leaves pending gets no more answers.
  const int64_t timeout_ns = replay == nullptr ? shutdown_timeout_ns : 0;
  const absl::Status status = scheduler->Shutdown(After(scheduler->NowNs(), timeout_ns));
  if (!status.ok() && replay == nullptr) {
    // Without memory for the message, a shorter one.
    const absl::Status logged = core::CatchExhaustion([&] {
      log.Write(GPUSHARE_LOG_ERROR, absl::StrCat("The runtime was shut down: ", status.message()));
      return absl::OkStatus();
    });
    if (!logged.ok()) log.Write(GPUSHARE_LOG_ERROR, "The runtime was shut down.");
  }
  scheduler->StopThread();
  EndTraceOfEnvironment(*this);
  scheduler.reset();
}

absl::StatusOr<std::shared_ptr<RuntimeObject>> OpenRuntime(const gpushare_runtime_options* options,
                                                           std::unique_ptr<ReplayObject> replay) {
  gpushare_runtime_options known = GPUSHARE_RUNTIME_OPTIONS_INIT;
  if (options != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(ReadOptions("runtime_options", options, &known));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckOptions(known));
  WatchForks();
  return Open(known, std::move(replay));
}

absl::Status CheckMayEnd(const std::shared_ptr<RuntimeObject>& runtime, long own_references) {
  if (!CallbackScope::Active() || runtime.use_count() > own_references) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "The last reference to a runtime is released from a callback, where its end would wait for "
      "its own thread.");
}

}  // namespace gpushare::abi

using gpushare::abi::Enter;

gpushare_status gpushare_runtime_create(const gpushare_runtime_options* options,
                                        gpushare_runtime** out_runtime) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_runtime", out_runtime));
    *out_runtime = nullptr;
    auto runtime = gpushare::abi::OpenRuntime(options, nullptr);
    if (!runtime.ok()) return runtime.status();
    auto handle = gpushare::abi::MakeHandle<gpushare_runtime>(*std::move(runtime));
    if (!handle.ok()) return handle.status();
    *out_runtime = *handle;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_runtime_retain(gpushare_runtime* runtime) noexcept {
  return Enter([&] { return gpushare::abi::Retain(runtime); });
}

gpushare_status gpushare_runtime_release(gpushare_runtime* runtime) noexcept {
  return Enter([&] {
    return gpushare::abi::Release(runtime, [&]() -> absl::Status {
      GPUSHARE_FIND(object, runtime);
      // Two references would go: the handle's, and the one that shared_from_this makes here.
      return gpushare::abi::CheckMayEnd(object->shared_from_this(), 2);
    });
  });
}
