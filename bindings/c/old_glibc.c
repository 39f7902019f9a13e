/* What this machine's compiler and C++ library expect of glibc, for glibc 2.28 to 2.31, which lack
   it. It is linked into libraries of GPUSHARE_GLIBC_STUBS alone (cmake/GpusharePortable.cmake),
   with hidden symbols.

   Threads: any. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* glibc 2.32: 1 while the process has one thread, so that reference counts need no atomics. 0 is
 * always right. */
extern HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

typedef int (*Clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

static const long kSecond = 1000000000; /* ns */

/* a - b + c, which is not negative. */
static struct timespec moved(struct timespec a, struct timespec b, struct timespec c) {
  struct timespec sum = {a.tv_sec - b.tv_sec + c.tv_sec, a.tv_nsec - b.tv_nsec + c.tv_nsec};
  for (; sum.tv_nsec < 0; sum.tv_nsec += kSecond) --sum.tv_sec;
  for (; sum.tv_nsec >= kSecond; sum.tv_nsec -= kSecond) ++sum.tv_sec;
  if (sum.tv_sec < 0) sum = (struct timespec){0, 0};
  return sum;
}

static int reached(clockid_t clock, const struct timespec* deadline) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec != deadline->tv_sec ? now.tv_sec > deadline->tv_sec
                                        : now.tv_nsec >= deadline->tv_nsec;
}

/* glibc 2.30: waits by the given clock. Before, a condition variable waits by the realtime clock
   alone, so that the deadline is moved there. A clock that somebody sets then ends the wait early,
   which callers take for a spurious wake-up, or late. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const struct timespec* deadline) {
  static _Atomic(Clockwait) glibc;
  static atomic_int searched;
  if (!atomic_load(&searched)) { /* several threads may search: they find the same */
    atomic_store(&glibc, (Clockwait)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
    atomic_store(&searched, 1);
  }
  const Clockwait found = atomic_load(&glibc);
  if (found != NULL) return found(condition, mutex, clock, deadline);
  struct timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  const struct timespec wake = moved(*deadline, now, real);
  const int result = pthread_cond_timedwait(condition, mutex, &wake);
  return result == ETIMEDOUT && !reached(clock, deadline) ? 0 : result;
}
