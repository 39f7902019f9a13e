//! The safe API on the simulated device.

use gpushare::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

fn simulated() -> Runtime {
    Runtime::new(&RuntimeOptions::new().device("sim")).unwrap()
}

fn polled() -> Runtime {
    Runtime::new(&RuntimeOptions::new().device("sim").drive(Drive::POLL)).unwrap()
}

fn named(runtime: &Runtime, name: &str) -> Kernel {
    runtime.register(&KernelOptions::new(name)).unwrap()
}

fn lc_queue(runtime: &Runtime) -> Queue {
    runtime.app(&AppOptions::latency_critical("service").target_ns(5_000_000)).unwrap().queue().unwrap()
}

fn be_queue(runtime: &Runtime) -> Queue {
    runtime.app(&AppOptions::best_effort("training").weight(2.0)).unwrap().queue().unwrap()
}

#[test]
fn a_query_and_a_step_complete() {
    let runtime = simulated();
    let (lc, be) = (lc_queue(&runtime), be_queue(&runtime));
    let (model, gradient) = (named(&runtime, "chain1"), named(&runtime, "sincos_27us"));
    let step = be.submit(Task::of(&gradient).block_tasks(1000)).unwrap();
    let query = lc.submit(Task::of(&model)).unwrap();
    query.wait().unwrap();
    step.wait().unwrap();
    let record = query.record().unwrap();
    assert_eq!(record.verdict(), Verdict::OK);
    assert_eq!(record.verdict().to_string(), "ok");
    assert!(record.latency_ns() > 0);
    assert_eq!(step.record().unwrap().block_tasks, 1000);
    assert_eq!(runtime.device().unwrap(), (true, "sim".to_owned()));
    assert!(runtime.metrics().unwrap().contains("simulated=\"true\""));
}

#[test]
fn an_error_has_the_status_and_the_sentence_of_the_library() {
    let runtime = simulated();
    let error = runtime.app(&AppOptions::latency_critical("service").p99_bound(0.5)).unwrap_err();
    assert_eq!(error.status(), Status::INVALID_ARGUMENT);
    assert!(error.message().contains("0.5"), "{}", error);
    assert!(error.to_string().starts_with("INVALID_ARGUMENT: "));
    let error = Runtime::new(&RuntimeOptions::new().device("sim").policy("no_such_policy")).unwrap_err();
    assert!(error.message().contains("no_such_policy"));
}

#[test]
fn a_completion_closure_runs_once() {
    let runtime = simulated();
    let lc = lc_queue(&runtime);
    let model = named(&runtime, "chain1");
    let runs = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel();
    let counted = Arc::clone(&runs);
    let task = Task::of(&model).on_complete(move |record| {
        counted.fetch_add(1, Ordering::SeqCst);
        sender.send(record.verdict()).unwrap();
    });
    drop(lc.submit(task).unwrap()); // the ticket is given back at once, and the task goes on
    assert_eq!(receiver.recv().unwrap(), Verdict::OK);
    runtime.drain(NEVER).unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[test]
fn a_refused_submit_frees_its_closure_and_does_not_run_it() {
    let runtime = simulated();
    let be = be_queue(&runtime);
    let gradient = named(&runtime, "sincos_27us");
    let kept = Arc::new(());
    let captured = Arc::clone(&kept);
    let task = Task::of(&gradient).block_tasks(-1).on_complete(move |_| panic!("{:?}", captured));
    assert_eq!(be.submit(task).unwrap_err().status(), Status::INVALID_ARGUMENT);
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn enqueued_work_runs_or_is_freed() {
    let runtime = polled();
    let be = be_queue(&runtime);
    let (sender, receiver) = channel();
    let task = Task::enqueued_by(move |stream| {
        sender.send(stream.is_null()).unwrap();
        Ok(())
    });
    let ticket = be.submit(task.declared_ns(1000)).unwrap();
    ticket.wait().unwrap();
    assert!(receiver.recv().unwrap());

    let kept = Arc::new(());
    let captured = Arc::clone(&kept);
    let task = Task::enqueued_by(move |_| Err(format!("{captured:?}")));
    let ticket = be.submit(task.declared_ns(1000)).unwrap();
    ticket.cancel().unwrap();
    ticket.wait().unwrap();
    assert_eq!(ticket.record().unwrap().verdict(), Verdict::CANCELLED);
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn a_failing_or_panicking_enqueue_fails_its_task() {
    let runtime = polled();
    let be = be_queue(&runtime);
    let failing = be.submit(Task::enqueued_by(|_| Err("no input".to_owned())).declared_ns(1000)).unwrap();
    let panicking = be.submit(Task::enqueued_by(|_| panic!("on purpose")).declared_ns(1000)).unwrap();
    for ticket in [failing, panicking] {
        ticket.wait().unwrap();
        assert_eq!(ticket.record().unwrap().verdict(), Verdict::FAILED);
    }
}

#[test]
fn a_query_of_two_tasks_in_virtual_time() {
    let runtime = polled();
    let lc = lc_queue(&runtime);
    let model = named(&runtime, "chain1");
    runtime.poll_until(1_000_000).unwrap();
    let query = lc.begin_query(runtime.now_ns().unwrap()).unwrap();
    let first = lc.submit(Task::of(&model).query(&query)).unwrap();
    let second = lc.submit(Task::of(&model).query(&query).after(&first)).unwrap();
    query.end().unwrap();
    second.wait().unwrap();
    assert!(first.is_complete().unwrap());
    assert!(second.record().unwrap().start_ns >= first.record().unwrap().end_ns);
    let error = second.wait_until(-1).unwrap_err();
    assert_eq!(error.status(), Status::INVALID_ARGUMENT);
}

#[test]
fn handles_are_dropped_in_any_order() {
    let runtime = simulated();
    let lc = lc_queue(&runtime);
    let model = named(&runtime, "chain1");
    let ticket = lc.submit(Task::of(&model)).unwrap();
    drop(runtime); // the queue, the kernel and the ticket keep it
    drop(lc.clone());
    ticket.wait().unwrap();
    drop(model);
    drop(lc);
    assert_eq!(ticket.record().unwrap().verdict(), Verdict::OK);
}

#[test]
fn threads_share_a_queue() {
    let runtime = simulated();
    let lc = lc_queue(&runtime);
    let model = named(&runtime, "chain1");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    lc.submit(Task::of(&model)).unwrap().wait().unwrap();
                }
            });
        }
    });
    let message = Arc::new(Mutex::new(0));
    *message.lock().unwrap() += runtime.stats().unwrap().tasks_pending;
    assert_eq!(*message.lock().unwrap(), 0);
}

#[test]
fn a_region_gives_its_ticket_at_its_end() {
    let runtime = simulated();
    let lc = lc_queue(&runtime);
    let region = lc.begin_region(10_000, 0).unwrap();
    assert!(region.stream().is_null());
    let ticket = region.end().map_err(|(_, error)| error).unwrap();
    ticket.wait().unwrap();
    assert_eq!(ticket.record().unwrap().verdict(), Verdict::OK);
    drop(lc.begin_region(10_000, 0).unwrap()); // a drop ends it
    runtime.drain(NEVER).unwrap();
}

#[test]
fn an_event_fd_becomes_readable() {
    use std::io::Read;
    let runtime = simulated();
    let lc = lc_queue(&runtime);
    let model = named(&runtime, "chain1");
    let ticket = lc.submit(Task::of(&model)).unwrap();
    let mut file = std::fs::File::from(ticket.event_fd().unwrap());
    let mut count = [0; 8];
    // It does not block: an event loop waits for it. Here a second of tries does.
    let read = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        file.read_exact(&mut count).is_ok()
    });
    assert!(read);
    assert_eq!(u64::from_ne_bytes(count), 1);
}

#[test]
fn a_kernel_of_ones_own_and_an_update() {
    let runtime = polled();
    let app = runtime.app(&AppOptions::latency_critical("service").p99_bound(1.05)).unwrap();
    let record = SimulationRecord::new().block_task_ns(10_000).speed(&[(66, 0.6), (132, 1.0)]);
    let own =
        runtime.register(&KernelOptions::new("own").workers_per_sm_max(2).evictable(true).simulation(record)).unwrap();
    let ticket = app.queue().unwrap().submit(Task::of(&own).block_tasks(264).arguments(&[1, 2, 3])).unwrap();
    ticket.wait().unwrap();
    assert!(ticket.record().unwrap().measured_ns >= 10_000);
    app.update(&AppUpdate::new().target_ns(7_000_000)).unwrap();
    assert_eq!(app.guarantee().unwrap().target_ns, 7_000_000);
    assert_eq!(app.stats().unwrap().completed, 1);
}

#[test]
fn log_messages_reach_the_closure() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let options = RuntimeOptions::new().device("sim").sim_faults("launch_failure=1").log(move |level, line| {
        kept.lock().unwrap().push((level, line.to_owned()));
    });
    let runtime = Runtime::new(&options).unwrap();
    let ticket =
        be_queue(&runtime).submit(Task::enqueued_by(|_| Err("no input today".into())).declared_ns(10)).unwrap();
    ticket.wait().unwrap();
    runtime.drain(NEVER).unwrap();
    assert!(!lines.lock().unwrap().is_empty());
}
