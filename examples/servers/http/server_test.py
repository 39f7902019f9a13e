#!/usr/bin/env python3
"""Tests of the HTTP server on the simulated device: server_test.py PROGRAM CASE. Exit code 77: skipped."""

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import load
import running

SKIPPED = 77


def rotated(values, shift):
    values = values + [0.0] * (load.VALUES - len(values))
    return [values[(at - shift) % load.VALUES] for at in range(load.VALUES)]


def check(condition, *details):
    if not condition:
        raise AssertionError(*details)


def answers(program):
    """Each kind of body gets its answer, and a bad one a sentence."""
    with running.Server(program, '--device', 'sim') as server:
        status, _, body = server.request('/infer', b'{"input": [1, 2.5, -3]}', 'application/json')
        check(status == 200 and json.loads(body)['output'] == rotated([1.0, 2.5, -3.0], server.shift), status, body)
        check(json.loads(body)['simulated'] is True and json.loads(body)['query_us'] > 0, body)
        status, _, body = server.request('/infer', b' 7\n-8 ')
        check(status == 200 and [float(one) for one in body.split()] == rotated([7.0, -8.0], server.shift), body)
        for bad, kind in ((b'', 'text/plain'), (b'1 x', 'text/plain'), (b'inf', 'text/plain'),
                          (b'1 ' * 65, 'text/plain'),
                          (b'{"input": [1, "a"]}', 'application/json'), (b'{"input": 1}', 'application/json'),
                          (b'[1]', 'application/json'), (b'{"input": [1', 'application/json'),
                          (b'{"input": [1e300]}', 'application/json'), (b'{"input": []}', 'application/json')):
            status, _, body = server.request('/infer', bad, kind)
            check(status == 400 and json.loads(body)['error'].endswith('.'), bad, status, body)
        check(server.request('/infer', b'1 ' * 10000)[0] == 413)
        check(server.request('/nothing')[0] == 404)
        check(server.request('/healthz')[::2] == (200, b'ok\n'))
        status, headers, body = server.request('/metrics')
        check(headers['Content-Type'].startswith('application/openmetrics-text'), headers)
        check(body.endswith(b'http_answers_total{code="413"} 1\n# EOF\n') and body.count(b'# EOF') == 1, body[-200:])
        before = server.metric('gpushare_app_completed_total', 'background')
        time.sleep(0.5)
        check(server.metric('gpushare_app_completed_total', 'background') > before, 'BE work does not run')
        check(server.metric('gpushare_app_completed_total', 'service') == 6, 'two queries have three tasks each')
    with running.Server(program, '--device', 'sim', '--no-be') as server:
        check(b'background' not in server.request('/metrics')[2])
        check(server.request('/infer', b'1')[0] == 200)
    for bad in (('--device', 'abacus'), ('--port', '70000'), ('--nothing', '1'), ('--queue',),
                ('--p99-bound', 'x'), ('--p99-bound', '0.9')):
        process = subprocess.run([program, *bad], capture_output=True, text=True, timeout=30, check=False)
        check(process.returncode in (1, 2) and process.stderr, bad, process)


def sockets_of(process_id):
    """How many TCP sockets the process has, the listening one among them."""
    inodes = set()
    for table in ('tcp', 'tcp6'):
        with open(f'/proc/{process_id}/net/{table}', encoding='ascii') as lines:
            inodes |= {f'socket:[{line.split()[9]}]' for line in list(lines)[1:]}
    links = [f'/proc/{process_id}/fd/{name}' for name in os.listdir(f'/proc/{process_id}/fd')]
    return sum(os.readlink(link) in inodes for link in links)


def bounds(program):
    """A full queue is 503, and a connection beyond the threads waits until another one ends."""
    with running.Server(program, '--device', 'sim', '--queue', 0) as server:
        status, headers, body = server.request('/infer', b'1')
        check(status == 503 and headers['Retry-After'] == '1' and b'full' in body, status, body)
        check(server.request('/healthz')[0] == 200)
    with running.Server(program, '--device', 'sim', '--connections', 2) as server:
        held = [http.client.HTTPConnection('127.0.0.1', server.port, timeout=30) for _ in range(2)]
        for one in held:
            one.request('GET', '/healthz')
            check(one.getresponse().read() == b'ok\n')
        third = []
        waiting = threading.Thread(target=lambda: third.append(server.request('/healthz')[0]))
        waiting.start()
        time.sleep(0.5)
        check(not third, 'a third connection is served by two threads')
        more = [http.client.HTTPConnection('127.0.0.1', server.port, timeout=30) for _ in range(20)]
        for one in more:
            one.connect()
        time.sleep(0.5)
        # One may wait for a thread; the others stay in the backlog, where the process does not have them.
        check(sockets_of(server.process.pid) <= 1 + 2 + 1, 'connections are accepted without a bound')
        for one in more:
            one.close()
        held[0].close()
        waiting.join(30)
        check(third == [200], third)
        held[1].close()


def overload(program):
    """Queries that overlap in real time: as many as the queue holds are answered, the others get 503."""
    with running.Server(program, '--device', 'sim:realtime', '--queue', 2, '--graph-us', 100000) as server:
        seen = []
        clients = [threading.Thread(target=lambda: seen.append(server.request('/infer', b'1')[0])) for _ in range(8)]
        for one in clients:
            one.start()
        for one in clients:
            one.join(30)
        check(seen.count(200) >= 2 and seen.count(503) >= 1 and seen.count(200) + seen.count(503) == 8, seen)


def drain(program, device='sim', *arguments):
    """SIGTERM under load: what was sent before the server said that it drains is answered, every task ends."""
    with running.Server(program, '--device', device, '--drain-ms', 3000, *arguments) as server:
        during = []

        def stop():
            server.terminate()
            time.sleep(0.2)
            during.append(server.request('/healthz')[0])

        timer = threading.Timer(1.5, stop)
        timer.start()
        result = load.run(server.port, rate=150, seconds=30, shift=server.shift, connections=16)
        timer.join()
        code, summary = server.finish()
        print(json.dumps(result), json.dumps(summary))
        check(during == [503], '/healthz of a server that drains', during)
        check(result['noticed'] and result['ok'] > 50, result)
        check(result['lost'] == result['wrong'] == result['refused'] == 0, result)
        check(result['sent'] == result['ok'] == summary['answers']['200'], result, summary)
        check(code == 0 and summary['whole'], code)
        check(summary['lc'] == {'submitted': 3 * result['ok'], 'completed': 3 * result['ok'], 'failed': 0}, summary)
        check(summary['be']['submitted'] == summary['be']['completed'] > 0, summary)


def realtime(program):
    """The same in real time, where latencies mean something."""
    drain(program, 'sim:realtime', '--graph-us', 2000)


def gpu(program):
    """The same on a GPU, which computes the answers."""
    drain(program, 'cuda')


def public_client(program):
    """A closed loop of ApacheBench with connections that are kept."""
    if shutil.which('ab') is None:
        print('There is no ab here (apache2-utils): the test is skipped.')
        return SKIPPED
    with running.Server(program, '--device', 'sim') as server, tempfile.NamedTemporaryFile(suffix='.json') as body:
        body.write(b'{"input": [1, 2, 3]}')
        body.flush()
        process = subprocess.run(['ab', '-k', '-l', '-q', '-n', '1000', '-c', '8', '-p', body.name, '-T',
                                  'application/json', f'http://127.0.0.1:{server.port}/infer'],
                                 capture_output=True, text=True, timeout=90, check=False)
        print(process.stdout, process.stderr)
        fields = dict(line.split(':', 1) for line in process.stdout.splitlines() if ':' in line)
        check(process.returncode == 0 and fields['Complete requests'].strip() == '1000', process.returncode)
        check(fields['Failed requests'].strip() == '0' and 'Non-2xx responses' not in fields, fields)
        check(fields['Keep-Alive requests'].strip() == '1000', fields)
    return 0


CASES = {one.__name__: one for one in (answers, bounds, overload, drain, realtime, gpu, public_client)}


def main():
    try:
        return CASES[sys.argv[2]](sys.argv[1]) or 0
    except running.NoDeviceError as error:
        if sys.argv[2] != 'gpu':  # the simulated devices are everywhere
            raise
        print(f'There is no such device: the test is skipped. {error}')
        return SKIPPED


if __name__ == '__main__':
    sys.exit(main())
