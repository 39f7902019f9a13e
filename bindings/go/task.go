package gpushare

/*
#include <gpushare/gpushare.h>
#include <stdint.h>
#include <stdlib.h>

void gpushareGoComplete(void* user, gpushare_completion_record* record);

// A cgo.Handle is a number, which Go may not hold as a pointer.
static inline void gpushare_go_set_callback(gpushare_task_options* options, uintptr_t handle) {
  options->callback = (gpushare_completion_callback)gpushareGoComplete;
  options->callback_user = (void*)handle;
}
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// A Record says how a task ended.
type Record struct {
	Verdict    Verdict
	Submit     int64
	Start      int64
	End        int64
	Complete   int64
	Predicted  int64
	Measured   int64
	BlockTasks int64
	Evictions  int32
	Launches   int32
	ErrorCode  int32
}

func recordOf(raw *C.gpushare_completion_record) Record {
	return Record{Verdict: Verdict(raw.verdict), Submit: int64(raw.submit_ns), Start: int64(raw.start_ns),
		End: int64(raw.end_ns), Complete: int64(raw.complete_ns), Predicted: int64(raw.predicted_ns),
		Measured: int64(raw.measured_ns), BlockTasks: int64(raw.block_tasks), Evictions: int32(raw.evictions),
		Launches: int32(raw.launches), ErrorCode: int32(raw.error_code)}
}

// A Task is one task of a registered kernel.
type Task struct {
	Kernel     *Kernel
	BlockTasks int64
	Arguments  []byte // packed; copied at submit
	Arrival    int64  // LC: when the request was meant to arrive; 0: now
	After      []*Ticket
	// Runs once, when the task is complete, on the library's thread. It may submit; it must not wait. If the submit
	// fails, it does not run.
	OnComplete func(Record)
}

// A Queue is a FIFO of an app's tasks.
type Queue struct {
	handle *C.gpushare_queue
	app    *App
}

// NewQueue creates a queue.
func (app *App) NewQueue() (*Queue, error) {
	made := &Queue{app: app}
	err := call(func() C.gpushare_status { return C.gpushare_queue_create(app.handle, &made.handle) })
	if err != nil {
		return nil, err
	}
	return made, nil
}

// Close gives the reference back. It fails while tasks of the queue run; the queue then stays.
func (queue *Queue) Close() error {
	return call(func() C.gpushare_status { return C.gpushare_queue_release(queue.handle) })
}

// A Ticket is one submitted task.
type Ticket struct {
	value   C.gpushare_ticket
	runtime *Runtime
}

// Submit submits a task. One of an LC app is on the device before the call returns, if its lane is free.
func (queue *Queue) Submit(task Task) (*Ticket, error) {
	raw := C.gpushare_task_options{struct_size: C.sizeof_gpushare_task_options, block_tasks: C.int64_t(task.BlockTasks),
		arrival_ns: C.int64_t(task.Arrival)}
	if task.Kernel != nil {
		raw.kernel = task.Kernel.handle
	}
	if len(task.Arguments) > 0 {
		raw.arguments = C.CBytes(task.Arguments)
		raw.arguments_size_bytes = C.uint64_t(len(task.Arguments))
		defer C.free(unsafe.Pointer(raw.arguments))
	}
	if len(task.After) > 0 {
		// In C's memory: Go's may not point to Go's.
		tickets := (*C.gpushare_ticket)(C.calloc(C.size_t(len(task.After)), C.sizeof_gpushare_ticket))
		defer C.free(unsafe.Pointer(tickets))
		for index, ticket := range task.After {
			unsafe.Slice(tickets, len(task.After))[index] = ticket.value
		}
		raw.wait_tickets, raw.wait_ticket_count = tickets, C.uint32_t(len(task.After))
	}
	var handle cgo.Handle
	if task.OnComplete != nil {
		handle = cgo.NewHandle(task.OnComplete)
		C.gpushare_go_set_callback(&raw, C.uintptr_t(handle))
	}
	made := &Ticket{runtime: queue.app.runtime}
	err := call(func() C.gpushare_status {
		if queue.app.class == LatencyCritical {
			return C.gpushare_submit_lc(queue.handle, &raw, &made.value)
		}
		return C.gpushare_submit_be(queue.handle, &raw, &made.value)
	})
	if err != nil {
		if task.OnComplete != nil {
			handle.Delete()
		}
		return nil, err
	}
	return made, nil
}

//export gpushareGoComplete
func gpushareGoComplete(user unsafe.Pointer, record *C.gpushare_completion_record) {
	handle := cgo.Handle(uintptr(user))
	function := handle.Value().(func(Record))
	handle.Delete()
	function(recordOf(record))
}

// Wait waits until the task is complete, however it ended, until the deadline at most.
func (ticket *Ticket) Wait(deadline int64) error {
	return call(func() C.gpushare_status {
		return C.gpushare_ticket_wait(ticket.runtime.handle, ticket.value, C.int64_t(deadline))
	})
}

// Record copies the record of a complete task.
func (ticket *Ticket) Record() (Record, error) {
	raw := C.gpushare_completion_record{struct_size: C.sizeof_gpushare_completion_record}
	err := call(func() C.gpushare_status {
		return C.gpushare_ticket_record(ticket.runtime.handle, ticket.value, &raw)
	})
	return recordOf(&raw), err
}

// Cancel asks the library not to run the task, or to evict it.
func (ticket *Ticket) Cancel() error {
	return call(func() C.gpushare_status { return C.gpushare_ticket_cancel(ticket.runtime.handle, ticket.value) })
}

// Release gives the ticket back. The task goes on.
func (ticket *Ticket) Release() error {
	return call(func() C.gpushare_status { return C.gpushare_ticket_release(ticket.runtime.handle, ticket.value) })
}
