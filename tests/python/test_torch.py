"""Service and Training against a PyTorch without a GPU (fake_torch.py) and the simulated device."""

import collections
import gc
import threading
import types

import fake_torch
import pytest
from fake_torch import PLACES, Tensor, calls, double

import gpushare


def test_a_service_is_captured_in_each_place_in_memory_of_its_own(torch, capturing):
    service = torch.Service(capturing, double, Tensor([1, 2]), name='resnet50_b1')
    assert service.captures.place_sms == list(PLACES)
    runs = [call for call in calls if call[0] == 'double']
    assert [run[1] for run in runs] == ['side'] * 3 + ['external 0x100', 'external 0x101', 'external 0x102']
    last = calls.index(('double', 'external 0x102'))
    assert calls[last - 5:last + 3] == [
        ('clear_workspaces',), ('carve_out', 96), ('enter', 'pool', service._server.pool.id),
        ('enter', 'threads', False), ('enter', 'no_grad'),
        ('double', 'external 0x102'), ('leave', 'no_grad'), ('enter', 'no_grad')]
    assert fake_torch.carve_out == [None]


def test_the_whole_device_has_no_carve_out_and_the_callers_is_put_back(torch, capturing):
    fake_torch.carve_out[0] = 10
    torch.Service(capturing, double, Tensor([1, 2]), name='resnet50_b1')
    assert [call[1] for call in calls if call[0] == 'carve_out'] == [36, 10, 96, 10]


def test_a_service_is_called_like_the_function(torch, capturing):
    with torch.Service(capturing, double, (Tensor([1, 2]),), name='resnet50_b1', p99_bound=1.2) as service:
        # The last capture left its result; a simulated launch computes nothing.
        result = service(Tensor([5, 6]))
        assert result.values == [2, 4]
        assert service.inputs[0].values == [5, 6]
        result.values[0] = 7
        assert service(Tensor([5, 6])).values == [2, 4]
        assert service.app.stats().latency.count == 2
    assert service.app.closed
    assert not capturing._kept


def test_a_query_starts_behind_the_copies_of_its_caller_and_of_the_one_before(torch, capturing, monkeypatch):
    service = torch.Service(capturing, double, Tensor([1, 2]), name='resnet50_b1')
    seen = []
    submit = service._server._queue.submit
    service._server._simulated = False  # as on a GPU, the device waits for the events
    monkeypatch.setattr(service._server._queue, 'submit',
                        lambda kernel, query, wait_events: (seen.append(wait_events), submit(kernel))[1])
    service(Tensor([1, 2]))
    service(Tensor([1, 2]))
    assert [len(events) for events in seen] == [1, 2]
    assert seen[1][0] not in seen[0]


def warmed(capturing):
    return [(memory, size) for memory, size in capturing.options['warm_memory']]


def test_a_modules_weights_are_read_into_the_cache_once_each(torch, capturing):
    shared, other, host = Tensor([1] * 8), Tensor([2] * 100), Tensor([3])
    host.is_cuda = False
    sparse = Tensor([4])
    sparse.layout = 'sparse'
    module = fake_torch.Module((other, shared, host), (shared, Tensor([]), sparse))
    torch.Service(capturing, module, Tensor([1]), name='resnet50_b1')
    assert warmed(capturing) == sorted([(shared.pointer, 32), (other.pointer, 400)])


def test_weights_may_be_named_or_left_out(torch, capturing):
    weight, module = Tensor([1] * 8), fake_torch.Module((Tensor([2]),))
    torch.Service(capturing, double, Tensor([1]), name='resnet50_b1', weights=[weight])
    assert warmed(capturing) == [(weight.pointer, 32)]
    torch.Service(capturing, double, Tensor([1]), name='bert_b1', weights=module)
    assert warmed(capturing) == [(module._parameters[0].pointer, 4)]
    torch.Service(capturing, module, Tensor([1]), name='chain1', weights=())
    assert warmed(capturing) == []
    torch.Service(capturing, double, Tensor([1]), name='decode16')
    assert warmed(capturing) == [], 'a function has no weights that anyone knows'


def test_weights_beyond_half_of_the_cache_are_not_read(torch, capturing):
    half = Tensor([1] * (fake_torch.L2_CACHE // 8))
    torch.Service(capturing, double, Tensor([1]), name='resnet50_b1', weights=[half])
    assert warmed(capturing) == [(half.pointer, fake_torch.L2_CACHE // 2)]
    torch.Service(capturing, double, Tensor([1]), name='bert_b1', weights=[half, Tensor([1])])
    assert warmed(capturing) == []


def test_an_input_of_another_shape_is_refused_before_a_copy(torch, capturing):
    service = torch.Service(capturing, double, Tensor([1, 2]), name='resnet50_b1')
    with pytest.raises(gpushare.InvalidArgumentError, match=r'Tensor 0 of the input is \(3,\) of float32'):
        service(Tensor([1, 2, 3]))
    with pytest.raises(gpushare.InvalidArgumentError, match='has a tuple of 2, and the captured one has 1'):
        service(Tensor([1, 2]), Tensor([1, 2]))
    assert service.inputs[0].values == [1, 2]


def test_inputs_must_be_nested_as_the_captured_ones_and_dicts_match_by_key(torch, capturing):
    def add(given, factor):
        return Tensor([factor * value for value in given['a'].values])

    service = torch.Service(capturing, add, ({'a': Tensor([1]), 'b': [Tensor([2])]}, 2), name='resnet50_b1')
    before = len(calls)
    service({'b': [Tensor([6])], 'a': Tensor([5])}, 2)
    given = service.inputs[0]
    assert (given['a'].values, given['b'][0].values) == ([5], [6])
    assert ('enter', 'no_grad') in calls[before:]
    for inputs, sentence in [
        (({'a': Tensor([7]), 'c': [Tensor([8])]}, 2), "with the keys"),
        (({'a': Tensor([7]), 'b': (Tensor([8]),)}, 2), 'has a tuple where the captured one has a list'),
        (({'a': 7, 'b': [Tensor([8])]}, 2), 'has a int where the captured one has a tensor'),
        (({'a': Tensor([7]), 'b': [Tensor([8])]}, 3), 'has 3 where the captured one has 2'),
    ]:
        with pytest.raises(gpushare.InvalidArgumentError, match=sentence):
            service(*inputs)
    assert (given['a'].values, given['b'][0].values) == ([5], [6])


def test_a_value_that_cannot_be_captured_is_refused(torch, capturing):
    with pytest.raises(gpushare.InvalidArgumentError, match='A set is neither a tensor'):
        torch.Service(capturing, lambda tensor: {tensor}, Tensor([1]), name='resnet50_b1')


def test_nested_results_keep_their_shape(torch, capturing):
    service = torch.Service(capturing, lambda tensor: {'a': [double(tensor)], 'b': (double(tensor), 3)},
                            Tensor([1]), name='resnet50_b1')
    result = service(Tensor([1]))
    assert result['a'][0].values == [2]
    assert result['b'][1] == 3


def test_an_interrupted_query_is_waited_for_before_the_next_copy(torch, capturing, monkeypatch):
    service = torch.Service(capturing, double, Tensor([1, 2]), name='resnet50_b1')
    with monkeypatch.context() as patch:
        patch.setattr(gpushare.Ticket, 'wait_ok', lambda ticket: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            service(Tensor([5, 6]))
    pending, found = service._server._in_flight._newest['resnet50_b1'], []
    wait_complete = gpushare.Ticket.wait_complete
    monkeypatch.setattr(gpushare.Ticket, 'wait_complete', lambda ticket, timeout_s=None: (
        found.append((ticket, list(service.inputs[0].values))), wait_complete(ticket))[1])
    service(Tensor([7, 8]))
    assert found[0] == (pending, [5, 6])


def test_threads_share_a_service_one_query_at_a_time(torch, capturing):
    service = torch.Service(capturing, double, Tensor([1, 2]), name='resnet50_b1')
    threads = [threading.Thread(target=lambda: [service(Tensor([1, 2])) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert service.app.stats().latency.count == 40


def test_random_numbers_are_refused(torch, capturing):
    def dropout(tensor):
        fake_torch.draw([], 4)
        return tensor

    with pytest.raises(gpushare.UnimplementedError, match='draws random numbers on the GPU'):
        torch.Service(capturing, dropout, Tensor([1]), name='resnet50_b1')


def test_an_exception_of_the_function_is_raised_and_not_the_librarys(torch, capturing):
    def fail(tensor):
        if fake_torch.cuda.current_stream().name.startswith('external'):
            raise KeyError('mine')
        return tensor

    with pytest.raises(KeyError, match='mine'):
        torch.Service(capturing, fail, Tensor([1]), name='resnet50_b1')


def test_without_a_gpu_it_says_so(torch, capturing, monkeypatch):
    monkeypatch.setattr(fake_torch.cuda, 'is_available', lambda: False)
    with pytest.raises(gpushare.UnavailableError, match='PyTorch sees no GPU'):
        torch.Training(capturing, lambda: None)


def test_example_inputs_on_the_cpu_are_refused(torch, capturing):
    given = Tensor([1, 2])
    given.is_cuda = False
    with pytest.raises(gpushare.InvalidArgumentError, match=r'A tensor of shape \(2,\) is on the CPU'):
        torch.Service(capturing, double, given, name='resnet50_b1')


def test_another_gpu_than_the_runtimes_is_refused(torch, capturing, monkeypatch):
    capturing.device_ordinal = 1
    monkeypatch.setattr(capturing, 'device', lambda: types.SimpleNamespace(simulated=False))
    for make in (lambda: torch.Service(capturing, double, Tensor([1])),
                 lambda: torch.Training(capturing, lambda: None)):
        with pytest.raises(gpushare.InvalidArgumentError, match=r'Call torch\.cuda\.set_device\(1\) first'):
            make()


def test_without_pytorch_the_import_says_what_to_do(run_python):
    said = run_python('''
        import sys
        sys.modules['torch'] = None
        try:
            import gpushare.torch
        except ModuleNotFoundError as error:
            print(error)
    ''')
    assert said == 'gpushare.torch needs PyTorch 2.8 or later: pip install torch.\n'


class Optimizer:
    """Makes its state in its first step, as those of torch.optim do."""

    def __init__(self, weight, first=None, **group):
        self.weight = weight
        self.first = first or {'moment': [0, 0], 'product': [1, 1]}
        self.state = collections.defaultdict(dict)
        self.param_groups = [{'lr': 0.1, **group}]

    def state_dict(self):
        return {'state': dict(enumerate(self.state.values())), 'param_groups': self.param_groups}

    def step(self):
        entry = self.state[self.weight]
        if not entry:
            for name, values in self.first.items():
                entry[name] = Tensor(values)
        for tensor in (self.weight, *entry.values()):
            tensor.values[:] = [value + 1 for value in tensor.values]
        return self.weight


def test_a_training_begins_where_it_was_before_the_warm_up(torch, capturing):
    weight = Tensor([1, 2])
    optimizer = Optimizer(weight)
    seen = []

    def step():
        seen.append(list(weight.values))
        return optimizer.step()

    training = torch.Training(capturing, step, state=([weight], optimizer), name='chain1')
    # Three runs to warm up; the fourth is the capture, which the fake runs although a GPU would not.
    assert seen == [[1, 2], [2, 3], [3, 4], [4, 5]]
    assert weight.values == [1, 2]
    entry = optimizer.state[weight]
    assert {name: tensor.values for name, tensor in entry.items()} == {'moment': [0, 0], 'product': [1, 1]}
    assert type(entry) is dict
    assert optimizer.state.default_factory is dict
    assert training.outputs is weight


def test_the_steps_that_measure_are_undone_and_run_behind_the_capture(torch, capturing):
    weight = Tensor([1, 2])
    capturing.step = Optimizer(weight).step
    torch.Training(capturing, capturing.step, state=[weight], name='chain1')
    assert weight.values == [1, 2]
    # The snapshot's copies are on the current stream, and the measurement on one of the library.
    end = calls.index(('capture_end',))
    assert calls[end:end + 4] == [
        ('capture_end',), ('clear_workspaces',), ('synchronize', 'current'), ('measure',)]


def test_a_registration_that_fails_leaves_the_model_as_it_was(torch, capturing):
    weight = Tensor([1, 2])
    optimizer = Optimizer(weight)
    capturing.refused = gpushare.InvalidArgumentError(gpushare.Status.INVALID_ARGUMENT, 'A reason.')
    with pytest.raises(gpushare.InvalidArgumentError, match='A reason'):
        torch.Training(capturing, optimizer.step, state=[weight, optimizer], name='chain1')
    assert weight.values == [1, 2]
    assert not optimizer.state


def test_a_step_is_measured_unless_the_caller_says_no(torch, capturing):
    torch.Training(capturing, lambda: None, name='chain1')
    assert capturing.options['measure_nodes'] is True
    assert capturing.options['measure_places'] is True
    torch.Training(capturing, lambda: None, name='decode16', measure=False)
    assert capturing.options['measure_nodes'] is False
    assert capturing.options['measure_places'] is False


def test_a_service_is_never_cut_and_measured_unless_the_caller_says_no(torch, capturing):
    inputs = Tensor([1])
    torch.Service(capturing, double, inputs, name='chain1')
    assert capturing.options['segment_ns'] == -1
    assert capturing.options['measure_places'] is True
    torch.Service(capturing, double, inputs, name='decode16', measure=False)
    assert capturing.options['measure_places'] is False


def test_state_that_an_optimizer_has_is_put_back(torch, capturing):
    weight = Tensor([1, 2])
    optimizer = Optimizer(weight, {'average': [1, 2]}, dampening=0.5)
    optimizer.step()
    torch.Training(capturing, optimizer.step, state=([weight], optimizer), name='chain1')
    assert optimizer.state[weight]['average'].values == [2, 3]  # the step of the caller


@pytest.mark.parametrize(('first', 'dampening', 'after'), [
    ({'momentum_buffer': [3, 4]}, 0, [0, 0]),  # a first gradient: the buffer was zero
    ({'momentum_buffer': [3, 4]}, 0.5, None),
    ({'average': [3, 4]}, 0, None),
])
def test_state_that_comes_from_the_first_step_is_refused_unless_it_can_be_undone(
        torch, capturing, first, dampening, after):
    weight = Tensor([1, 2])
    optimizer = Optimizer(weight, first, dampening=dampening)
    if after:
        torch.Training(capturing, optimizer.step, state=([weight], optimizer), name='chain1')
        assert optimizer.state[weight]['momentum_buffer'].values == after
        return
    with pytest.raises(gpushare.UnimplementedError, match=f"makes 'state.0.{next(iter(first))}' in item 1 of the st"):
        torch.Training(capturing, optimizer.step, state=([weight], optimizer), name='chain1')
    assert weight.values == [1, 2]
    assert not optimizer.state


def test_tensors_that_share_memory_are_each_put_back(torch, capturing):
    whole, first = Tensor([1, 2]), Tensor([1])
    first.pointer = whole.pointer

    def step():
        whole.values[:] = first.values[:] = [5]

    snapshot = torch._snapshot.Snapshot([[whole], {'first': first}])
    with snapshot:
        step()
        snapshot.restore()
    assert (whole.values, first.values) == ([1, 2], [1])


def test_a_warm_up_that_raises_leaves_the_model_as_it_was(torch, capturing):
    weight = Tensor([1, 2])

    optimizer = Optimizer(weight)

    def step():
        optimizer.step()
        raise KeyError('mine')

    with pytest.raises(KeyError, match='mine'):
        torch.Training(capturing, step, state=[weight, optimizer], name='chain1')
    assert weight.values == [1, 2]
    assert not optimizer.state


def test_a_step_that_fails_fails_the_steps_behind_it(torch, capturing):
    training = torch.Training(capturing, lambda: None, name='chain1')
    capturing.quiesce()
    first, second = training.submit(2)
    third, = training.submit()
    assert first.cancel()
    capturing.resume()
    for ticket in (first, second, third):
        ticket.wait_complete()
    assert first.record().verdict is gpushare.Verdict.CANCELLED
    assert second.record().failed_dependency == first.value
    assert third.record().failed_dependency == second.value
    training.submit()[0].wait()


def test_a_training_is_captured_once_on_a_stream_of_its_own(torch, capturing):
    torch.Training(capturing, lambda: None, name='chain1')
    begin = calls.index(('capture_begin', 'side', 'relaxed'))
    # The workspace of cuBLAS is the capture's own: another capture's clearing must not free it.
    assert calls[begin - 1:begin + 3] == [
        ('clear_workspaces',), ('capture_begin', 'side', 'relaxed'), ('capture_end',), ('clear_workspaces',)]
    assert capturing.options['graph'] == 0xabc
    assert capturing.options['kind'] is gpushare.TaskKind.GRAPH


def test_a_step_that_cannot_be_captured_raises_its_own_exception(torch, capturing, monkeypatch):
    def fail(graph):
        raise RuntimeError('the capture is invalid')

    def step():
        if fake_torch.calls[-1][0] == 'capture_begin':
            raise KeyError('item() waits for the GPU')

    monkeypatch.setattr(fake_torch.CUDAGraph, 'capture_end', fail)
    with pytest.raises(KeyError, match='waits for the GPU'):
        torch.Training(capturing, step, name='chain1')


def test_submitted_steps_run_in_order_behind_the_current_stream(torch, capturing):
    with torch.Training(capturing, lambda: None, name='chain1', weight=2.0) as training:
        before = len(calls)
        tickets = training.submit(5)
        assert calls[before:] == [('record', 'current'), ('event',)]
        training.wait()
        records = [ticket.wait() for ticket in tickets]
        assert [record.start_ns for record in records] == sorted(record.start_ns for record in records)
        with pytest.raises(ValueError, match='n is 0'):
            training.submit(0)
    assert training.app.closed
    assert not capturing._kept


def test_a_training_that_is_fed_for_ever_keeps_few_events_and_slots(torch, capturing):
    training = torch.Training(capturing, lambda: None, name='chain1', tasks_max=16)
    for _ in range(100):
        training.submit(3)[0].wait()
    assert len(training._chain.memory) <= 2


def test_a_dropped_training_keeps_its_memory_until_the_runtime_ends(torch, capturing):
    torch.Training(capturing, lambda: None, name='chain1').submit(3)
    assert len(capturing._kept) == 1
    capturing.close()
    assert not capturing._kept


def test_a_queued_step_keeps_its_event_when_its_training_is_dropped(torch, capturing, live_events):
    training = torch.Training(capturing, lambda: None, name='chain1')
    capturing.quiesce()
    training.submit(3)
    del training
    gc.collect()
    assert len(live_events) == 1
    capturing.resume()


def test_an_interrupted_query_keeps_its_events_when_its_service_is_dropped(
        torch, capturing, live_events, monkeypatch):
    service = torch.Service(capturing, double, Tensor([1, 2]), name='resnet50_b1')
    with monkeypatch.context() as patch:
        patch.setattr(gpushare.Ticket, 'wait_ok', lambda ticket: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            service(Tensor([5, 6]))
    del service
    gc.collect()
    assert len(live_events) == 1
    assert any(event in events for event in live_events for kept in capturing._kept
               if isinstance(kept, collections.deque) for events in kept)


def test_a_graph_that_cannot_be_confined_runs_on_the_whole_device(torch, capturing, caplog):
    capturing.refused = gpushare.UnimplementedError(gpushare.Status.UNIMPLEMENTED, 'A kernel is bound to its context.')
    training = torch.Training(capturing, lambda: None, name='chain1')
    assert training.unconfinable == capturing.refused.message
    assert capturing.options['confinable'] == gpushare.Choice.NO
    assert caplog.messages == ["Graph 'chain1' runs on the whole device only: A kernel is bound to its context."]
    capturing.refused = gpushare.InvalidArgumentError(gpushare.Status.INVALID_ARGUMENT, 'It cannot be confined.')
    with pytest.raises(gpushare.InvalidArgumentError, match='It cannot be confined'):
        torch.Training(capturing, lambda: None, name='decode16')


def test_a_region_orders_with_the_current_stream_and_keeps_one_pool(torch, capturing):
    app = capturing.create_app('engine', gpushare.LATENCY_CRITICAL)
    pools = []
    fake = fake_torch.cuda
    used = fake.use_mem_pool
    fake.use_mem_pool = lambda pool: (pools.append(pool), used(pool))[1]
    try:
        with torch.region(app, input_size=8, wait_s=0.01, next_within_ns=gpushare.NO_NEXT) as begun:
            double(Tensor([1]))
        assert calls[-5:] == [
            ('wait_stream', 'external 0x0', 'current'), ('enter', 'pool', pools[0].id), ('double', 'external 0x0'),
            ('leave', 'pool', pools[0].id), ('wait_stream', 'current', 'external 0x0')]
        assert begun.wait().kind is gpushare.TaskKind.OPAQUE
        with pytest.raises(KeyError), torch.region(app, queue=app.create_queue()):
            raise KeyError
    finally:
        fake.use_mem_pool = used
    assert len(pools) == 2 and pools[0] is pools[1]
    assert calls[-1] == ('wait_stream', 'current', 'external 0x0')
    capturing.quiesce()
    with pytest.raises(gpushare.UnavailableError), torch.region(app):
        raise AssertionError('it begins while the runtime is quiesced')
    capturing.resume()
