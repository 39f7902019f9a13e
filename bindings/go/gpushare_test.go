package gpushare

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func simulated(t *testing.T, polled bool) *Runtime {
	runtime := must(NewRuntime(RuntimeOptions{Device: "sim", Polled: polled}))
	t.Cleanup(func() {
		if err := runtime.Shutdown(Never); err != nil {
			t.Error(err)
		}
		if err := runtime.Close(); err != nil {
			t.Error(err)
		}
	})
	return runtime
}

func queueOf(runtime *Runtime, name string, class Class) *Queue {
	return must(must(runtime.NewApp(AppOptions{Name: name, Class: class})).NewQueue())
}

func TestAQueryAndAStepComplete(t *testing.T) {
	runtime := simulated(t, false)
	model := must(runtime.Register(KernelOptions{Name: "chain1"}))
	gradient := must(runtime.Register(KernelOptions{Name: "sincos_27us"}))
	step := must(queueOf(runtime, "training", BestEffort).Submit(Task{Kernel: gradient, BlockTasks: 1000}))
	query := must(queueOf(runtime, "service", LatencyCritical).Submit(Task{Kernel: model}))
	for _, ticket := range []*Ticket{query, step} {
		if err := ticket.Wait(Never); err != nil {
			t.Fatal(err)
		}
		record := must(ticket.Record())
		if record.Verdict != VerdictOK || record.Verdict.String() != "ok" || record.Complete <= record.Submit {
			t.Fatalf("%+v", record)
		}
		if err := ticket.Release(); err != nil {
			t.Fatal(err)
		}
		if err := ticket.Release(); err == nil {
			t.Fatal("a stale ticket is taken")
		}
	}
}

func TestAnErrorHasTheSentenceOfTheLibrary(t *testing.T) {
	runtime := simulated(t, false)
	var group sync.WaitGroup
	for number := 0; number < 8; number++ { // messages are per thread, and goroutines change threads
		group.Add(1)
		go func(name string) {
			defer group.Done()
			for round := 0; round < 100; round++ {
				_, err := runtime.Register(KernelOptions{Name: name})
				failure, ok := err.(*Error)
				if !ok || failure.Status != InvalidArgument || !strings.Contains(failure.Message, name) {
					t.Errorf("%v", err)
					return
				}
			}
		}(fmt.Sprintf("no_such_kernel_%d", number))
	}
	group.Wait()
}

func TestACompletionRunsOnceAndARefusedSubmitRunsNone(t *testing.T) {
	runtime := simulated(t, false)
	model := must(runtime.Register(KernelOptions{Name: "chain1"}))
	queue := queueOf(runtime, "service", LatencyCritical)
	verdicts := make(chan Verdict, 2)
	complete := func(record Record) { verdicts <- record.Verdict }
	ticket := must(queue.Submit(Task{Kernel: model, OnComplete: complete}))
	if _, err := queue.Submit(Task{Kernel: model, BlockTasks: -1, OnComplete: complete}); err == nil {
		t.Fatal("-1 block tasks are accepted")
	}
	if verdict := <-verdicts; verdict != VerdictOK {
		t.Fatal(verdict)
	}
	if err := ticket.Release(); err != nil {
		t.Fatal(err)
	}
	if err := runtime.Drain(Never); err != nil || len(verdicts) != 0 {
		t.Fatal(err, len(verdicts))
	}
}

func TestATaskStartsAfterAnother(t *testing.T) {
	runtime := simulated(t, true)
	model := must(runtime.Register(KernelOptions{Name: "chain1"}))
	gradient := must(runtime.Register(KernelOptions{Name: "sincos_27us"}))
	step := Task{Kernel: gradient, BlockTasks: 1000, Arguments: []byte{1, 2}}
	first := must(queueOf(runtime, "first", BestEffort).Submit(step))
	second := must(queueOf(runtime, "second", LatencyCritical).Submit(Task{Kernel: model, After: []*Ticket{first}}))
	if err := second.Wait(Never); err != nil {
		t.Fatal(err)
	}
	if must(second.Record()).Start < must(first.Record()).End {
		t.Fatal("it did not wait")
	}
	now := must(runtime.Now())
	if err := runtime.PollUntil(now + 1000); err != nil || must(runtime.Now()) != now+1000 {
		t.Fatal(err)
	}
}
