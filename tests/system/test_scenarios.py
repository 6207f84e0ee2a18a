#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu simulate and vgpud --scenario: what they show, refuse, change and leave behind."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import state_page
import case
import stage
from host import Host
from wait import PATIENCE, until
from wire import Refused

GIB = 1 << 30
EXAMPLES = pathlib.Path(__file__).parents[2] / "share" / "scenarios"


def scenario(devices=({"board": "L4", "memory": "8G"},), **more):
    return {"openvgpu_scenario": 1, "devices": list(devices), **more}


class Simulate(unittest.TestCase):
    """The command; all that it makes is in a folder that is seen to be empty afterwards."""

    def setUp(self):
        stage.make()
        self.directory = tempfile.mkdtemp(prefix="vg-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, True)
        self.temporary = os.path.join(self.directory, "t")
        os.mkdir(self.temporary)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OPENVGPU_", "CUDA_")) and name != "LD_LIBRARY_PATH"}
        folders = [folder for folder in os.environ["PATH"].split(":") if os.access(folder, os.X_OK)]
        self.environment = {**kept, "TMPDIR": self.temporary, "PATH": ":".join(folders)}

    def start(self, *arguments, **options):
        return subprocess.Popen([str(stage.VGPU), "simulate", *map(str, arguments)], text=True,
                                env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run_it(self, *arguments, code=0):
        with self.start(*arguments) as process:
            output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, f"{arguments}: {output}{errors}")
        self.assertEqual(os.listdir(self.temporary), [])
        return output, errors

    def write(self, document, name="mine.json"):
        path = pathlib.Path(self.directory, name)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    def test_the_examples_are_listed(self):
        names = sorted(path.stem for path in EXAMPLES.glob("*.json"))
        lines = self.run_it("--list")[0].splitlines()
        self.assertEqual([line.split()[0] for line in lines], names)
        self.assertTrue(all(len(line.split()) > 3 for line in lines))
        documents = json.loads(self.run_it("--list", "--json")[0])["scenarios"]
        self.assertEqual([document["name"] for document in documents], names)

    def test_every_example_plays(self):
        for path in EXAMPLES.glob("*.json"):
            with self.subTest(path.stem):
                vgpus = json.loads(path.read_text())["vgpus"]
                output = self.run_it(path.stem, "sh", "-c",
                                     "$TEST_PRINT_STATE_PAGE $OPENVGPU_RUN/state-page")[0]
                for vgpu in vgpus:
                    if not vgpu.get("from"):
                        self.assertIn(f"instance {vgpu['name']} ", output)

    def test_there_is_a_root_of_the_driver(self):
        path = self.write(scenario([{"board": "L4"}, {"board": "T4"}],
                                   host={"driver_version": "570.86.10"}))
        output, _ = self.run_it(path, "--", "sh", "-c", """
                test "$NVIDIA_CTK_DRIVER_ROOT" = "$NVIDIA_DRIVER_ROOT" && cd "$NVIDIA_DRIVER_ROOT" &&
                cmp usr/lib/*/libnvidia-ml.so.570.86.10 "${LD_LIBRARY_PATH%%:*}"/libnvidia-ml.so.1 &&
                readlink usr/lib/*/*.so.1 && test -s usr/lib/*/libcuda.so.570.86.10 && ls -1 dev &&
                for node in $(ls dev); do test -c "dev/$node" || echo "$node: no device"; done""")
        lines = output.splitlines()
        self.assertEqual(lines[:2], ["libcuda.so.570.86.10", "libnvidia-ml.so.570.86.10"])
        self.assertIn(lines[2:], ([], ["nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1",
                                       "nvidiactl"]))  # before Linux 5.8 only root makes nodes

    def test_the_status_is_the_commands(self):
        path = self.write(scenario())
        self.run_it(path, "--", "true")
        self.run_it(path, "sh", "-c", "exit 7", code=7)
        self.run_it(path, "sh", "-c", "kill -TERM $$", code=128 + signal.SIGTERM)
        self.run_it(path, "no-such-program", code=127)
        self.run_it(path, self.write("x", "not-executable"), code=126)

    def test_the_command_finds_our_library(self):
        output = self.run_it("plain", "sh", "-c", "echo $LD_LIBRARY_PATH; echo $OPENVGPU_RUN;"
                             " ls $LD_LIBRARY_PATH")[0].splitlines()
        self.assertEqual(output[0], str(stage.PRIVATE / "nvml"))
        self.assertTrue(output[1].startswith(self.temporary))
        self.assertIn("libnvidia-ml.so.1", output[2:])

    def test_what_is_missing_is_said(self):
        self.assertIn("scenario is missing", self.run_it(code=2)[1])
        self.assertIn("command is missing", self.run_it("plain", code=2)[1])
        self.assertIn("command is missing", self.run_it("plain", "--", code=2)[1])
        self.assertIn("no scenario 'nothing'", self.run_it("nothing", "true", code=3)[1])
        self.assertIn("no such file", self.run_it("./nothing.json", "true", code=3)[1])

    def test_a_bad_file_is_refused_before_the_command_runs(self):
        for document, wanted in (
                ("", "line 1, column 0"), ("{\"a\"", "line 1, column 4"),
                ({"openvgpu_scenario": 1}, "devices: is missing"),
                (scenario([{"board": "H900"}]), "devices[0].board: there is no 'H900'; allowed:"),
                (scenario(vgpus=[{"name": "a", "type": "L4-24C"}]),
                 "vgpus[0].type: device 0 has no type 'L4-24C'; allowed: NVIDIA L4-8C"),
                (scenario(colour="red"), "there is no member 'colour' here; allowed: openvgpu_")):
            with self.subTest(wanted):
                output, errors = self.run_it(self.write(document), "--", "echo", "ran", code=2)
                self.assertEqual(output, "")
                self.assertIn(wanted, errors)
                self.assertIn("mine.json", errors)

    def test_a_directory_and_a_device_are_no_scenarios(self):
        self.run_it(self.directory, "true", code=2)
        self.run_it("/dev/null", "true", code=2)

    def begin(self, **options):
        """A command that runs until it is told to end; what is there while it runs."""
        path = self.write(scenario())
        process = self.start(path, "sh", "-c", "echo up; exec sleep 60", **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), "up\n")
        self.assertEqual(len(os.listdir(self.temporary)), 1)
        return process

    def processes(self):
        """All that mention our folder."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.temporary.encode() in entry.read_bytes():
                    found.append(int(entry.parent.name))
            except OSError:
                pass
        return found

    def check_gone(self):
        until(lambda: not os.listdir(self.temporary), "the folder to be removed",
              context=lambda: str(os.listdir(self.temporary)))
        until(lambda: not self.processes(), "the processes to end",
              context=lambda: str(self.processes()))

    def test_a_signal_ends_the_command_and_all_of_it(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number.name):
                process = self.begin()
                process.send_signal(number)
                self.assertEqual(process.wait(PATIENCE), 128 + number)
                self.check_gone()

    def test_a_kill_leaves_nothing(self):
        process = self.begin()
        self.assertTrue(self.processes())
        process.kill()
        self.assertEqual(process.wait(PATIENCE), -signal.SIGKILL)
        self.check_gone()

    def test_a_dead_manager_is_cleaned_up_as_well(self):
        process = self.begin()
        for pid in self.processes():
            if "vgpud" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        self.check_gone()

    def test_two_do_not_see_each_other(self):
        script = "ls -d $OPENVGPU_RUN"
        with self.start("plain", "sh", "-c", script) as first, \
                self.start("mig", "sh", "-c", script) as second:
            outputs = {first.communicate()[0], second.communicate()[0]}
        self.assertEqual(len(outputs), 2)

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_it_needs_no_root(self):
        os.chmod(self.directory, 0o755)
        os.chmod(self.temporary, 0o777)
        with self.start("plain", "sh", "-c", "id -un", user="nobody", group="nogroup",
                        extra_groups=[]) as process:
            output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(output.strip(), "nobody", errors)
        self.assertEqual(os.listdir(self.temporary), [])


class Played(unittest.TestCase):
    """A scenario that a vgpud plays: changes, time, and live vGPUs beside it."""

    def play(self, document):
        stage.make()
        host = Host()
        self.addCleanup(host.close, expect_clean=False)
        path = os.path.join(host.directory, "scenario.json")
        pathlib.Path(path).write_text(json.dumps(document))
        host.options = ["--scenario", path, *host.options[2:]]
        self.page = os.path.join(host.run_directory, "state-page")
        return host.start()

    @staticmethod
    def error(host, method, **parameters):
        try:
            return host.call(method, **parameters)
        except Refused as refused:
            return refused.name

    def seen(self, key):
        return state_page.read(self.page).get(key, {})

    def wait(self, key, **wanted):
        until(lambda: all(self.seen(key).get(name) == value for name, value in wanted.items()),
              f"{key} to have {wanted}", context=lambda: str(self.seen(key)))

    def test_processes_come_and_go_and_leave_accounts(self):
        host = self.play(scenario(vgpus=[{
            "name": "a", "type": "L4-4C", "id": 5000,
            "processes": [{"pid": 7, "name": "short", "until": 0.5, "memory": "1G",
                           "utilization": {"gpu": 40}},
                          {"pid": 8, "name": "long", "memory": "512 MiB",
                           "utilization": {"gpu": {"steps": [[0, 10], [0.5, 30]]}}}]}]))
        # How it was in the first half second is seen in time or not; what is left of it, always.
        self.wait("instance a", gpu=30, used=GIB // 2, virtual=1)
        self.wait("device 0", gpu=30, instances=1)
        self.assertEqual(self.seen("process 7"), {})
        self.assertEqual(self.seen("process 8")["gpu"], 30)
        ended = self.seen("account 5000/7")
        self.assertEqual((ended["running"], ended["gpu"], ended["max_memory"]), (0, 40, GIB))
        self.assertGreaterEqual(ended["time_ms"], 400)
        self.assertEqual(self.seen("account 5000/8")["running"], 1)
        self.assertGreater(self.seen("instance a")["samples"], 1)
        host.call("ClearVgpuAccounting", name="a")
        self.assertEqual(self.seen("account 5000/7"), {})
        self.assertEqual(self.seen("account 5000/8")["running"], 1)

    def test_a_vgpu_comes_and_a_device_goes(self):
        self.play(scenario([{"board": "L4", "lost_at": 0.5}, {"board": "T4"}], vgpus=[
            {"name": "late", "device": 1, "type": "T4-4C", "from": 0.5},
            {"name": "early", "device": 1, "type": "T4-4C", "until": 0.5}]))
        self.wait("instance late", device=1)
        self.wait("device 0", lost=1)
        self.assertEqual(self.seen("device 1")["lost"], 0)
        self.assertEqual(self.seen("instance early"), {})

    def test_events_happen_once_or_again_and_again(self):
        self.play(scenario([{"board": "L4", "events": [
            {"at": 0.2, "kind": "XID", "data": 79}, {"at": 0.3, "every": 0.1, "kind": "clock"}]},
            {"board": "T4"}]))
        until(lambda: self.seen("event 0/3"), "three clock events")
        kinds = [(event["kind"], event["data"]) for key, event in state_page.read(self.page).items()
                 if key.startswith("event ")]
        self.assertEqual(kinds[0], (8, 79))
        self.assertEqual(set(kinds[1:]), {(16, 0)})

    def test_operational_events_say_who_reports_what_and_how_bad_it_is(self):
        self.play(scenario([{"board": "L4", "events": [
            {"at": 0.2, "kind": "operational", "module": "GPU-RAS"},
            {"at": 0.3, "kind": "operational", "module": "GPU-NVLINK", "severity": "fatal",
             "log_level": "error", "category": 3, "code": 5, "data": 74}]}]))
        self.wait("event 0/0", kind=0, data=0, module="GPU-RAS", severity=10, log_level=30)
        self.wait("event 0/1", kind=0, data=74, module="GPU-NVLINK", severity=40, log_level=50)

    def test_settings_follow_the_same_rules(self):
        host = self.play(scenario([{"board": "A100", "heterogeneous": True}, {"board": "A100"}],
                                  vgpus=[{"name": "a", "type": "A100X-20C", "id": 5000}]))
        refused = {"device": "0", "policy": 2}
        self.assertEqual(self.error(host, "SetVgpuSchedulerState", **refused), "Unsupported")
        self.assertEqual(self.error(host, "SetVgpuHeterogeneousMode", device="0", enabled=False),
                         "InUse")
        host.call("SetVgpuSchedulerState", device="1", policy=3)
        self.wait("scheduler device/1/1", policy=3)
        host.call("SetVgpuEncoderCapacity", name="5000", percent=30)
        self.wait("instance a", encoder_capacity=30)
        self.assertEqual(self.seen("instance a")["placement"], 0)

    def test_a_vgpu_that_comes_later_speaks_a_version_that_is_in_force(self):
        for seconds in (1, 4, 16, 64):  # the range must be set before it comes
            document = scenario(vgpus=[{"name": "late", "type": "L4-4C", "from": seconds}],
                                host={"vgpu_versions_supported": {"min": "20.1", "max": "30.1"}})
            host = self.play(document)
            if self.error(host, "SetVgpuVersionRange", min=21 << 16, max=29 << 16) != "InUse":
                break
        self.wait("instance late", version=29 << 16)

    def test_a_process_that_ends_costs_no_other_one_its_account(self):
        accounts = [{"pid": 10000 + i} for i in range(3998)]
        self.play(scenario(vgpus=[{
            "name": "a", "type": "L4-4C", "id": 5000, "accounts": accounts, "processes": [
                {"pid": 7, "name": "short", "until": 0.5}, {"pid": 8, "name": "long"}]}]))
        self.wait("account 5000/7", running=0)
        seen = state_page.read(self.page)
        self.assertEqual(seen["instance a"]["accounts"], 4000)
        self.assertIn("account 5000/10000", seen)
        self.assertEqual(seen["account 5000/8"]["running"], 1)
        order = [name for name in seen if name.startswith("account ")]
        self.assertEqual(order[-2:], ["account 5000/8", "account 5000/7"], "by their ends")

    def test_gpu_instances_have_settings_of_their_own(self):
        host = self.play(scenario([{"board": "H100", "mig": True, "gpu_instances": [
            {"id": 1, "profile": "3g.40gb"}, {"id": 2, "profile": "2g.20gb"}]}],
            vgpus=[{"name": "a", "type": "H100XM-3-40C", "gpu_instance": 1}]))
        self.assertEqual(self.error(host, "SetVgpuSchedulerState", device="0", policy=2),
                         "Unsupported")
        self.assertEqual(self.error(host, "SetVgpuSchedulerState", device="0", gpu_instance=1,
                                       policy=2), "Unsupported")
        self.assertEqual(self.error(host, "SetVgpuHeterogeneousMode", device="0", gpu_instance=1,
                                       enabled=True), "InUse")
        host.call("SetVgpuSchedulerState", device="0", gpu_instance=2, policy=2)
        host.call("SetVgpuHeterogeneousMode", device="0", gpu_instance=2, enabled=True)
        self.wait("scheduler gpu_instance/2/1", policy=2, arr=2)
        self.wait("gpu_instance 0/2", is_heterogeneous=1)
        self.assertEqual(self.error(host, "SetVgpuSchedulerState", device="0", gpu_instance=9,
                                       policy=2), "InvalidParameter")

    def test_instances_of_mig_are_made_and_ended(self):
        host = self.play(scenario([{"board": "H100", "mig": True, "gpu_instances": [
            {"id": 1, "profile": "3g.40gb", "placement": 0, "compute_instances": [
                {"profile": "1c.3g.40gb", "placement": 0}]},
            {"id": 2, "profile": "2g.20gb"}]}, {"board": "L4"}],
            vgpus=[{"name": "a", "type": "H100XM-2-20C", "gpu_instance": 2}]))

        def make(method, **parameters):
            return host.call(method, device="0", **parameters)["id"]

        def refused(method, **parameters):
            return self.error(host, method, **{"device": "0", **parameters})
        # A 3g begins at slice 0 or 4 of memory, and a 2g is at 4: only small ones fit beside them.
        self.assertEqual(refused("CreateGpuInstance", profile=9), "NoRoom")
        self.assertEqual(refused("CreateGpuInstance", profile=9, start=1), "InvalidParameter")
        self.assertEqual(refused("CreateGpuInstance", profile=77), "InvalidParameter")
        self.assertEqual(refused("CreateGpuInstance", profile=19, device="1"), "Unsupported")
        self.assertEqual(make("CreateGpuInstance", profile=19), 3)
        self.assertEqual(refused("CreateGpuInstance", profile=19, start=6), "NoRoom")
        self.wait("gpu_instance 0/3", is_heterogeneous=0)
        self.assertEqual(make("CreateComputeInstance", gpu_instance=1, profile=0), 1)
        self.assertEqual(refused("CreateComputeInstance", gpu_instance=1, profile=1), "NoRoom")
        self.assertEqual(make("DestroyComputeInstance", gpu_instance=1, compute_instance=0), 0)
        self.assertEqual(refused("CreateComputeInstance", gpu_instance=1, profile=0, start=1),
                         "NoRoom")
        self.assertEqual(make("CreateComputeInstance", gpu_instance=1, profile=0, start=0), 0)
        self.assertEqual(refused("CreateComputeInstance", gpu_instance=1, profile=4),
                         "InvalidParameter")
        self.assertEqual(refused("DestroyGpuInstance", gpu_instance=1), "InUse")
        self.assertEqual(refused("DestroyGpuInstance", gpu_instance=2), "InUse")
        self.assertEqual(make("DestroyGpuInstance", gpu_instance=3), 3)
        self.assertEqual(refused("DestroyGpuInstance", gpu_instance=3), "InvalidParameter")
        self.assertEqual(make("CreateGpuInstance", profile=19, start=6), 3)

    def test_live_vgpus_have_what_is_left(self):
        host = self.play(scenario([{"board": "L4", "heterogeneous": True}], vgpus=[
            {"name": "a", "type": "L4-12C", "id": 5000}]))
        host.create("live", "5G")
        self.wait("instance live", virtual=0, placement=12)
        self.assertNotEqual(host.vgpu("create", "more", "--fb", "8G", code=None).code, 0)
        self.assertNotEqual(host.vgpu("create", "a", "--fb", "1G", code=None).code, 0,
                            "the name is taken")
        self.assertEqual(self.seen("device 0")["instances"], 2)
        host.vgpu("rm", "live")

    def test_it_begins_anew_with_each_manager(self):
        document = scenario(vgpus=[{"name": "a", "type": "L4-8C", "id": 5000}])
        host = self.play(document)
        host.call("SetVgpuEncoderCapacity", name="a", percent=30)
        self.wait("instance a", encoder_capacity=30)
        host.restart()
        self.wait("instance a", encoder_capacity=100)


if __name__ == "__main__":
    case.main()
