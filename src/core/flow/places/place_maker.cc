// Carries out the orders of places. See place_maker.h.

#include "src/core/flow/places/place_maker.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

constexpr char kThreadName[] = "gpushare-places";  // at most 15 bytes
constexpr std::chrono::microseconds kQuietLook{50};
constexpr int64_t kLongNs = int64_t{3600} * 1000 * 1000 * 1000;

}  // namespace

void PlaceMaker::Wake() {
  const MutexLock lock(&mutex_);
  woken_ = true;
  wakes_.NotifyOne();
  if (thread_.joinable() || stop_.load()) return;
  try {
    thread_ = std::thread([this] { Main(); });
  } catch (const std::system_error&) {  // no thread now
  } catch (const std::bad_alloc&) {
  }
}

void PlaceMaker::Stop() {
  std::thread ends;
  {
    const MutexLock lock(&mutex_);
    stop_.store(true);
    wakes_.NotifyOne();
    ends.swap(thread_);
  }
  if (ends.joinable()) ends.join();
}

void PlaceMaker::Main() {
  pthread_setname_np(pthread_self(), kThreadName);
  while (!Rest()) {
    while (!stop_.load() && CarryOutNext()) {
    }
  }
}

bool PlaceMaker::Rest() {
  const int64_t rest_ns =
      HasLivePlaces() ? std::min(kPlaceLookNs, flow_.options.place_idle_ns) : kLongNs;
  const MutexLock lock(&mutex_);
  if (!woken_ && !stop_.load()) wakes_.WaitFor(&mutex_, rest_ns);
  woken_ = false;
  return stop_.load();
}

bool PlaceMaker::HasLivePlaces() {
  const MutexLock lock(&tick_mutex_);
  return flow_.lanes.named().live() > 0;
}

// A registration holds its lock for as long as it prepares a kernel, so an order is taken behind
// it.
bool PlaceMaker::CarryOutNext() {
  PlaceOrder order;
  {
    const MutexLock registration(&registration_mutex_);
    {
      const MutexLock lock(&tick_mutex_);
      order = TakePlaceOrder(flow_);
    }
    if (order.place == kNoPlace) return false;
    const PlaceAnswer answer = AskDevice(flow_, order, [this] { AwaitQuiet(); });
    const MutexLock lock(&tick_mutex_);
    NotePlaceAnswer(flow_, order, answer);
  }
  changed_();
  return true;
}

void PlaceMaker::AwaitQuiet() const {
  const TimeNs give_up_ns = flow_.device->NowNs() + kPlaceQuietNs;
  while (flow_.gate.InFlight() != 0 && !stop_.load() && flow_.device->NowNs() < give_up_ns) {
    std::this_thread::sleep_for(kQuietLook);
  }
}

}  // namespace gpushare::core
