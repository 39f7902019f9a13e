// Package gpushare runs latency-critical (LC) and best-effort (BE) work on one GPU, from one process. It is a thin layer
// over the C ABI of libgpushare, by cgo, which finds the library by pkg-config.
//
//	runtime, err := gpushare.NewRuntime(gpushare.RuntimeOptions{})
//	app, err := runtime.NewApp(gpushare.AppOptions{Name: "service", Class: gpushare.LatencyCritical, P99Bound: 1.05})
//	queue, err := app.NewQueue()
//	model, err := runtime.Register(gpushare.KernelOptions{Name: "chain1"})
//	ticket, err := queue.Submit(gpushare.Task{Kernel: model})
//	err = ticket.Wait(gpushare.Never)
//	record, err := ticket.Record()
//	err = ticket.Release()
//
// Objects may be used by any goroutine. Close gives a reference back, in any order; an app whose tasks run refuses it.
// Times are in nanoseconds, and deadlines absolute on the clock of Runtime.Now. A zero in options means the default.
package gpushare

/*
#cgo pkg-config: gpushare
#include <gpushare/gpushare.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Never is a time that never comes: as a deadline, wait without limit.
const Never = int64(C.GPUSHARE_NEVER)

// A Status says why a call failed; docs/errors.md says what to do about each.
type Status int32

const (
	InvalidArgument    = Status(C.GPUSHARE_INVALID_ARGUMENT)
	DeadlineExceeded   = Status(C.GPUSHARE_DEADLINE_EXCEEDED)
	NotFound           = Status(C.GPUSHARE_NOT_FOUND)
	AlreadyExists      = Status(C.GPUSHARE_ALREADY_EXISTS)
	ResourceExhausted  = Status(C.GPUSHARE_RESOURCE_EXHAUSTED)
	FailedPrecondition = Status(C.GPUSHARE_FAILED_PRECONDITION)
	Unimplemented      = Status(C.GPUSHARE_UNIMPLEMENTED)
	Unavailable        = Status(C.GPUSHARE_UNAVAILABLE)
)

func (status Status) String() string {
	return C.GoString(C.gpushare_status_name(C.gpushare_status(status)))
}

// An Error is a failed call: its status and the library's sentence.
type Error struct {
	Status  Status
	Message string
}

func (failure *Error) Error() string {
	return failure.Status.String() + ": " + failure.Message
}

// A Class is what an app is.
type Class int32

const (
	LatencyCritical = Class(C.GPUSHARE_CLASS_LATENCY_CRITICAL)
	BestEffort      = Class(C.GPUSHARE_CLASS_BEST_EFFORT)
)

// A Verdict says how a task ended. A newer library may return values that have no name here.
type Verdict int32

const (
	VerdictOK        = Verdict(C.GPUSHARE_VERDICT_OK)
	VerdictFailed    = Verdict(C.GPUSHARE_VERDICT_FAILED)
	VerdictCancelled = Verdict(C.GPUSHARE_VERDICT_CANCELLED)
	VerdictDropped   = Verdict(C.GPUSHARE_VERDICT_DROPPED)
	VerdictShutdown  = Verdict(C.GPUSHARE_VERDICT_SHUTDOWN)
)

func (verdict Verdict) String() string {
	return C.GoString(C.gpushare_verdict_name(C.gpushare_verdict(verdict)))
}

// call runs a C function and reads its message on the same thread, which a goroutine would else leave in between.
func call(function func() C.gpushare_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := function()
	if status == C.GPUSHARE_OK {
		return nil
	}
	return &Error{Status(status), C.GoString(C.gpushare_last_error_message())}
}

// text is a C string, or null for an empty one; free it.
func text(value string) *C.char {
	if value == "" {
		return nil
	}
	return C.CString(value)
}

func free(value *C.char) {
	C.free(unsafe.Pointer(value))
}

func boolean(value bool) C.gpushare_bool {
	if value {
		return 1
	}
	return 0
}

// RuntimeOptions says which device a runtime opens and how.
type RuntimeOptions struct {
	Device      string // "auto", "cuda", "sim", "sim:realtime", "null"; empty: GPUSHARE_DEVICE, else "auto"
	Policy      string
	ProfilePath string
	Seed        uint64
	Polled      bool // the caller drives the flow: PollUntil and waits
}

// A Runtime is one device with its scheduler.
type Runtime struct {
	handle *C.gpushare_runtime
}

// NewRuntime opens a device and starts its scheduler.
func NewRuntime(options RuntimeOptions) (*Runtime, error) {
	if found := C.gpushare_abi_version(); found != C.GPUSHARE_ABI_VERSION {
		message := fmt.Sprintf("The loaded libgpushare has ABI %d, and this package knows %d.", found, C.GPUSHARE_ABI_VERSION)
		return nil, &Error{Unimplemented, message}
	}
	device, policy, profile := text(options.Device), text(options.Policy), text(options.ProfilePath)
	defer free(device)
	defer free(policy)
	defer free(profile)
	raw := C.gpushare_runtime_options{struct_size: C.sizeof_gpushare_runtime_options, device: device, policy: policy,
		profile_path: profile, seed: C.uint64_t(options.Seed)}
	if options.Polled {
		raw.drive = C.GPUSHARE_DRIVE_POLL
	}
	made := &Runtime{}
	err := call(func() C.gpushare_status { return C.gpushare_runtime_create(&raw, &made.handle) })
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Close gives the reference back. What is below keeps the runtime.
func (runtime *Runtime) Close() error {
	return call(func() C.gpushare_status { return C.gpushare_runtime_release(runtime.handle) })
}

// Shutdown refuses new work, runs every accepted task, and returns when each has completed.
func (runtime *Runtime) Shutdown(deadline int64) error {
	return call(func() C.gpushare_status { return C.gpushare_runtime_shutdown(runtime.handle, C.int64_t(deadline)) })
}

// Drain waits until no task is pending.
func (runtime *Runtime) Drain(deadline int64) error {
	return call(func() C.gpushare_status { return C.gpushare_runtime_drain(runtime.handle, C.int64_t(deadline)) })
}

// PollUntil drives the flow until the device clock reaches the time. For Polled, one goroutine at a time.
func (runtime *Runtime) PollUntil(time int64) error {
	return call(func() C.gpushare_status { return C.gpushare_poll_until(runtime.handle, C.int64_t(time)) })
}

// Now reads the device's clock.
func (runtime *Runtime) Now() (int64, error) {
	var time C.int64_t
	err := call(func() C.gpushare_status { return C.gpushare_now_ns(runtime.handle, &time) })
	return int64(time), err
}

// AppOptions says what an app is and what it was promised.
type AppOptions struct {
	Name       string
	Class      Class
	Target     int64   // LC: latency target of a query
	P99Bound   float64 // LC: most p99 over p99 alone, 1.05 = 5 % more
	P99Alone   int64   // LC: p99 alone at the expected load
	Weight     float64 // BE: share of device time among BE apps with work
	DropLate   bool
	TasksMax   int32
	Priority   int32
	YieldNsMax int64
}

// An App is an owner of work, LC or BE.
type App struct {
	handle  *C.gpushare_app
	runtime *Runtime
	class   Class
}

// NewApp creates an app.
func (runtime *Runtime) NewApp(options AppOptions) (*App, error) {
	name := text(options.Name)
	defer free(name)
	raw := C.gpushare_app_options{struct_size: C.sizeof_gpushare_app_options, name: name,
		app_class: C.gpushare_app_class(options.Class), target_ns: C.int64_t(options.Target),
		p99_bound: C.double(options.P99Bound), p99_alone_ns: C.int64_t(options.P99Alone),
		weight: C.double(options.Weight), drop_late: boolean(options.DropLate), tasks_max: C.int32_t(options.TasksMax),
		priority: C.int32_t(options.Priority), yield_ns_max: C.int64_t(options.YieldNsMax)}
	made := &App{runtime: runtime, class: options.Class}
	err := call(func() C.gpushare_status { return C.gpushare_app_create(runtime.handle, &raw, &made.handle) })
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Close gives the reference back. It fails while tasks of the app run; the app then stays.
func (app *App) Close() error {
	return call(func() C.gpushare_status { return C.gpushare_app_release(app.handle) })
}

// KernelOptions describes a kernel to register. Functions and graphs of CUDA need the C API.
type KernelOptions struct {
	Name            string // without more, the kernel of this name in the runtime's profile
	ThreadsPerBlock int32
	SoloNs          int64
}

// A Kernel is a registered kernel, graph or library call.
type Kernel struct {
	handle *C.gpushare_kernel
}

// Register registers a kernel.
func (runtime *Runtime) Register(options KernelOptions) (*Kernel, error) {
	name := text(options.Name)
	defer free(name)
	raw := C.gpushare_kernel_options{struct_size: C.sizeof_gpushare_kernel_options, name: name,
		threads_per_block: C.int32_t(options.ThreadsPerBlock), solo_ns: C.int64_t(options.SoloNs)}
	made := &Kernel{}
	err := call(func() C.gpushare_status { return C.gpushare_kernel_register(runtime.handle, &raw, &made.handle) })
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Close gives the reference back. Tasks of the kernel go on.
func (kernel *Kernel) Close() error {
	return call(func() C.gpushare_status { return C.gpushare_kernel_release(kernel.handle) })
}
