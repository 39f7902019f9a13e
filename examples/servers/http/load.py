#!/usr/bin/env python3
"""An open-loop client: sends requests at random times that do not depend on the answers, and checks each answer.

  load.py PORT [--rate N] [--seconds S] [--connections N] [--seed N]

A latency counts from the time at which the request was meant to be sent, so that a slow server cannot hide its
queue. Arrivals are a Poisson process. Prints one line of JSON:

  sent, ok, refused    requests; answers with 200; answers with 503
  lost                 requests whose connection ended before a whole answer came
  unsent               requests that found no connection, or no server, so that no byte of them was sent
  wrong                answers that are not the input rotated, and those with another status
  noticed              whether the server said that it drains; from then on no request is sent
  p50_us, p99_us, ...  of the answers with 200

One thread with select(), whose timeouts are finer than those of epoll(). Exit code 0, whatever the server did.
"""

import argparse
import json
import random
import select
import socket
import time

VALUES = 64
IDLE_S = 2.0  # below the server's timeout, so that no request meets a connection that the server closes


def request_of(number):
    """A request whose answer no other of the last thousand has, and the input of it."""
    values = [float(number % 251), float(number // 251 % 251 - 125)]
    body = json.dumps({'input': values}).encode()
    head = f'POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}'
    return head.encode() + b'\r\n\r\n' + body, values


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.number = None  # of the request whose answer is awaited
        self.meant_s = 0.0
        self.received = b''
        self.idle_since_s = 0.0

    def fileno(self):
        return self.socket.fileno()

    def send(self, number, meant_s):
        self.number = number
        self.meant_s = meant_s
        self.received = b''
        self.socket.sendall(request_of(number)[0])  # far smaller than the socket's buffer

    def answer(self):
        """(status, head, body) if it is whole, else None. Raises ConnectionError at the end of the connection."""
        try:
            piece = self.socket.recv(65536)
        except BlockingIOError:
            return None
        if not piece:
            raise ConnectionResetError('the server closed the connection')
        self.received += piece
        head, end, body = self.received.partition(b'\r\n\r\n')
        if not end:
            return None
        fields = {}
        for line in head.lower().split(b'\r\n')[1:]:
            name, _, value = line.partition(b':')
            fields[name] = value.strip()
        if len(body) < int(fields.get(b'content-length', 0)):
            return None
        return int(head.split(b' ', 2)[1]), fields, body


class Load:
    def __init__(self, port, rate, seconds, connections, seed, shift):
        self.port, self.rate, self.connections_max, self.shift = port, rate, connections, shift
        self.random = random.Random(seed)
        self.seconds = seconds
        self.connections = []
        self.waiting = []  # (number, meant) of requests that wait for a connection
        self.counts = dict.fromkeys(('sent', 'ok', 'refused', 'lost', 'unsent', 'wrong'), 0)
        self.noticed = False
        self.latencies_s = []

    def run(self):
        start = time.monotonic()
        meant, number = start + self.random.expovariate(self.rate), 0
        while True:
            now = time.monotonic()
            done = self.noticed or meant > start + self.seconds
            if not done and now >= meant:
                self.waiting.append((number, meant))
                meant, number = meant + self.random.expovariate(self.rate), number + 1
            self.dispatch()
            if done and not self.waiting and all(one.number is None for one in self.connections):
                break
            self.receive(0.05 if done else max(0.0, min(meant - time.monotonic(), 0.05)))
        for one in self.connections:
            one.socket.close()
        return self.result(time.monotonic() - start)

    def dispatch(self):
        while self.waiting:
            if self.noticed:
                self.counts['unsent'] += len(self.waiting)
                self.waiting.clear()
                return
            one = next((one for one in reversed(self.connections) if one.number is None), None)
            if one is None and len(self.connections) == self.connections_max:
                return
            number, meant = self.waiting.pop(0)
            try:
                if one is None:
                    one = Connection(self.port)
                    self.connections.append(one)
            except OSError:
                self.counts['unsent'] += 1
                continue
            self.counts['sent'] += 1
            try:
                one.send(number, meant)
            except OSError:
                self.close(one)

    def receive(self, timeout_s):
        ready, _, _ = select.select(self.connections, [], [], timeout_s)
        now = time.monotonic()
        for one in ready:
            try:
                answer = one.answer()
            except OSError:
                self.close(one)
                continue
            if answer is not None:
                self.count(one, answer, now)
        for one in [one for one in self.connections if one.number is None and now - one.idle_since_s > IDLE_S]:
            self.close(one)

    def count(self, one, answer, now):
        status, fields, body = answer
        if status == 200 and self.is_right(one.number, body):
            self.counts['ok'] += 1
            self.latencies_s.append(now - one.meant_s)
        else:
            self.counts['refused' if status == 503 else 'wrong'] += 1
        one.number, one.idle_since_s = None, now
        if fields.get(b'connection') == b'close':
            self.noticed = True
            self.close(one)

    def is_right(self, number, body):
        output = json.loads(body)['output']
        values = request_of(number)[1] + [0.0] * (VALUES - 2)
        return output == [values[(at - self.shift) % VALUES] for at in range(VALUES)]

    def close(self, one):
        if one.number is not None:
            self.counts['lost'] += 1
        self.connections.remove(one)
        one.socket.close()

    def result(self, span_s):
        ordered = sorted(self.latencies_s)

        def quantile_us(share):
            return round(ordered[max(0, -(-len(ordered) * share // 100) - 1)] * 1e6, 1) if ordered else None

        return {**self.counts, 'noticed': self.noticed, 'seconds': round(span_s, 3),
                'rate': round(self.counts['ok'] / span_s, 1),
                **{f'p{share}_us': quantile_us(share) for share in (50, 99, 100)}}


def run(port, rate, seconds, shift, connections=64, seed=1):
    return Load(port, rate, seconds, connections, seed, shift).run()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('port', type=int)
    parser.add_argument('--rate', type=float, default=200)
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--connections', type=int, default=64)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--shift', type=int, default=8, help='of the model; the server prints it')
    options = parser.parse_args()
    print(json.dumps(run(options.port, options.rate, options.seconds, options.shift % VALUES, options.connections,
                         options.seed)))


if __name__ == '__main__':
    main()
