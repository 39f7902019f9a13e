// The thread that makes and ends places on a device in real time, off the path of queries and off
// the scheduler's thread.
//
//   flow.places_asked (by the plan stage) -> Wake -> orders one after another (place_orders.h)
//
// Before each call of the device it waits until no LC work is in flight, because a call may hold
// the driver or wait for running work; at most kPlaceQuietNs, so that it comes to an end under any
// load. It looks for idle places once in kPlaceLookNs, as long as there are any. Threads: Wake from
// any; Stop from one. It holds the lock of registration while the device makes or ends a place
// (device.h), and never the lock of Tick then.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLACES_PLACE_MAKER_H_
#define GPUSHARE_SRC_CORE_FLOW_PLACES_PLACE_MAKER_H_

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "src/core/base/mutex.h"
#include "src/core/flow/places/place_orders.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

class PlaceMaker {
 public:
  // `changed`: called after each change, with no lock held.
  PlaceMaker(Flow& flow, Mutex& registration_mutex, Mutex& tick_mutex,
             std::function<void()> changed)
      : flow_(flow),
        registration_mutex_(registration_mutex),
        tick_mutex_(tick_mutex),
        changed_(std::move(changed)) {}
  ~PlaceMaker() { Stop(); }
  PlaceMaker(const PlaceMaker&) = delete;
  PlaceMaker& operator=(const PlaceMaker&) = delete;

  // There may be an order. The first call starts the thread; if the system starts none, the next
  // plan that wants a place asks again.
  void Wake();
  // Ends the thread behind the order that it carries out. A later Wake does nothing.
  void Stop();

 private:
  void Main();
  // Waits for a Wake; true: stop.
  bool Rest();
  bool CarryOutNext();
  void AwaitQuiet() const;
  bool HasLivePlaces();

  Flow& flow_;
  Mutex& registration_mutex_;
  Mutex& tick_mutex_;
  const std::function<void()> changed_;
  Mutex mutex_;
  CondVar wakes_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLACES_PLACE_MAKER_H_
