"""A server process: its start, its port, requests to it, its metrics and its end."""

import json
import signal
import subprocess
import urllib.error
import urllib.request


class NoDeviceError(RuntimeError):
    """The library does not know the device, or the machine has none."""


class Server:
    """Runs while the block that it is used in runs."""

    def __init__(self, program, *arguments):
        self.process = subprocess.Popen([program, '--port', '0', *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if not first:
            message = self.process.communicate(timeout=30)[1]
            missing = message.startswith('UNAVAILABLE') or 'no kernels for a GPU' in message
            raise (NoDeviceError if missing else RuntimeError)(message.strip())
        start = json.loads(first)
        self.port, self.shift, self.simulated = start['port'], start['shift'], start['simulated']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate(timeout=30)

    def request(self, path, body=None, kind='text/plain'):
        """(status, headers, body) of one request on a connection of its own."""
        request = urllib.request.Request(f'http://127.0.0.1:{self.port}{path}', data=body,
                                         headers={'Content-Type': kind})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def metric(self, family, app):
        """The sample of one family for one app. KeyError if there is none."""
        text = self.request('/metrics')[2].decode()
        for line in text.splitlines():
            if line.startswith(family + '{') and f'app="{app}"' in line:
                return float(line.rpartition(' ')[2])
        raise KeyError(family)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def finish(self, timeout_s=60):
        """(exit code, summary) once the process has ended."""
        output, errors = self.process.communicate(timeout=timeout_s)
        if errors:
            print(errors)
        return self.process.returncode, json.loads(output)
