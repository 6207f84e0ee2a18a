#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the driver's restore forgets the gate puts back; where it cannot, that is said."""
import case
import stage
from guest import Guest
from wait import until

# Of a kernel: so long does the driver not let one that it cannot interrupt keep others waiting.
LONG = 4600000


class Whole(case.Case):
    def setUp(self):
        self.host.create("train")

    def process(self, guest):
        return next(one for one in self.host.get("train")["processes"] if one["pid"] == guest.pid)

    def restored(self, **environment):
        """A guest in its first long kernel since its context was restored."""
        guest = self.host.run("train", "guest-busy", LONG, "64K", **environment).wait_ready()
        self.assertEqual(self.process(guest)["context"], "")
        self.host.vgpu("suspend", "train")
        self.host.vgpu("resume", "train")
        before = self.process(guest)["launches"]
        until(lambda: not guest.is_alive() or self.process(guest)["launches"] > before, "a kernel", context=self.host.log)
        return guest

    def stranger(self):
        """Outside of all vGPUs, with one short kernel after the other."""
        environment = self.host.environment(OPENVGPU_SIM=self.host.run_directory + "/sim",
                                            LD_LIBRARY_PATH=stage.DRIVER.parent)
        guest = Guest([stage.GUESTS / "guest-busy", 100, "64K"], environment)
        self.host.guests.append(guest)
        return guest.wait_ready()

    def test_a_long_kernel_of_a_restored_context_ends_well_beside_others(self):
        guest = self.restored()
        stranger = self.stranger()
        self.assertEqual(self.process(guest)["context"], "whole")
        self.assertEqual(guest.end_input(), 0, guest.context())
        self.assertTrue(guest.lines[-1].endswith("ok"), guest.lines)
        self.assertEqual(stranger.end_input(), 0, stranger.context())

    def test_a_context_that_cannot_be_made_whole_is_told(self):
        guest = self.restored(OPENVGPU_SIM_WHOLE="0")
        self.assertEqual(self.process(guest)["context"], "unwhole")
        self.assertEqual(self.process(guest)["context_reason"], "the kernel module refused a call")
        used = self.host.call("GetUtilization")["vgpus"][0]
        self.assertEqual((used["whole_count"], used["unwhole_count"]), (0, 1))
        self.assertIn(f"the GPU cannot interrupt the kernels of process {guest.pid} (the kernel module refused a call): ", self.host.vgpu("ls").output)
        self.stranger()
        self.assertNotEqual(guest.join(), 0, guest.context())
        self.assertIn("719", " ".join(guest.errors), guest.context())


if __name__ == "__main__":
    case.main()
