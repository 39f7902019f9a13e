// A CUDA driver whose functions fail on request.
//
// The library finds the driver's functions with dlsym. This program has a dlsym of its own, which
// comes before the C library's and gives each function of the driver a wrapper. From the chosen
// call on, every function answers the code, as after a sticky error, until Disarm. The real context
// stays whole, so that one process can try every function. x86-64 only: a wrapper passes on twelve
// words. Threads: any; Arm and Disarm while no other thread is inside the driver for the result to
// be exact.

#ifndef GPUSHARE_BENCHMARKS_FAULTS_FAILING_DRIVER_H_
#define GPUSHARE_BENCHMARKS_FAULTS_FAILING_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::benchmarks {

// The functions that were looked up so far, in that order; an index names one below.
std::vector<std::string> DriverFunctions();

// The nth call of the function from here on fails, and every call after it.
void Arm(size_t function, int64_t nth, int code);
void Disarm();
bool HasFired();

void ResetCallCounts();
int64_t CallsOf(size_t function);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_FAULTS_FAILING_DRIVER_H_
