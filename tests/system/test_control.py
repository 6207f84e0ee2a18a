#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The control socket: what clients may ask, and what they may do to it."""
import os
import signal
import struct
import subprocess
import sys
import unittest

from harness import MIB, Host, expect_error
from wait import PATIENCE, until

GIB = 1 << 30


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = cls.enterClassContext(Host(fake=True))
        cls.host.start()

    def tearDown(self):
        for vgpu in self.host.call("ListVgpus")["vgpus"]:
            self.host.call("RemoveVgpu", name=vgpu["name"])

    def create(self, name=None, size=64 * MIB, **parameters):
        if name:
            parameters["name"] = name
        return self.host.call("CreateVgpu", frame_buffer=size, **parameters)["vgpu"]

    def test_info_and_devices(self):
        info = self.host.call("GetInfo")
        self.assertEqual(info["run_directory"], str(self.host.run))
        self.assertEqual(info["cuda_driver_version"], 13000)
        devices = self.host.call("ListDevices")["devices"]
        self.assertEqual([d["index"] for d in devices], [0, 1])
        self.assertEqual(devices[0]["memory_total"], GIB)

    def test_a_vgpu_is_created_listed_and_removed(self):
        vgpu = self.create("train", 40 * MIB, device="1")
        self.assertEqual((vgpu["name"], vgpu["device"], vgpu["state"], vgpu["owner"]),
                         ("train", 1, "idle", os.getuid()))
        self.assertEqual(self.host.vgpu(vgpu["uuid"])["name"], "train")
        self.assertEqual(self.host.call("ListDevices")["devices"][1]["memory_promised"], 40 * MIB)
        self.assertEqual(self.host.call("RemoveVgpu", name="train")["vgpu"]["id"], vgpu["id"])
        expect_error("NoSuchVgpu", self.host.call, "ListVgpus", name="train")
        self.assertEqual(self.host.call("ListDevices")["devices"][1]["memory_promised"], 0)

    def test_names_and_devices_are_made_up(self):
        first, second = self.create(), self.create()
        self.assertNotEqual(first["name"], second["name"])
        self.assertNotEqual(first["device"], second["device"], "the roomier one is taken")

    def test_devices_have_several_names(self):
        uuid = self.host.call("ListDevices")["devices"][1]["uuid"]
        for text in ("1", uuid, uuid.removeprefix("GPU-"), uuid[:7], uuid[4:8].upper()):
            vgpu = self.create(device=text)
            self.assertEqual(vgpu["device"], 1, text)
            self.host.call("RemoveVgpu", name=vgpu["name"])
        for text in ("2", "-1", "GPU-", "", "x", "01x", "99999999999999999999"):
            expect_error("NoSuchDevice", self.create, device=text)

    def test_bad_names_are_refused(self):
        for name in ("", "-a", ".a", "_a", "a b", "a/b", "ä", "a" * 64, "a\n", "../x", "1", "0123456789"):
            expect_error("InvalidParameter", self.host.call, "CreateVgpu", name=name,
                         frame_buffer=2 * MIB)
        for name in ("a", "9a", "A.b_c-d", "a" * 63):
            self.assertEqual(self.create(name, 2 * MIB)["name"], name)

    def test_bad_requests_change_nothing(self):
        self.create("train")
        before = self.host.call("ListDevices"), self.host.call("ListVgpus")
        error = expect_error("VgpuExists", self.create, "train")
        self.assertTrue(error.parameters["hint"])
        error = expect_error("NoRoom", self.create, "big", 2 * GIB)
        self.assertIn("1 GiB", error.parameters["message"])
        error = expect_error("NoRoom", self.create, "big", GIB, device="0")
        self.assertIn("960 MiB", error.parameters["message"])
        for size in (0, -1, 1.5, "1G", None, True, 1 << 63):
            with self.host.client() as client:
                client.send("CreateVgpu", frame_buffer=size)
                answer = client.receive()
            if answer is not None:
                self.assertEqual(answer["error"], "org.openvgpu.InvalidParameter", size)
        error = expect_error("InvalidParameter", self.create, "x", colour="red")
        self.assertEqual(error.parameters["parameter"], "colour")
        expect_error("InvalidParameter", self.host.call, "CreateVgpu", name="x")
        expect_error("MethodNotFound", self.host.call, "Explode")
        for method in ("RemoveVgpu", "PrepareRun", "SuspendVgpu", "ResumeVgpu"):
            expect_error("NoSuchVgpu", self.host.call, method, name="nobody")
        for timeout in (0, -1, 1e9):
            expect_error("InvalidParameter", self.host.call, "SuspendVgpu", name="train",
                         timeout=timeout)
        self.assertEqual(before, (self.host.call("ListDevices"), self.host.call("ListVgpus")))

    def test_a_forgotten_unit_is_noticed(self):
        for size, hint in ((20, "sizes have a unit"), (2 * MIB - 1, "the smallest is 2M")):
            error = expect_error("InvalidParameter", self.create, "small", size)
            self.assertEqual(error.parameters["parameter"], "frame_buffer")
            self.assertIn("2 MiB", error.parameters["message"])
            self.assertIn(hint, error.parameters["hint"])
        self.create("small", 2 * MIB)

    def test_states_are_checked(self):
        self.create("train")
        expect_error("WrongState", self.host.call, "SuspendVgpu", name="train")
        expect_error("WrongState", self.host.call, "ResumeVgpu", name="train")
        expect_error("WrongState", self.host.call, "MigrateVgpu", name="train",
                     device=str(self.host.vgpu("train")["device"]))

    def test_an_idle_vgpu_moves_with_its_promise(self):
        self.create("train", device="0")
        report = self.host.call("MigrateVgpu", name="train", device="1")
        self.assertEqual((report["bytes"], report["vgpu"]["device"]), (0, 1))
        self.assertEqual([d["memory_promised"] for d in self.host.call("ListDevices")["devices"]],
                         [0, 64 * MIB])

    def test_the_environment_of_a_guest(self):
        vgpu = self.create("train", device="1")
        environment = self.host.call("PrepareRun", name="train")["environment"]
        self.assertEqual(environment["LD_PRELOAD"], str(self.host.lib / "gate/libcuda.so.1"))
        self.assertEqual(environment["LD_LIBRARY_PATH"], f"{self.host.lib}/gate:{self.host.lib}/nvml")
        self.assertEqual(environment["OPENVGPU_VGPU"], vgpu["uuid"])
        self.assertEqual(environment["OPENVGPU_RUN"], str(self.host.run))
        self.assertEqual(environment["CUDA_VISIBLE_DEVICES"], vgpu["device_uuid"])

    def test_a_transient_vgpu_goes_with_its_creator(self):
        script = ("import sys; sys.path.insert(0, sys.argv[2]); from wire import Control;"
                  "Control(sys.argv[1]).call('CreateVgpu', name='brief', frame_buffer=2 << 20,"
                  " transient=True); print('made', flush=True); sys.stdin.read()")
        creator = subprocess.Popen([sys.executable, "-c", script, self.host.run / "control.sock",
                                    os.path.dirname(os.path.abspath(__file__))],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(creator.stdout.readline(), b"made\n")
        self.assertTrue(self.host.vgpu("brief")["transient"])
        guest = self.host.fake_guest("brief", 4096)
        creator.stdin.close()
        creator.wait()
        creator.stdout.close()
        self.assertEqual(self.host.vgpu("brief")["state"], "running", "its guest is still there")
        guest.kill()
        until(lambda: not self.host.call("ListVgpus")["vgpus"], "the vGPU to go")

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_only_the_owner_and_root_may_change_a_vgpu(self):
        self.create("train")
        script = ("import os, sys; sys.path.insert(0, sys.argv[2]);"
                  "from wire import Control, Refused; os.setgid(65534); os.setuid(65534)\n"
                  "try: Control(sys.argv[1]).call(sys.argv[3], name='train')\n"
                  "except Refused as e: print(e.name)")
        os.chmod(self.host.root, 0o755)
        for method in ("RemoveVgpu", "PrepareRun", "SuspendVgpu", "ResumeVgpu"):
            output = subprocess.run([sys.executable, "-c", script, self.host.run / "control.sock",
                                     os.path.dirname(os.path.abspath(__file__)), method],
                                    capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(output.stdout, "PermissionDenied\n", output.stderr)


class StatePage(unittest.TestCase):
    @staticmethod
    def read_state_page(host):
        """Its tables: what follows are rings, of which most is holes."""
        with open(host.run / "state-page", "rb") as page:
            return page.read(4 << 20)

    def test_the_state_page_says_that_vgpud_lives_and_when_it_ends(self):
        with Host(fake=True) as host:
            host.start()
            host.call("CreateVgpu", name="train", frame_buffer=2 * MIB)
            closed = struct.Struct("=I").unpack_from
            self.assertEqual(closed(self.read_state_page(host), 20)[0], 0)
            until(lambda: b"train" in self.read_state_page(host), "the vGPU on the state page")
            host.manager.send_signal(signal.SIGTERM)
            self.assertEqual(host.manager.wait(PATIENCE), 0)
            self.assertEqual(closed(self.read_state_page(host), 20)[0], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
