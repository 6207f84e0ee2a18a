# SPDX-License-Identifier: Apache-2.0
"""What the benches of time need: a vgpud of their own, programs in vGPUs and beside them, MPS, and a table."""
import contextlib
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

GIB = 1 << 30
BEST_EFFORT, EQUAL_SHARE, FIXED_SHARE = 1, 2, 3
WORDS = 8192

rows, broken = [], []


def row(what, figure, target="", ok=None):
    verdict = "" if ok is None else "met" if ok else "MISSED"
    rows.append((what, figure, target, verdict))
    print(f"  {what}: {figure} {target and f'(target {target}: {verdict})'}", flush=True)


class Worker:
    def __init__(self, bench, kind, environment=None):
        self.bench, self.kind = bench, kind
        self.file = tempfile.NamedTemporaryFile(dir=bench.root)
        self.file.truncate(8 * WORDS)
        self.words = mmap.mmap(self.file.fileno(), 8 * WORDS)
        self.process = subprocess.Popen([bench.worker, kind, str(bench.pace), self.file.name, str(bench.devices)],
                                        env=environment or os.environ)
        bench.workers.append(self)

    def word(self, at):
        return struct.unpack_from("Q", self.words, 8 * at)[0]

    def wait(self):
        end = time.monotonic() + 30
        while not self.word(1):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"worker {self.kind} did not start: {self.process.poll()}")
            time.sleep(0.005)
        return self

    def end(self):
        struct.pack_into("Q", self.words, 16, 1)
        try:
            code = self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code:
            broken.append(f"worker {self.kind} ended with {code}")
        self.bench.workers.remove(self)


class Bench:
    def __init__(self, options):
        self.options = options
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sched-", dir="/tmp"))
        self.worker = str(pathlib.Path(options.worker).resolve())
        self.workers, self.manager, self.solo = [], None, {}
        self.devices = 1  # of each worker
        self.pace = int(subprocess.run([self.worker, "pace"], check=True, text=True,
                                       stdout=subprocess.PIPE).stdout)

    def seconds(self, n):
        return n * self.options.scale

    # The manager.

    def start(self, *arguments):
        path = shutil.which("vgpud", path=self.options.prefix + "/bin") if self.options.prefix \
            else shutil.which("vgpud")
        self.log = open(self.options.log or self.root / "log", "ab")
        self.manager = subprocess.Popen([path, "--run-dir", self.root / "run", "--state-dir",
                                         self.root / "state", *arguments], stdout=self.log,
                                        stderr=self.log)
        end = time.monotonic() + 30
        while True:
            try:
                return self.call("GetInfo")
            except OSError:
                if self.manager.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("vgpud did not start, see its log")
                time.sleep(0.02)

    def stop(self):
        self.manager.terminate()
        if self.manager.wait(30):
            broken.append(f"vgpud ended with {self.manager.returncode}")

    def call(self, method, **parameters):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.root / "run" / "control.sock"))
            connection.sendall(json.dumps({"method": "org.openvgpu." + method,
                                           "parameters": parameters}).encode() + b"\0")
            data = b""
            while not data.endswith(b"\0"):
                piece = connection.recv(65536)
                if not piece:
                    raise RuntimeError(f"{method}: vgpud hung up")
                data += piece
        answer = json.loads(data[:-1])
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer}")
        return answer["parameters"]

    def policy(self, policy, ms=None, **parameters):
        if ms and policy != BEST_EFFORT:
            parameters["frequency"] = max(63, min(960, round(1000 / ms)))
        elif ms:
            parameters["time_slice"] = ms * 1000000
        self.call("SetScheduler", device="0", policy=policy, **parameters)

    def vgpus(self, *shares):
        for i, share in enumerate(shares):
            self.call("CreateVgpu", name=f"v{i}", frame_buffer=4 * GIB, device="0", share=share)

    def clear(self):
        for worker in list(self.workers):
            worker.end()
        end = time.monotonic() + 20
        for vgpu in self.call("ListVgpus")["vgpus"]:
            while self.call("ListVgpus", name=vgpu["name"])["vgpus"][0]["processes"]:
                if time.monotonic() > end:
                    raise RuntimeError("a process does not go")
                time.sleep(0.01)
            self.call("RemoveVgpu", name=vgpu["name"])

    def kill_workers(self):
        for worker in list(self.workers):
            worker.process.kill()
            worker.process.wait()
            self.workers.remove(worker)

    def environment(self, vgpu):
        return dict(os.environ, **self.call("PrepareRun", name=vgpu)["environment"])

    def guests(self, *kinds, vgpus=None):
        """Workers in v0, v1, ..., or in the vGPUs whose numbers are given; all started at once."""
        numbers = vgpus or range(len(kinds))
        started = [Worker(self, kind, self.environment(f"v{i}"))
                   for kind, i in zip(kinds, numbers)]
        return [worker.wait() for worker in started]

    def plain(self, *kinds, environment=None):
        return [worker.wait() for worker in [Worker(self, kind, environment) for kind in kinds]]

    def scheduler(self):
        return self.call("GetScheduler", device="0")

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.manager.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # Measuring.

    def rates(self, workers, seconds):
        """Work a second, over so long, after a moment to settle."""
        time.sleep(0.4)
        before, begin = [worker.word(0) for worker in workers], time.monotonic()
        time.sleep(self.seconds(seconds))
        took = time.monotonic() - begin
        return [(worker.word(0) - was) / took for worker, was in zip(workers, before)]

    def measure(self, workers, seconds):
        """(share of the GPU time received in percent, by vGPU; work in percent of solo, by worker)"""
        time.sleep(0.6)
        first = {one["name"]: one["received"] for one in self.scheduler()["vgpus"]}
        work = self.rates(workers, seconds)
        last = {one["name"]: one["received"] for one in self.scheduler()["vgpus"]}
        got = [last[name] - first[name] for name in sorted(first, key=lambda n: int(n[1:]))]
        total = sum(got) or 1
        return ([100 * one / total for one in got],
                [100 * rate / self.solo.get(worker.kind, 1) for rate, worker in zip(work, workers)])

    def measure_solo(self, *kinds):
        for kind in kinds:
            worker, = self.plain(kind)
            self.solo[kind], = self.rates([worker], 1.5)
            worker.end()

    def plain_work(self, *kinds, seconds=3, environment=None):
        workers = self.plain(*kinds, environment=environment)
        rates = self.rates(workers, seconds)
        for worker in workers:
            worker.end()
        return [100 * rate / self.solo[kind] for rate, kind in zip(rates, kinds)]


def percent(values):
    return " : ".join(f"{value:.1f}" for value in values)


def jain(received, entitled):
    ratios = [one / other for one, other in zip(received, entitled)]
    return sum(ratios) ** 2 / (len(ratios) * sum(ratio ** 2 for ratio in ratios))



def percent(values):
    return " : ".join(f"{value:.1f}" for value in values)


def jain(received, entitled):
    ratios = [one / other for one, other in zip(received, entitled)]
    return sum(ratios) ** 2 / (len(ratios) * sum(ratio ** 2 for ratio in ratios))


@contextlib.contextmanager
def mps(bench):
    """The environment of programs that use MPS; OSError or SubprocessError: it cannot be started."""
    directory = bench.root / "mps"
    directory.mkdir(exist_ok=True)
    environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=str(directory),
                       CUDA_MPS_LOG_DIRECTORY=str(directory))
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True, timeout=20,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield environment
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=environment,
                       timeout=30, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def add_options(parser):
    parser.add_argument("--prefix", default="")
    parser.add_argument("--worker", default=pathlib.Path(__file__).resolve().parent.parent /
                        "build/bench/scheduler/bench-worker")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--log", default="")
    parser.add_argument("--simulate", default="")


def run_sections(options, sections):
    """Returns the exit status."""
    bench = Bench(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        info = bench.start(*(["--simulate", options.simulate] if options.simulate else []))
        print(f"OpenVGPU {info['version']}, CUDA driver {info['cuda_driver_version']}", flush=True)
        bench.measure_solo("busy:1")
        for name, section in sections:
            begin = time.monotonic()
            print(f"{name}:", flush=True)
            try:
                section(bench)
            except (RuntimeError, OSError, KeyError) as error:
                broken.append(f"{name}: {error}")
                print(f"  BROKEN: {error}", flush=True)
                bench.clear()
            print(f"  ({time.monotonic() - begin:.0f} s)", flush=True)
    finally:
        bench.kill_workers()
        if bench.manager:
            bench.manager.terminate()
            bench.manager.wait(20)
    width = max((len(what) for what, *_ in rows), default=0)
    print()
    for what, figure, target, verdict in rows:
        print(f"{what:{width}}  {figure:44}  {target:34} {verdict}".rstrip())
    print("\n".join(["", *(f"BROKEN: {one}" for one in broken)]) if broken else "")
    return bool(broken)
