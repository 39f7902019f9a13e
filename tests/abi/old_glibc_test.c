/* What a library for an old glibc brings itself (bindings/c/old_glibc.c), as on a glibc that lacks
 * all of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void* nothing(void) { return NULL; }
#define dlsym(handle, name) nothing()
#define pthread_cond_clockwait old_cond_clockwait
#include "bindings/c/old_glibc.c"
#undef dlsym

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int failures = 0;

static void expect(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "not so: %s\n", what);
  failures = 1;
}

static struct timespec after_ms(clockid_t clock, long ms) {
  struct timespec now;
  clock_gettime(clock, &now);
  const struct timespec zero = {0, 0}, step = {ms / 1000, ms % 1000 * 1000000};
  return moved(now, zero, step);
}

/* What a wait of ms returns that nobody signals; spurious wake-ups aside. */
static int wait_alone(clockid_t clock, long ms) {
  const struct timespec deadline = after_ms(clock, ms);
  int result = 0;
  pthread_mutex_lock(&mutex);
  for (int round = 0; round < 20 && result == 0; ++round)
    result = old_cond_clockwait(&condition, &mutex, clock, &deadline);
  pthread_mutex_unlock(&mutex);
  expect(reached(clock, &deadline), "a wait that times out has reached its deadline");
  return result;
}

static int woken = 0;

static void* wake(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  woken = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void wait_for_a_signal(void) {
  const struct timespec deadline = after_ms(CLOCK_MONOTONIC, 60000);
  pthread_t thread;
  int result = 0;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, wake, NULL);
  while (!woken && result == 0)
    result = old_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &deadline);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  expect(result == 0 && woken, "a signal ends a wait");
}

int main(void) {
  expect(wait_alone(CLOCK_MONOTONIC, 30) == ETIMEDOUT, "a wait by the monotonic clock times out");
  expect(wait_alone(CLOCK_REALTIME, 30) == ETIMEDOUT, "a wait by the realtime clock times out");
  expect(wait_alone(CLOCK_MONOTONIC, -5000) == ETIMEDOUT, "a deadline in the past times out");
  wait_for_a_signal();
  expect(__libc_single_threaded == 0, "reference counts are atomic");
  return failures;
}
