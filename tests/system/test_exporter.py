#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-exporter beside a real vgpud: what it says is what `vgpu ls` says, and Prometheus reads it."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import types
import unittest
import urllib.error
import urllib.parse
import urllib.request

import case
import several
import stage
from exporter import EXPORTER, Exporter, Metrics
from host import Host
from wait import PATIENCE, until

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARE = SOURCE / "share" / "metrics"
HOSTILE = 'a"b\\c} 1'


class Exporting(case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "128M", "slab": "4M"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.exporter = Exporter(cls.host, "--processes", "--names", "dcgm,hami",
                                "--host", "gpu01.example")
        cls.addClassCleanup(cls.exporter.close)

    def listed(self):
        return {vgpu["name"]: vgpu for vgpu in self.host.vgpu("ls", "--json").json["vgpus"]}

    def scrape_now(self):
        """Not the answer that somebody else has got a moment before."""
        def get_time(metrics):
            return metrics.get("openvgpu_exporter_cpu_seconds_total")
        old = get_time(self.exporter.scrape())

        def look():
            metrics = self.exporter.scrape()
            return metrics if get_time(metrics) != old else None
        return until(look, "a new answer")

    def scrape_with_listing(self):
        """Metrics of a moment, and what `vgpu ls` said before and after it alike."""
        def look():
            before, metrics = self.listed(), self.scrape_now()
            steady = [{**vgpu, "resident_seconds": 0, "processes": [{**p, "launches": 0} for p in vgpu["processes"]]}
                      for names in (before, self.listed()) for vgpu in names.values()]
            half = len(steady) // 2
            is_steady = steady[:half] == steady[half:] and metrics.get("openvgpu_up")
            return (metrics, before) if is_steady else None
        return until(look, "nothing to change meanwhile", context=self.host.log)

    def check_vgpu(self, metrics, vgpu):
        labels = {"vgpu": vgpu["name"], "uuid": vgpu["uuid"], "tenant": str(vgpu["owner"])}
        now = {**labels, "device": str(vgpu["device"])}

        def get(fact, **more):
            return metrics.get(f"openvgpu_vgpu_{fact}", **now, **more)
        self.assertEqual(get("memory_quota_bytes"), vgpu["frame_buffer"])
        self.assertEqual(get("memory_used_bytes"), vgpu["frame_buffer_used"])
        self.assertEqual(get("share_ratio"), vgpu["share"] / 100)
        self.assertEqual(get("processes"), len(vgpu["processes"]))
        self.assertEqual(get("state", state=vgpu["state"]), 1)
        self.assertEqual(get("info", device_uuid=vgpu["device_uuid"]), 1)
        self.assertGreaterEqual(metrics.get("openvgpu_vgpu_gpu_seconds_total", **labels), 0)
        for process in vgpu["processes"]:
            self.assertEqual(metrics.get("openvgpu_process_memory_used_bytes", **labels,
                                         pid=str(process["pid"]), process=process["name"]),
                             process["memory_used"])

    def test_what_it_says_is_what_the_command_says(self):
        evil = os.path.join(self.host.directory, HOSTILE)
        shutil.copy(stage.GUESTS / "guest-train", evil)
        self.host.create("train")
        self.host.create("moved", "64M", device=1)
        self.host.create("idle", "32M")
        self.host.vgpu("share", "train", 60)
        self.host.train("train", "--size", "8M")
        self.host.train("moved", "--size", "4M")
        self.host.run("train", evil, "--size", "4M").wait_ready()
        self.host.vgpu("migrate", "moved", "--device", 0)
        self.host.vgpu("suspend", "moved")

        metrics, vgpus = self.scrape_with_listing()
        self.assertEqual(metrics.get("openvgpu_up"), 1)
        self.assertEqual({labels["vgpu"] for labels in metrics.labels("openvgpu_vgpu_info")},
                         {"train", "moved", "idle"})
        for vgpu in vgpus.values():
            self.check_vgpu(metrics, vgpu)
        self.assertIn(HOSTILE, [labels["process"] for labels in
                                metrics.labels("openvgpu_process_memory_used_bytes")])
        for device in self.host.vgpu("devices", "--json").json["devices"]:
            def get(fact, device=device):
                return metrics.get(f"openvgpu_device_memory_{fact}", device=str(device["index"]),
                                   device_uuid=device["uuid"])
            self.assertEqual((get("bytes"), get("promised_bytes"), get("used_bytes")),
                             (device["memory_total"], device["memory_promised"], device["memory_used"]))
            self.assertEqual(get("free_bytes"), device["memory_total"] - device["memory_used"])
        self.assertEqual(metrics.get("openvgpu_pool_used_bytes"), self.host.info()["pool"]["used"])
        for operation in ("suspend", "migrate"):
            self.assertEqual(metrics.get("openvgpu_operation_duration_seconds_count",
                                         operation=operation, result="done"), 1)
        self.assertEqual(metrics.get("hami_vgpu_memory_limit_bytes", pod="train"), 256 << 20)
        self.assertEqual(metrics.get("DCGM_FI_DEV_FB_USED", gpu="0", vgpu="idle"), 0)

    def test_gpu_time_never_falls(self):
        self.host.create("train")
        guest = self.host.run("train", "guest-busy", 3000, "4M").wait_ready()

        def seconds():
            return self.scrape_now().get("openvgpu_vgpu_gpu_seconds_total", vgpu="train")

        def look():
            value = seconds()
            return value if value and value > 0.02 else None
        before = until(look, "some GPU time", context=self.host.log)
        guest.kill()
        self.host.wait_state("train", "idle")
        after = until(lambda: seconds(), "vgpud to answer", context=self.host.log)
        self.assertGreaterEqual(after, before)

    def test_a_manager_that_goes_and_comes(self):
        def up():
            return self.exporter.scrape().get("openvgpu_up")
        self.host.kill()
        until(lambda: up() == 0, "the exporter to notice")
        self.assertEqual([], self.scrape_now().labels("openvgpu_device_info"))
        self.host.start()
        until(lambda: up() == 1, "the exporter to come back")

    def test_it_answers_to_its_own_names_only(self):
        def ask(host):
            try:
                request = urllib.request.Request(self.exporter.url, headers={"Host": host})
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                with error:
                    return error.code
        self.assertEqual([ask(name) for name in ("localhost", socket.gethostname(), "[::1]:9477",
                                                 "gpu01.example", "rebound.example:9477")],
                         [200, 200, 200, 200, 421])

    def make_certificate(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="vg-"))
        self.addCleanup(shutil.rmtree, directory)
        certificate, key = directory / "cert.pem", directory / "key.pem"
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        key.chmod(0o600)
        return certificate, key

    @staticmethod
    def start_given(host, listener, *options):
        """As systemd starts it: the socket is descriptor 3."""
        script = f'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@" 3<&{listener.fileno()}'
        return subprocess.Popen(["bash", "-c", script, "bash", EXPORTER, *options], env=host.environment(),
                                pass_fds=[listener.fileno()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_socket_that_it_is_given_outlives_it(self):
        """The port is held while there is no exporter: who connects then is answered by the next one."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = "http://127.0.0.1:%d/metrics" % listener.getsockname()[1]
            with self.start_given(self.host, listener, "--listen", "127.0.0.1:0") as refused:
                self.assertIn("vgpu-exporter.socket", refused.communicate(timeout=PATIENCE)[1])
            self.assertEqual(refused.returncode, 2)
            for _ in range(2):
                with socket.create_connection(listener.getsockname()) as early:
                    early.settimeout(PATIENCE)
                    with self.start_given(self.host, listener) as exporter:
                        self.assertEqual(exporter.stdout.readline(), f"serving {url}\n")
                        early.sendall(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                        self.assertIn(b" 200 ", early.recv(64))
                        exporter.terminate()
                        exporter.communicate(timeout=PATIENCE)
                    self.assertEqual(exporter.returncode, 0)

    def test_https_when_told(self):
        certificate, key = self.make_certificate()
        exporter = Exporter(self.host, "--tls-certificate", certificate, "--tls-key", key)
        self.addCleanup(exporter.close)
        self.assertTrue(exporter.url.startswith("https://127.0.0.1:"), exporter.url)
        trust = ssl.create_default_context(cafile=certificate)
        with urllib.request.urlopen(exporter.url, timeout=PATIENCE, context=trust) as answer:
            self.assertIn("\nopenvgpu_up 1\n", answer.read().decode())
        with self.assertRaises(urllib.error.URLError):
            urllib.request.urlopen(exporter.url, timeout=PATIENCE)  # an authority nobody knows
        with self.assertRaises(OSError):
            urllib.request.urlopen(exporter.url.replace("https", "http"), timeout=PATIENCE)

    def test_what_is_no_certificate_is_said(self):
        certificate, key = self.make_certificate()
        other = self.make_certificate()[1]

        def refuse(*options):
            done = subprocess.run([EXPORTER, "--listen", "127.0.0.1:0", *options], text=True,
                                  env=self.host.environment(), capture_output=True, timeout=PATIENCE)
            return done.returncode, done.stderr
        given = ("--tls-certificate", certificate, "--tls-key")
        self.assertRegex(refuse("--tls-key", key)[1], "go together")
        self.assertRegex(refuse(*given, certificate)[1], "has no private key in PEM")
        self.assertRegex(refuse(*given, "/dev/null")[1], "/dev/null: has no private key")
        self.assertRegex(refuse(*given, "/nowhere")[1], "/nowhere: No such file")
        self.assertRegex(refuse(*given, other)[1], "no pair")
        key.chmod(0o644)
        code, words = refuse(*given, key)
        self.assertRegex(words, "others may read the key")
        self.assertEqual(code, 1)

    # Real readers.

    def test_promtool_finds_nothing_to_say(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool is not installed (Debian's package prometheus)")
        self.host.create("train")
        exporter = Exporter(self.host, "--processes")  # the names of others break the rules
        self.addCleanup(exporter.close)
        metrics = until(lambda: [m for m in [exporter.scrape()] if m.get("openvgpu_up")],
                        "vgpud to answer")[0]
        done = subprocess.run([promtool, "check", "metrics"], input=metrics.text, text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = subprocess.run([promtool, "check", "rules", SHARE / "openvgpu-alerts.yml"],
                              text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def start_prometheus(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="vg-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        (directory / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s"},
            "rule_files": [str(SHARE / "openvgpu-alerts.yml")],
            "scrape_configs": [{"job_name": "openvgpu", "static_configs": [
                {"targets": [urllib.parse.urlsplit(self.exporter.url).netloc]}]}]}))
        log = open(directory / "log", "w+")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            ["prometheus", f"--config.file={directory}/prometheus.yml", "--web.listen-address=127.0.0.1:0",
             f"--storage.tsdb.path={directory}/data", "--log.level=debug"],
            stdout=log, stderr=log, cwd=directory)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)

        def look():
            assert process.poll() is None, (directory / "log").read_text()
            return re.search(r'address=(127\.0\.0\.1:[1-9]\d*)', (directory / "log").read_text())
        address = until(look, "Prometheus to listen", context=(directory / "log").read_text)[1]

        def is_ready():
            with contextlib.suppress(urllib.error.HTTPError):
                return urllib.request.urlopen(f"http://{address}/-/ready", timeout=PATIENCE).close() is None
        until(is_ready, "Prometheus to be ready", context=(directory / "log").read_text)
        return address

    def test_prometheus_has_what_the_command_says(self):
        if not shutil.which("prometheus"):
            self.skipTest("prometheus is not installed (Debian's package prometheus)")
        self.host.create("train")
        self.host.train("train", "--size", "8M")
        address = self.start_prometheus()

        def query(expression):
            with urllib.request.urlopen(f"http://{address}/api/v1/query?" + urllib.parse.urlencode(
                    {"query": expression}), timeout=PATIENCE) as answer:
                return json.load(answer)["data"]["result"]
        used = self.host.get("train")["frame_buffer_used"]
        found = until(lambda: query('openvgpu_vgpu_memory_used_bytes{vgpu="train"}'),
                      "Prometheus to have scraped")
        self.assertEqual(float(found[0]["value"][1]), used)
        self.assertEqual(query('openvgpu_vgpu_state{state="running"}')[0]["metric"]["vgpu"], "train")
        self.assertEqual(len(query("openvgpu_operation_duration_seconds_count")), 12)
        for expression in dashboard_expressions():
            query(expression)
        with urllib.request.urlopen(f"http://{address}/api/v1/rules", timeout=PATIENCE) as answer:
            rules = json.load(answer)["data"]["groups"][0]["rules"]
        self.assertEqual([rule["lastError"] for rule in rules if rule.get("lastError")], [])


def dashboard_expressions():
    """What the dashboard asks Prometheus, with everything chosen."""
    for panel in json.loads((SHARE / "openvgpu-grafana.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$instance", ".*").replace("$vgpu", ".*").replace("$__rate_interval", "1m")


class SeveralDevices(several.Case):
    """A vGPU of several devices, in each family."""

    def test_each_device_has_its_own(self):
        self.make("job", "0,2")
        guest = self.guest("job")
        for line in ("hold 0 6M", "hold 1 10M"):
            self.assertEqual(self.tell(guest, line), "held")
        exporter = Exporter(self.host, "--names", "dcgm,hami")
        self.addCleanup(exporter.close)
        metrics = until(lambda: [found for found in [exporter.scrape()]
                                 if found.get("openvgpu_vgpu_memory_used_bytes", vgpu="job") == 16 << 20],
                        "both parts to be told")[0]
        uuids = [self.host.device(index)["uuid"] for index in (0, 2)]
        self.assertEqual(metrics.get("openvgpu_vgpu_info", vgpu="job", device="0,2", device_uuid=",".join(uuids)), 1)
        for number, (device, uuid, used) in enumerate(zip("02", uuids, (6, 10))):
            part = {"vgpu": "job", "device": device}
            self.assertEqual(metrics.get("openvgpu_vgpu_part_memory_quota_bytes", **part), 64 << 20)
            self.assertEqual(metrics.get("openvgpu_vgpu_part_memory_used_bytes", **part), used << 20)
            self.assertEqual(metrics.get("openvgpu_device_memory_used_bytes", device=device), used << 20)
            self.assertEqual(metrics.get("openvgpu_vgpu_part_gpu_seconds_total", **part), 0)
            self.assertEqual(metrics.get("openvgpu_vgpu_part_utilization_ratio", **part, engine="gpu"), 0)
            self.assertEqual(metrics.get("DCGM_FI_DEV_FB_USED", vgpu="job", gpu=device), used)
            self.assertEqual(metrics.get("DCGM_FI_DEV_FB_FREE", vgpu="job", gpu=device), 64 - used)
            self.assertEqual(metrics.get("hami_vgpu_memory_used_bytes", pod="job", vdevice_index=str(number),
                                         device_uuid=uuid), used << 20)
        self.assertEqual(len(metrics.labels("hami_vgpu_memory_limit_bytes")), 2)
        self.end(guest)


class Files(unittest.TestCase):
    """The dashboard and the alert rules."""

    def test_they_use_metrics_that_there_are(self):
        sources = "".join(file.read_text() for file in (SOURCE / "src/exporter").glob("metrics*.c"))
        known = set(re.findall(r'"(openvgpu_\w+)"', sources))
        used = set(re.findall(r"openvgpu_\w+", " ".join(dashboard_expressions()) + " ".join(
            re.findall(r"(?ms)^ +expr: (.*?)^ +(?:for|labels):", (SHARE / "openvgpu-alerts.yml").read_text()))))
        self.assertGreater(len(used), 30)
        self.assertEqual({name for name in used
                          if re.sub("_(total|info|bucket|count|sum)$", "", name) not in known}, set())

    def test_panels_stand_beside_each_other(self):
        panels = json.loads((SHARE / "openvgpu-grafana.json").read_text())["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = {}
        for panel in panels:
            place = panel["gridPos"]
            for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])):
                self.assertLess(cell[0], 24, panel["title"])
                self.assertNotIn(cell, taken, panel["title"])
                taken[cell] = panel["title"]

    def test_alerts_fire_when_they_should(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool is not installed (Debian's package prometheus)")
        done = subprocess.run([promtool, "test", "rules", SOURCE / "tests/system/alerts.test.yml"], text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class StatePage(case.Case):
    """Whoever scrapes gives vgpud no work: the state page has all of it."""
    HOST = {"devices": "2xH200:512M", "pool": "128M", "slab": "4M"}

    def test_scrapes_are_answered_where_nothing_but_the_state_page_is(self):
        """No socket leads from there to vgpud, so no system call of vgpud's can be for a scrape."""
        directory = tempfile.TemporaryDirectory(dir=self.host.directory)  # a link stays in its file system
        self.addCleanup(directory.cleanup)
        os.link(os.path.join(self.host.run_directory, "state-page"), os.path.join(directory.name, "state-page"))
        environment = {**self.host.environment(), "OPENVGPU_RUN": directory.name}
        exporter = Exporter(types.SimpleNamespace(environment=lambda: environment), "--processes")
        self.addCleanup(exporter.close)
        self.host.create("train")
        self.host.train("train", "--size", "8M")
        self.host.vgpu("suspend", "train")
        self.host.vgpu("resume", "train", "--device", 1)
        vgpu = self.host.get("train")
        pid = str(vgpu["processes"][0]["pid"])

        def look():
            metrics = exporter.scrape()
            found = (metrics.get("openvgpu_vgpu_state", vgpu="train", device="1", state="running"),
                     metrics.get("openvgpu_vgpu_memory_used_bytes", vgpu="train"),
                     metrics.get("openvgpu_process_memory_used_bytes", vgpu="train", pid=pid),
                     metrics.get("openvgpu_operation_duration_seconds_count", operation="resume", result="done"))
            return found == (1, 8 << 20, 8 << 20, 1) and metrics
        until(look, "the state page to say it", context=lambda: exporter.scrape().text)
        times = {exporter.scrape().get("openvgpu_exporter_cpu_seconds_total") for _ in range(50)}
        self.assertTrue(all(times))
        self.assertEqual(exporter.ask("/")[0], 200)

    def test_a_vgpud_that_is_stopped_is_missed(self):
        exporter = Exporter(self.host)
        self.addCleanup(exporter.close)
        until(lambda: exporter.scrape().get("openvgpu_up") == 1, "vgpud to be seen")
        os.kill(self.host.manager.pid, signal.SIGSTOP)
        try:
            until(lambda: exporter.scrape().get("openvgpu_up") == 0, "vgpud to be missed")
        finally:
            os.kill(self.host.manager.pid, signal.SIGCONT)
        until(lambda: exporter.scrape().get("openvgpu_up") == 1, "vgpud to be back")


class Exemplars(case.Case):
    HOST = {"devices": "1xH200:512M", "pool": "128M", "slab": "4M"}

    def test_what_a_pre_copy_did_is_counted(self):
        exporter = Exporter(self.host)
        self.addCleanup(exporter.close)
        self.host.create("train")
        self.host.train("train", "--size", "8M")

        def get(what):
            return exporter.scrape().get(f"openvgpu_pre_copy_{what}_total", operation="suspend", result="done")
        self.assertEqual(get("operations"), 0)
        self.host.vgpu("suspend", "train", "--pre-copy")
        until(lambda: get("operations") == 1, "the suspend to be counted", context=self.host.log)
        self.assertGreaterEqual(get("rounds"), 1)
        self.assertGreaterEqual(get("bytes"), 8 << 20)
        self.assertGreater(get("seconds"), 0)
        self.assertGreater(get("stopped_seconds"), 0)

    def test_the_last_operation_is_an_exemplar(self):
        exporter = Exporter(self.host)
        self.addCleanup(exporter.close)
        self.host.create("train")
        self.host.train("train", "--size", "8M")
        self.host.vgpu("suspend", "train")

        def look():
            request = urllib.request.Request(exporter.url,
                                             headers={"Accept": "application/openmetrics-text"})
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return re.findall(r'(?m)^openvgpu_operation_(\w+)_bucket\{operation="suspend",'
                                  r'result="done",le="([^"]*)"\} \d+ # \{vgpu="train"\} (\S+) (\S+)$',
                                  answer.read().decode())
        found = until(look, "exemplars", context=self.host.log)
        self.assertEqual([name for name, *_ in found], ["duration_seconds", "moved_bytes"])
        for _, bound, value, when in found:
            self.assertLessEqual(float(value), float(bound))
            self.assertGreater(float(when), 1.7e9)
        self.assertEqual(float(found[1][2]), 8 << 20)


class Crowds(case.Case):
    """Whoever connects too often, or while vgpud comes and goes, harms nobody else."""
    HOST = {"devices": "1xH200:512M", "pool": "128M", "slab": "4M"}

    def test_thousands_of_connections_come_and_go(self):
        exporter = Exporter(self.host)
        self.addCleanup(exporter.close)
        address = urllib.parse.urlsplit(exporter.url)
        most = 0
        for said in (b"", b"GET /metrics", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\0" * 100) * 5:
            sockets = []
            for _ in range(100):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex((address.hostname, address.port))
                sockets.append(one)
            for one in sockets:
                with contextlib.suppress(OSError):
                    one.send(said)
            most = max(most, len(os.listdir(f"/proc/{exporter.process.pid}/fd")))
            for one in sockets:
                one.close()
        self.assertLess(most, 80, "descriptors of vgpu-exporter")

        def look():
            with contextlib.suppress(OSError):
                return exporter.scrape().get("openvgpu_up")
        until(look, "a scrape to be answered")

    def crowd(self, connect, scrape):
        """Hundreds of connections that stay: half open, or with an answer that nobody reads; whoever asks meanwhile."""
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(connect())
            stream.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            lines = stream.makefile("rb")
            self.assertIn(b" 200 ", lines.readline())
            for i in range(300):
                one = stack.enter_context(connect())
                with contextlib.suppress(OSError):
                    one.send((b"GET /metrics", b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n", b"")[i % 3])
                if i % 25 == 0:
                    self.assertEqual(scrape(), 1)
            for _ in range(20):
                self.assertEqual(scrape(), 1)
            for _ in range(3):
                while not lines.readline().startswith(b"data: "):
                    pass

    def test_half_open_connections_keep_no_scrape_out(self):
        exporter = Exporter(self.host)
        self.addCleanup(exporter.close)
        address = urllib.parse.urlsplit(exporter.url)
        until(lambda: exporter.scrape().get("openvgpu_up") == 1, "vgpud to be seen")
        self.crowd(lambda: socket.create_connection((address.hostname, address.port), PATIENCE),
                   lambda: exporter.scrape().get("openvgpu_up"))

    def test_half_open_connections_of_a_socket_keep_no_scrape_out(self):
        folder = tempfile.TemporaryDirectory(prefix="vg-")
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "s")
        exporter = Exporter(self.host, "--listen", f"unix:{path}")
        self.addCleanup(exporter.close)

        def connect():
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(PATIENCE)
            one.connect(path)
            return one

        def scrape():
            with connect() as one:
                one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                text = one.makefile("rb").read().decode().partition("\r\n\r\n")[2]
                return Metrics(text).get("openvgpu_up")
        until(lambda: scrape() == 1, "vgpud to be seen")
        self.crowd(connect, scrape)

    def test_every_scrape_of_a_restart_is_whole(self):
        exporter = Exporter(self.host)
        self.addCleanup(exporter.close)
        self.host.create("train")
        answers, failures, must_end = [], [], threading.Event()

        def scrape():
            while not must_end.is_set():
                try:
                    answers.append(exporter.scrape(Accept="application/openmetrics-text"))
                except Exception as failure:  # pylint: disable=broad-except
                    failures.append(failure)
        threads = [threading.Thread(target=scrape) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                self.host.kill()
                until(lambda: answers and answers[-1].get("openvgpu_up") == 0, "vgpud to be missed")
                self.host.start()
                until(lambda: answers[-1].get("openvgpu_up") == 1, "vgpud to be back")
        finally:
            must_end.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        for answer in answers:
            self.assertTrue(answer.text.endswith("# EOF\n"))
            self.assertIn(answer.get("openvgpu_up"), (0, 1))
            self.assertEqual(answer.get("openvgpu_up"), len(answer.labels("openvgpu_vgpu_info")))


class Words(unittest.TestCase):
    """What it says, to who starts it, of what is wrong; without a vgpud."""

    def refuse(self, *options):
        done = subprocess.run([EXPORTER, *options], text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_values_that_it_does_not_take(self):
        for options, words in (
                (["--listen", "gpu01:9477"], "cannot listen on gpu01:9477: it is neither ADDRESS:PORT, with numbers"),
                (["--listen", "127.0.0.1:65536"], "cannot listen on 127.0.0.1:65536: it is neither"),
                (["--listen", "unix:relative"], "cannot listen on unix:relative: it is neither"),
                (["--listen", "unix:/" + "x" * 200], "its path is too long"),
                (["--listen"], "requires an argument"),
                (["--host", ""], "--host takes a name without a port, .*, not nothing"),
                (["--host", "gpu01:9477"], "--host takes a name without a port, .*, not gpu01:9477"),
                (["--host", "a"] * 8, "too many --host, at a"),
                (["--updates", "0"], "a number from 1 to 10, not 0"), (["--updates", "4x"], "not 4x"),
                (["--updates", "-1"], "not -1"), (["--updates", "99999999999999999999"], "not 9{20}"),
                (["--names", "nvml"], "--names takes dcgm and hami, not nvml"), (["--names", ""], "not nothing"),
                (["--tls-key", "/nowhere"], "go together"), (["--tls-certificate", "/nowhere"], "go together"),
                (["--foo"], "unrecognized option '--foo'"), (["word"], "takes no words: word")):
            code, said = self.refuse(*options)
            self.assertEqual(code, 2, (options, said))
            self.assertRegex(said, words)

    def test_what_the_machine_does_not_have(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            where = "127.0.0.1:%d" % taken.getsockname()[1]
            self.assertEqual(self.refuse("--listen", where), (
                1, f"vgpu-exporter: cannot listen on {where}: another program has this port, maybe another vgpu-exporter; "
                "stop that, or choose another port with --listen ADDRESS:PORT\n"))
        self.assertRegex(self.refuse("--listen", "192.0.2.1:1")[1], "does not have that address; 'ip address'")
        for options, words in ((("--tls-certificate", "/nowhere", "--tls-key", "/nowhere"), "/nowhere: No such file"),
                               (("--tls-certificate", "/", "--tls-key", "/"), "/: has no certificate in PEM")):
            code, said = self.refuse(*options)
            self.assertEqual(code, 1, said)
            self.assertRegex(said, words)

    def start(self, *options):
        with subprocess.Popen([EXPORTER, *options], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as exporter:
            lines = [exporter.stdout.readline() for _ in range(2)]
            exporter.terminate()
            said = exporter.communicate(timeout=PATIENCE)[1]
        self.assertEqual(exporter.returncode, 0)
        return "".join(lines), said

    def test_where_it_serves(self):
        said, warned = self.start("--listen", "127.0.0.1:0")
        self.assertRegex(said, r"^serving (http://127\.0\.0\.1:\d+)/metrics\nthe page is at \1/\n$")
        self.assertEqual(warned, "")
        said, warned = self.start("--listen", "0.0.0.0:0")
        self.assertRegex(warned, "other machines may reach this address, and nothing is encrypted")
        with tempfile.TemporaryDirectory(prefix="vg-") as folder:
            said, warned = self.start("--listen", f"unix:{folder}/s")
            self.assertEqual((said, warned), (f"serving unix:{folder}/s\nmetrics are at /metrics, the page at /\n", ""))


class OfAScenario(unittest.TestCase):
    """Devices to which something happens."""

    def setUp(self):
        document = {"openvgpu_scenario": 1, "devices": [
            {"board": "H200", "events": [{"at": 0, "kind": "XID", "data": 79, "every": 0.5},
                                         {"at": 0, "kind": "clock", "every": 0.5}]},
            {"board": "H200", "ecc": True, "sensors": {
                "temperature": 55, "power": 412500, "power_limit": 700000, "clock_sm": 1980, "clock_memory": 3201,
                "ecc_corrected_volatile": 17, "ecc_uncorrected_volatile": 1}}]}
        directory = tempfile.TemporaryDirectory(prefix="vg-")
        self.addCleanup(directory.cleanup)
        path = pathlib.Path(directory.name, "events.json")
        path.write_text(json.dumps(document))
        self.host = Host()
        self.host.options = ["--scenario", str(path)]
        self.host.start()
        self.addCleanup(self.host.close, expect_clean=False)

    def test_sensors_are_told(self):
        exporter = Exporter(self.host, "--names", "dcgm")
        self.addCleanup(exporter.close)
        metrics = until(lambda: [found for found in [exporter.scrape()]
                                 if found.get("openvgpu_device_temperature_celsius", device="1")], "sensors")[0]

        def get(fact, **labels):
            return metrics.get(f"openvgpu_device_{fact}", device="1", **labels)
        self.assertEqual((get("temperature_celsius"), get("power_watts"), get("power_limit_watts")), (55, 412.5, 700))
        self.assertEqual((get("clock_hertz", clock="sm"), get("clock_hertz", clock="memory")), (1.98e9, 3.201e9))
        self.assertEqual((get("ecc_errors_total", kind="corrected"), get("ecc_errors_total", kind="uncorrected")), (17, 1))
        self.assertGreater(get("energy_joules_total"), 0)
        for fact, value in (("GPU_TEMP", 55), ("POWER_USAGE", 412), ("SM_CLOCK", 1980), ("MEM_CLOCK", 3201)):
            self.assertEqual(metrics.get(f"DCGM_FI_DEV_{fact}", gpu="1"), value)
        self.assertEqual(metrics.labels("openvgpu_device_temperature_celsius"), [
            {"device": "1", "device_uuid": self.host.device(1)["uuid"]}], "what a device does not tell is missing")

    def test_xid_errors_are_counted(self):
        exporter = Exporter(self.host, "--names", "dcgm")
        self.addCleanup(exporter.close)

        def look():
            metrics = exporter.scrape()
            count = metrics.get("openvgpu_device_xid_errors_total", device="0", xid="79")
            return metrics if count and count >= 2 else None
        metrics = until(look, "two XID errors to be counted", context=self.host.log)
        self.assertEqual(len(metrics.labels("openvgpu_device_xid_errors_total")), 1)
        last = metrics.get("openvgpu_device_xid_last_timestamp_seconds", device="0", xid="79")
        self.assertGreater(last, 1.7e9)
        self.assertEqual([metrics.get("DCGM_FI_DEV_XID_ERRORS", gpu=gpu) for gpu in "01"], [79, 0])


if __name__ == "__main__":
    case.main()
