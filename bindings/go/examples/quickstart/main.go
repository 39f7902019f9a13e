// A best-effort step beside a latency-critical query, in Go. It runs on the simulated device in real time, because its
// kernels are names of the built-in profile and bring no code.
package main

import (
	"fmt"
	"log"
	"time"

	"gpushare"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	runtime, err := gpushare.NewRuntime(gpushare.RuntimeOptions{Device: "sim:realtime"}) // on a GPU "cuda"
	check(err)
	training, err := runtime.NewApp(gpushare.AppOptions{Name: "training", Class: gpushare.BestEffort})
	check(err)
	steps, err := training.NewQueue()
	check(err)
	gradient, err := runtime.Register(gpushare.KernelOptions{Name: "sincos_27us"})
	check(err)
	step, err := steps.Submit(gpushare.Task{Kernel: gradient, BlockTasks: 10000000}) // 0.3 s
	check(err)

	service, err := runtime.NewApp(gpushare.AppOptions{
		Name: "service", Class: gpushare.LatencyCritical, P99Bound: 1.05, P99Alone: 2000000})
	check(err)
	queries, err := service.NewQueue()
	check(err)
	model, err := runtime.Register(gpushare.KernelOptions{Name: "chain1"})
	check(err)
	time.Sleep(5 * time.Millisecond)                           // the step runs
	query, err := queries.Submit(gpushare.Task{Kernel: model}) // on the device before it returns
	check(err)
	check(query.Wait(gpushare.Never))
	record, err := query.Record()
	check(err)
	fmt.Printf("query: %v in %d us\n", record.Verdict, (record.Complete-record.Submit)/1000)

	check(step.Wait(gpushare.Never))
	record, err = step.Record()
	check(err)
	fmt.Printf("training step: evicted %d times\n", record.Evictions)
	check(runtime.Shutdown(gpushare.Never))
	check(runtime.Close())
}
