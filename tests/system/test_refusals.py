#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cannot be done is refused or undone, and the guest runs on with its memory intact."""
import os
import shutil

import case
import stage
from wire import Refused

MIB = 1 << 20


class Refusals(case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "32M", "slab": "4M"}

    def refused(self, error, method, **parameters):
        with self.assertRaises(Refused) as refused:
            self.host.call(method, **parameters)
        self.assertEqual(refused.exception.name, error, refused.exception.parameters)
        return refused.exception.parameters

    def check_goes_on(self, guest, name="train"):
        """It runs as before, and what was refused is possible once the reason is gone."""
        self.assertEqual(self.host.get(name)["state"], "running")
        guest.wait_steps()
        self.assertEqual(self.host.info()["pool"]["used"], 0)

    def test_a_pool_that_is_too_small(self):
        guest = self.host.train(self.host.create("train"), "--size", "64M")
        parameters = self.refused("PoolTooSmall", "SuspendVgpu", name="train")
        self.assertIn("32 MiB", parameters["message"])
        self.assertIn("pool-limit", parameters["hint"])
        self.check_goes_on(guest)
        self.host.vgpu("suspend", "train", code=1)
        self.host.vgpu("migrate", "train", "--device", "1")
        guest.wait_steps()
        guest.finish()

    def test_a_process_in_which_a_profiler_was_used(self):
        """The driver answers 801 to its lock, for ever: what is to blame is no memory."""
        failure = os.path.join(self.host.directory, "fail")
        profiler, sanitizer = (os.path.join(self.host.directory, name)
                               for name in ("libcupti.so.13", "libsanitizer-collection.so"))
        for library in (profiler, sanitizer):
            shutil.copy(os.path.join(stage.ROOT, "lib/libopenvgpu.so.0"), library)
        self.host.restart(OPENVGPU_SIM_FAIL_FILE=failure)
        for loaded, words in ((profiler, "(CUPTI)"), (sanitizer, "compute-sanitizer in it"),
                              ("", "holds something that cannot be suspended")):
            guest = self.host.train(self.host.create("train"), "--size", "16M", LD_PRELOAD=loaded)
            with open(failure + ".draft", "w") as file:
                file.write("cuCheckpointProcessLock@1=801")
            os.rename(failure + ".draft", failure)
            self.assertIn(words, self.refused("NotMovable", "SuspendVgpu", name="train")["message"])
            self.check_goes_on(guest)
            guest.finish()
            self.host.wait_state("train", "idle")
            self.host.vgpu("rm", "train")

    def test_a_pool_that_another_vgpu_has_filled(self):
        first = self.host.train(self.host.create("first", "64M"), "--size", "20M")
        second = self.host.train(self.host.create("second", "64M"), "--size", "20M")
        self.host.vgpu("suspend", "first")
        self.refused("PoolTooSmall", "SuspendVgpu", name="second")
        second.wait_steps()
        self.host.vgpu("resume", "first")
        self.host.vgpu("suspend", "second")
        self.host.vgpu("resume", "second")
        first.finish()
        second.finish()

    def test_a_device_without_room_at_resume(self):
        guest = self.host.train(self.host.create("train", "300M"), "--size", "16M")
        self.host.vgpu("suspend", "train")
        self.host.create("other", "300M", device=0)
        self.host.create("another", "300M", device=1)
        for device in ("0", "1"):
            parameters = self.refused("NoRoom", "ResumeVgpu", name="train", device=device)
            self.assertIn("300 MiB", parameters["message"])
            self.assertEqual(self.host.get("train")["state"], "suspended")
        self.host.vgpu("rm", "another")
        self.host.vgpu("resume", "train", "--device", "1")
        guest.wait_steps()
        guest.finish()

    def test_a_device_without_room_to_move_to(self):
        guest = self.host.train(self.host.create("train", "300M"), "--size", "16M")
        self.host.create("other", "300M", device=1)
        self.refused("NoRoom", "MigrateVgpu", name="train", device="1")
        self.check_goes_on(guest)
        guest.finish()

    def test_a_guest_that_does_not_drain_in_time(self):
        self.host.create("train")
        guest = self.host.run("train", "guest-busy", 1500000).wait_ready()
        result = self.host.vgpu("suspend", "train", "--timeout", "0.2", code=4)
        self.assertIn(f"process {guest.pid} (guest-busy) did not come to rest", result.errors)
        self.assertEqual(self.host.get("train")["state"], "running")
        self.host.vgpu("migrate", "train", "--device", "1", "--timeout", "0.1", code=4)
        self.assertEqual(guest.end_input(), 0, guest.context())
        self.assertTrue(guest.lines[-1].endswith(" ok"), guest.lines)

    def test_a_guest_that_drains_within_its_timeout(self):
        self.host.create("train")
        guest = self.host.run("train", "guest-busy", 300000).wait_ready()
        self.host.vgpu("suspend", "train", "--timeout", "20")
        self.host.vgpu("resume", "train", "--device", "1")
        self.assertEqual(guest.end_input(), 0, guest.context())
        self.assertTrue(guest.lines[-1].endswith(" ok"), guest.lines)

    def test_managed_memory_is_refused_before_anything_is_done(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M", "--managed")
        for method, more in (("SuspendVgpu", {}), ("MigrateVgpu", {"device": "1"})):
            parameters = self.refused("NotMovable", method, name="train", **more)
            self.assertIn("managed", parameters["message"])
            self.check_goes_on(guest)
        guest.finish()

    def test_managed_memory_stays_when_the_context_does(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M", "--managed")
        self.host.vgpu("suspend", "train", "--keep-context")
        self.host.vgpu("resume", "train")
        guest.wait_steps()
        guest.finish()

    def test_memory_with_a_dma_buf_is_refused_but_may_stay(self):
        self.host.create("train")
        guest = self.host.run("train", "guest-hold").wait_ready()
        for what in ("registered", "mapped"):
            with self.subTest(what):
                guest.hold("device")
                guest.hold(what)
                parameters = self.refused("NotMovable", "SuspendVgpu", name="train")
                self.assertIn("a network card would go on with the old memory",
                              parameters["message"])
                self.assertIn("--keep-context", parameters["hint"])
                self.host.vgpu("suspend", "train", "--keep-context")
                self.host.vgpu("resume", "train")
                guest.hold("nothing")
                self.host.vgpu("suspend", "train")
                self.host.vgpu("resume", "train")
        self.assertEqual(guest.end_input(), 0)

    def test_memory_that_others_have_by_the_drivers_own_handle_is_refused_but_may_stay(self):
        """They would go on with the old memory, and the process with the new: neither would notice."""
        self.host.create("train")
        guest = self.host.run("train", "guest-hold").wait_ready()
        native = self.host.run("train", "guest-hold", OPENVGPU_NATIVE_IPC="1").wait_ready()
        for holder, what in ((guest, "exported"), (native, "given"), (native, "named")):
            with self.subTest(what):
                holder.hold("device")
                holder.hold(what)
                for method, more in (("SuspendVgpu", {}), ("MigrateVgpu", {"device": "1"})):
                    parameters = self.refused("NotMovable", method, name="train", **more)
                    self.assertIn(f"process {holder.pid} (guest-hold) holds memory that it has exported",
                                  parameters["message"])
                self.host.vgpu("suspend", "train", "--keep-context")
                self.host.vgpu("resume", "train")
                holder.hold("nothing")
                self.host.vgpu("suspend", "train")
                self.host.vgpu("resume", "train")
        for holder in (guest, native):
            self.assertEqual(holder.end_input(), 0)

    def test_one_guest_with_managed_memory_keeps_all_of_its_vgpu(self):
        self.host.create("train")
        free = self.host.train("train", "--size", "8M")
        bound = self.host.train("train", "--size", "8M", "--managed")
        self.refused("NotMovable", "SuspendVgpu", name="train")
        self.check_goes_on(free)
        bound.wait_steps()
        bound.finish()
        self.host.wait_for("train", lambda v: len(v["processes"]) == 1, "to lose a process")
        self.host.vgpu("suspend", "train")
        self.host.vgpu("resume", "train")
        free.wait_steps()
        free.finish()

    def test_a_process_that_the_driver_says_nothing_of(self):
        """As with one in a namespace of its own: what was never done to it needs no undoing."""
        calls = ",".join(f"cuCheckpointProcessGetState@{n}=304" for n in range(1, 33))
        self.host.restart(OPENVGPU_SIM_FAIL=calls)
        self.addCleanup(self.host.restart)
        guest = self.host.train(self.host.create("train"), "--on-demand", "--size", "8M")
        for method, where in (("SuspendVgpu", {}), ("MigrateVgpu", {"device": "1"})):
            with self.assertRaisesRegex(Refused, "cuCheckpointProcessGetState failed with 304"):
                self.host.call(method, name="train", **where)
            self.assertEqual(self.host.get("train")["state"], "running")
            guest.step()
        guest.finish()

    def test_only_one_operation_at_a_time(self):
        self.host.create("train")
        guest = self.host.run("train", "guest-busy", 700000).wait_ready()
        with self.host.connect() as first:
            first.send("SuspendVgpu", name="train")
            self.host.wait_state("train", "suspending")
            for method, more in (("SuspendVgpu", {}), ("ResumeVgpu", {}), ("RemoveVgpu", {}),
                                 ("MigrateVgpu", {"device": "1"})):
                self.refused("Busy", method, name="train", **more)
            first.answer()
        self.host.vgpu("resume", "train")
        self.assertEqual(guest.end_input(), 0, guest.context())

    def test_progress_is_told_to_those_who_ask(self):
        guest = self.host.train(self.host.create("train"), "--size", "16M")
        with self.host.connect() as control:
            control.send("SuspendVgpu", more=True, name="train")
            stages = []
            while (message := control.receive()).get("continues"):
                stages.append(message["parameters"]["stage"])
                self.assertLessEqual(message["parameters"]["bytes_done"],
                                     message["parameters"]["bytes_total"])
            self.assertIn("copying", stages)
            self.assertEqual(message["parameters"]["vgpu"]["state"], "suspended")
        self.host.vgpu("resume", "train")
        guest.finish()

    def test_moving_to_where_it_is_already(self):
        guest = self.host.train(self.host.create("train"), "--size", "8M")
        self.host.vgpu("migrate", "train", "--device", "0", code=None)
        self.check_goes_on(guest)
        guest.finish()


if __name__ == "__main__":
    case.main()
