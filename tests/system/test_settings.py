#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NVML's Set functions change: who may, when it is refused, and that it is seen and lasts."""
import os
import signal
import sqlite3
import subprocess
import sys
import unittest

import state_page
from harness import MIB, Host, expect_error
from wait import PATIENCE, until

BEST_EFFORT, EQUAL_SHARE, FIXED_SHARE = 1, 2, 3
ARR_OFF, ARR_ON = 1, 2
VERSION = 1 << 16


class Settings(unittest.TestCase):
    def setUp(self):
        self.host = self.enterContext(Host(fake=True))
        self.host.start()

    def call(self, method, **parameters):
        return self.host.call(method, **parameters)

    def refused(self, error, method, **parameters):
        expect_error(error, self.host.call, method, **parameters)

    def seen(self, key):
        return until(lambda: state_page.read(self.host.run / "state-page").get(key), key)

    def create(self, name, size=64 * MIB, **parameters):
        return self.call("CreateVgpu", name=name, frame_buffer=size, **parameters)["vgpu"]

    def scheduler(self, index=0, engine=1):
        found = self.seen(f"scheduler device/{index}/{engine}")
        return tuple(found[name] for name in
                     ("policy", "arr", "averaging", "frequency", "time_slice"))

    def restart(self, how=signal.SIGKILL):
        self.host.manager.send_signal(how)
        self.host.manager.wait(PATIENCE)
        self.host.start()

    def test_a_scheduler_is_set_shown_and_outlives_the_manager(self):
        self.assertEqual(self.scheduler(), (BEST_EFFORT, ARR_OFF, 0, 0, 0))
        answer = self.call("SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE,
                           averaging_factor=10, frequency=500)
        self.assertEqual(answer, {"policy": EQUAL_SHARE, "arr": True, "averaging_factor": 10,
                                  "frequency": 500, "time_slice": 2000000})
        self.assertEqual(self.scheduler(), (EQUAL_SHARE, ARR_ON, 10, 500, 2000000))
        self.assertEqual(self.scheduler(1)[0], BEST_EFFORT, "the other device has its own")
        self.call("SetVgpuSchedulerState", device="0", policy=FIXED_SHARE, arr=False,
                  time_slice=5000000)
        self.assertEqual(self.scheduler(), (FIXED_SHARE, ARR_OFF, 0, 0, 5000000))
        self.restart()
        self.assertEqual(self.scheduler(), (FIXED_SHARE, ARR_OFF, 0, 0, 5000000))

    def test_zero_is_the_default(self):
        self.call("SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE, averaging_factor=0)
        self.assertEqual(self.scheduler(), (EQUAL_SHARE, ARR_ON, 33, 480, 2083333))
        self.call("SetVgpuSchedulerState", device="0", policy=BEST_EFFORT, frequency=999)
        self.assertEqual(self.scheduler(), (BEST_EFFORT, ARR_OFF, 0, 0, 0),
                         "parameters mean nothing under best effort")

    def test_a_bad_scheduler_is_refused_by_name(self):
        for parameter, values in (("policy", (0, 4)), ("engine", (0, 4)), ("frequency", (62, 961)),
                                  ("averaging_factor", (61,))):
            for value in values:
                with self.subTest(parameter=parameter, value=value):
                    with self.assertRaises(Exception) as caught:
                        self.call("SetVgpuSchedulerState",
                                  **{"device": "0", "policy": EQUAL_SHARE, parameter: value})
                    self.assertEqual(caught.exception.name, "InvalidParameter")
                    self.assertEqual(caught.exception.parameters["parameter"], parameter)
        self.refused("InvalidParameter", "SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE,
                     arr=False, time_slice=999999)
        self.refused("InvalidParameter", "SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE,
                     gpu_instance=1)
        self.refused("NoSuchDevice", "SetVgpuSchedulerState", device="7", policy=EQUAL_SHARE)
        self.refused("Unsupported", "SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE,
                     engine=2)
        self.assertEqual(self.scheduler(), (BEST_EFFORT, ARR_OFF, 0, 0, 0))

    def test_nothing_is_set_under_active_vgpus(self):
        self.create("train", device="0")
        self.refused("Unsupported", "SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE)
        self.refused("InUse", "SetVgpuHeterogeneousMode", device="0", enabled=False)
        self.refused("InUse", "SetVgpuVersionRange", min=VERSION, max=VERSION)
        self.refused("Unsupported", "SetVgpuCapability", device="0", capability=6, enabled=True)
        self.call("SetVgpuSchedulerState", device="1", policy=EQUAL_SHARE)
        self.call("RemoveVgpu", name="train")
        self.call("SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE)
        self.call("SetVgpuVersionRange", min=VERSION, max=VERSION)

    def test_without_heterogeneous_mode_a_device_has_one_size(self):
        self.call("SetVgpuHeterogeneousMode", device="0", enabled=False)
        self.assertEqual(self.seen("device 0")["is_heterogeneous"], 0)
        self.create("whole-half", 512 * MIB, device="0")
        self.refused("NoRoom", "CreateVgpu", name="large", frame_buffer=1024 * MIB, device="0")
        self.create("alike", 300 * MIB, device="0")  # of the same type: 1 GiB has one
        until(lambda: self.seen("device 0")["instances"] == 2, "both on the state page")
        self.assertEqual(self.seen("instance alike")["placement"], 0xffff)
        self.restart()
        self.assertEqual(self.seen("device 0")["is_heterogeneous"], 0)

    def test_a_version_range_lies_in_what_is_supported(self):
        self.assertEqual(self.call("SetVgpuVersionRange", min=VERSION, max=VERSION),
                         {"supported_min": VERSION, "supported_max": VERSION,
                          "current_min": VERSION, "current_max": VERSION})
        for minimum, maximum, name in ((VERSION, VERSION + 1, "max"), (0, VERSION, "min"),
                                       (VERSION + 1, VERSION, "min")):
            with self.assertRaises(Exception) as caught:
                self.call("SetVgpuVersionRange", min=minimum, max=maximum)
            self.assertEqual(caught.exception.parameters["parameter"], name)

    def test_encoder_capacity_stays_with_the_vgpu(self):
        vgpu = self.create("train")
        self.call("SetVgpuEncoderCapacity", name=str(vgpu["id"]), percent=40)
        self.restart()
        until(lambda: self.seen("instance train")["encoder_capacity"] == 40, "the capacity")
        self.refused("InvalidParameter", "CreateVgpu", name=str(vgpu["id"]), frame_buffer=64 * MIB)
        self.call("SetVgpuEncoderCapacity", name="train", percent=0)
        until(lambda: self.seen("instance train")["encoder_capacity"] == 0, "the capacity")
        self.refused("InvalidParameter", "SetVgpuEncoderCapacity", name="train", percent=101)
        self.refused("NoSuchVgpu", "SetVgpuEncoderCapacity", name="nobody", percent=101)
        self.call("RemoveVgpu", name="train")
        self.create("train")
        until(lambda: self.seen("instance train")["encoder_capacity"] == 100, "the new one")

    def in_database(self, statement):
        """Between two managers: while one runs, the database is its own."""
        self.host.stop_manager()
        database = sqlite3.connect(self.host.state / "state.db")
        database.execute(statement)
        database.commit()
        database.close()
        self.host.start()

    def test_a_driver_that_was_loaded_anew_has_forgotten(self):
        vgpu = self.create("train", device="1", share=40)
        self.call("SetVgpuSchedulerState", device="0", policy=EQUAL_SHARE)
        self.call("SetVgpuCapability", device="0", capability=6, enabled=True)
        self.in_database("UPDATE setting SET value = 'another' WHERE name = 'driver_load'")
        self.assertEqual(self.scheduler(), (BEST_EFFORT, ARR_OFF, 0, 0, 0))
        self.assertEqual(self.seen("device 0")["capability_6"], 0)
        self.assertEqual(self.host.vgpu("train")["share"], 40, "that is of the vGPU")
        self.call("SetVgpuHeterogeneousMode", device="0", enabled=False)
        self.restart()
        self.assertEqual(self.seen("device 0")["is_heterogeneous"], 0)
        self.assertEqual(self.scheduler(), (BEST_EFFORT, ARR_OFF, 0, 0, 0),
                         "what was set before does not come back")
        self.assertEqual(self.host.vgpu("train")["id"], vgpu["id"])

    def test_a_share_that_cannot_be_stored_leaves_no_vgpu(self):
        self.in_database("CREATE TRIGGER full BEFORE INSERT ON setting"
                         " BEGIN SELECT RAISE(FAIL, 'the disk is full'); END")
        self.refused("Failed", "CreateVgpu", name="train", frame_buffer=64 * MIB, share=40)
        self.assertEqual(self.call("ListVgpus"), {"vgpus": []})
        self.in_database("DROP TRIGGER full")
        self.assertEqual(self.call("ListVgpus"), {"vgpus": []}, "nor does the next manager know one")
        self.assertEqual(self.create("train", share=40)["share"], 40)
        self.restart()
        self.assertEqual(self.host.vgpu("train")["share"], 40)

    def test_capabilities_that_can_be_set(self):
        self.call("SetVgpuCapability", device="0", capability=6, enabled=True)
        self.assertEqual(self.seen("device 0")["capability_6"], 1)
        self.restart()
        self.assertEqual(self.seen("device 0")["capability_6"], 1)
        self.refused("Unsupported", "SetVgpuCapability", device="0", capability=0, enabled=False)
        self.refused("Unsupported", "SetVgpuCapability", device="0", capability=11, enabled=True)
        self.refused("InvalidParameter", "SetVgpuCapability", device="0", capability=12,
                     enabled=True)

    def test_what_is_a_fact_can_only_be_set_to_itself(self):
        self.assertEqual(self.call("SetVirtualizationMode", device="0", mode=3), {"mode": 3})
        self.refused("Unsupported", "SetVirtualizationMode", device="0", mode=0)
        self.refused("InvalidParameter", "SetVirtualizationMode", device="0", mode=5)
        self.assertEqual(self.call("SetAccountingMode", device="0", enabled=True),
                         {"enabled": True})
        self.refused("Unsupported", "SetAccountingMode", device="0", enabled=False)
        self.refused("Unsupported", "ForceGspUnload", device="0")

    def test_clearing_accounts_needs_a_vgpu(self):
        self.create("train")
        self.assertEqual(self.call("ClearVgpuAccounting", name="train"), {"cleared": 0})
        self.refused("NoSuchVgpu", "ClearVgpuAccounting", name="nobody")

    def test_a_vgpu_keeps_its_slot_and_its_placement(self):
        for name in ("a", "b", "c"):
            self.create(name, 64 * MIB, device="0")
        until(lambda: self.seen("device 0")["instances"] == 3, "three vGPUs")
        before = self.seen("instance c")
        self.call("RemoveVgpu", name="a")
        until(lambda: self.seen("device 0")["instances"] == 2, "two vGPUs")
        after = self.seen("instance c")
        self.assertEqual((before["slot"], before["placement"]),
                         (after["slot"], after["placement"]))

    @unittest.skipIf(os.getuid() != 0, "needs root to be somebody else")
    def test_only_root_may_set(self):
        script = ("import os, sys, json; sys.path.insert(0, sys.argv[2]);"
                  "from wire import Control, Refused; os.setgid(65534); os.setuid(65534)\n"
                  "for name, parameters in json.loads(sys.argv[3]):\n"
                  "    try: Control(sys.argv[1]).call(name, **parameters)\n"
                  "    except Refused as e: print(e.name)")
        calls = '''[["SetVgpuSchedulerState", {"device": "0", "policy": 2}],
                    ["SetVgpuHeterogeneousMode", {"device": "0", "enabled": false}],
                    ["SetVgpuVersionRange", {"min": 65536, "max": 65536}],
                    ["SetVgpuEncoderCapacity", {"name": "own", "percent": 1}],
                    ["ClearVgpuAccounting", {"name": "own"}],
                    ["SetVgpuCapability", {"device": "0", "capability": 6, "enabled": true}],
                    ["SetVirtualizationMode", {"device": "0", "mode": 3}],
                    ["SetAccountingMode", {"device": "0", "enabled": true}],
                    ["ForceGspUnload", {"device": "0"}],
                    ["CreateGpuInstance", {"device": "0", "profile": 9}]]'''
        os.chmod(self.host.root, 0o755)
        output = subprocess.run([sys.executable, "-c", script, self.host.run / "control.sock",
                                 os.path.dirname(os.path.abspath(__file__)), calls],
                                capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(output.stdout.split(), ["PermissionDenied"] * 10, output.stderr)
        self.assertEqual(self.scheduler()[0], BEST_EFFORT)


if __name__ == "__main__":
    unittest.main(verbosity=2)
