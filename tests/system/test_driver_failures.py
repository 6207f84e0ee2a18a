#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each driver call that movers and gates make during an operation fails in turn.

Whatever fails: the operation was refused or undone, or it got by without that call; the guests'
memory is intact, the next command works, and nothing is left behind. One manager and two guests
for all of them: what one case spoils, the next one finds.
"""
import os

import case
from wait import until
from wire import Refused

MIB = 1 << 20
MOVER_CONTEXT = (64 + 16) * MIB  # on a device of 1 GiB, with what it keeps for checkpoints
UNKNOWN, NO_MEMORY, LAUNCH_FAILED = 999, 2, 719

SUSPEND, RESUME, MIGRATE = "suspend", "resume", "migrate"
ALL = (SUSPEND, RESUME, MIGRATE)

# Calls of the mover: which call, and in which operations it must come to it.
MOVER = [
    ("cuCtxSetCurrent", 1, ALL),
    ("cuMemGetInfo_v2", 1, (RESUME, MIGRATE)),
    ("cuDeviceTotalMem_v2", 1, (RESUME, MIGRATE)),
    ("cuDeviceGetUuid", 1, (MIGRATE,)),
    ("cuMemImportFromShareableHandle", 1, ALL),
    ("cuMemImportFromShareableHandle", 3, ALL),
    ("cuMemAddressReserve", 1, ALL),
    ("cuMemAddressReserve", 2, (RESUME, MIGRATE)),
    ("cuMemCreate", 1, (RESUME, MIGRATE)),
    ("cuMemMap", 1, ALL),
    ("cuMemMap", 3, ALL),
    ("cuMemSetAccess", 1, ALL),
    ("cuMemSetAccess", 2, (RESUME, MIGRATE)),
    ("cuStreamCreate", 1, ALL),
    ("cuStreamCreate", 2, (RESUME, MIGRATE)),
    ("cuEventCreate", 1, ALL),
    ("cuEventCreate", 8, ALL),
    ("cuEventRecord", 1, ALL),
    ("cuEventSynchronize", 1, ALL),
    ("cuMemcpyDtoHAsync_v2", 1, (SUSPEND,)),
    ("cuMemcpyDtoHAsync_v2", 2, (SUSPEND,)),
    ("cuMemcpyHtoDAsync_v2", 1, (RESUME,)),
    ("cuMemcpyDtoDAsync_v2", 1, (RESUME, MIGRATE)),
    ("cuMemcpyDtoDAsync_v2", 2, (MIGRATE,)),
    ("cuStreamSynchronize", 1, ALL),
    ("cuCheckpointProcessGetState", 1, ALL),
    ("cuCheckpointProcessGetState", 2, ALL),
    ("cuCheckpointProcessLock", 1, (SUSPEND, MIGRATE)),
    ("cuCheckpointProcessLock", 2, (SUSPEND, MIGRATE)),
    ("cuCheckpointProcessCheckpoint", 1, (SUSPEND, MIGRATE)),
    ("cuCheckpointProcessCheckpoint", 2, (SUSPEND, MIGRATE)),
    ("cuCheckpointProcessRestore", 1, (RESUME, MIGRATE)),
    ("cuCheckpointProcessRestore", 2, (RESUME, MIGRATE)),
    ("cuCheckpointProcessUnlock", 1, (RESUME, MIGRATE)),
    ("cuCheckpointProcessUnlock", 2, (RESUME, MIGRATE)),
    # What the driver does not take back is lost until the mover ends.
    ("cuEventDestroy_v2", 1, ALL),
    ("cuStreamDestroy_v2", 1, ALL),
    ("cuMemUnmap", 1, ALL),
    ("cuMemAddressFree", 1, ALL),
    ("cuMemRelease", 1, ALL),
]

# Calls of the mover that hear of a broken context: it can do nothing more on the device.
MOVER_BREAKS = [
    ("cuMemcpyDtoHAsync_v2", 1, (SUSPEND,)),
    ("cuMemcpyHtoDAsync_v2", 1, (RESUME,)),
    ("cuMemcpyDtoDAsync_v2", 1, (MIGRATE,)),
    ("cuEventSynchronize", 1, ALL),
]

# Calls of the gate.
GATE = [
    ("cuThreadExchangeStreamCaptureMode", 1, (SUSPEND, MIGRATE)),
    ("cuDeviceGetCount", 1, (SUSPEND, MIGRATE)),
    ("cuDeviceGet", 1, (SUSPEND, MIGRATE)),
    ("cuDevicePrimaryCtxGetState", 1, (SUSPEND, MIGRATE)),
    ("cuDevicePrimaryCtxRetain", 1, (SUSPEND, MIGRATE)),
    ("cuDevicePrimaryCtxRelease_v2", 1, (SUSPEND, MIGRATE)),
    ("cuCtxGetCurrent", 1, (SUSPEND, MIGRATE)),
    ("cuCtxPushCurrent_v2", 1, (SUSPEND, MIGRATE)),
    ("cuCtxSynchronize", 1, (SUSPEND, MIGRATE)),
    ("cuCtxPopCurrent_v2", 1, (SUSPEND, MIGRATE)),
    ("cuMemExportToShareableHandle", 1, ALL),
    ("cuMemExportToShareableHandle", 3, ALL),
    ("cuMemUnmap", 1, (SUSPEND, MIGRATE)),
    ("cuMemUnmap", 3, (SUSPEND, MIGRATE)),
    ("cuDeviceGetAttribute", 1, (RESUME, MIGRATE)),
    ("cuMemCreate", 1, (RESUME, MIGRATE)),
    ("cuMemCreate", 3, (RESUME, MIGRATE)),
    ("cuMemMap", 1, (RESUME, MIGRATE)),
    ("cuMemMap", 3, (RESUME, MIGRATE)),
    ("cuMemSetAccess", 1, (RESUME, MIGRATE)),
    ("cuMemSetAccess", 3, (RESUME, MIGRATE)),
]

# Staging ends when the guest's memory is there, and may not have begun by then.
UNCERTAIN = {("mover", "cuMemCreate", RESUME), ("mover", "cuMemCreate", MIGRATE),
             ("mover", "cuMemcpyDtoDAsync_v2", RESUME)}

METHODS = {SUSPEND: "SuspendVgpu", RESUME: "ResumeVgpu", MIGRATE: "MigrateVgpu"}

# What the driver was asked to take back and did not: gone until the process ends.
LOSING = {"cuMemUnmap", "cuMemAddressFree", "cuMemRelease", "cuDevicePrimaryCtxRelease_v2"}

# In a vGPU of 64 MiB: with three pieces of memory, and one of small allocations.
GUEST = ("--on-demand", "--size", "5M", "--piece", "2M", "--small", "20")


class DriverFailures(case.Case):
    def setUp(self):
        self.host.restart(OPENVGPU_SIM_FAIL_FILE=self.file("mover"))
        self.start_guests()

    def start_guests(self):
        self.host.create("train")
        self.guests = [self.host.train("train", *GUEST, OPENVGPU_SIM_FAIL_FILE=self.file("gate"))
                       for _ in range(2)]
        self.used = self.host.get("train")["frame_buffer_used"]
        until(lambda: self.host.info()["pool"]["ready"] > 0, "the mover to have its context", context=self.host.log)
        self.held = self.device_memory()  # with the contexts of movers, which come and go

    def start_again(self):
        """After a case that has failed: what it left shall not fail the others."""
        self.disarm("mover")
        self.disarm("gate")
        for guest in self.guests:
            guest.kill()
        self.host.wait_state("train", "idle")
        self.host.vgpu("rm", "train")
        self.start_guests()

    def file(self, actor):
        return os.path.join(self.host.directory, f"fail-{actor}")

    def arm(self, actor, failure):
        draft = self.file(actor) + ".draft"
        with open(draft, "w") as file:
            file.write(failure)
        os.rename(draft, self.file(actor))

    def wait_hit(self, actor, what):
        """Some calls are made after the answer, when the mover lets go of what it had."""
        until(lambda: not os.path.exists(self.file(actor)), what, context=self.host.log)

    def disarm(self, actor):
        if os.path.exists(self.file(actor)):
            os.unlink(self.file(actor))

    def device_memory(self):
        return sum(self.host.driver_memory())

    def state(self):
        return self.host.get("train")["state"]

    def call(self, kind):
        vgpu = self.host.get("train")
        where = {} if kind == SUSPEND else {"device": str(1 - vgpu["device"])}
        return self.host.call(METHODS[kind], name="train", **where)

    def step(self):
        """All guests go on, with the right words everywhere."""
        for guest in self.guests:
            guest.step()

    def check_whole(self, losing):
        """While it runs: what the vGPU and the devices count is as at first."""
        vgpu = self.host.get("train")
        self.assertEqual(vgpu["frame_buffer_used"], self.used)
        until(lambda: self.host.info()["pool"]["used"] == 0, "the pool to be empty",
              context=self.host.log)
        if not losing:
            until(lambda: (self.device_memory() - self.held) % MOVER_CONTEXT == 0,
                  "the devices to have what they had", context=self.host.log)

    def check(self, actor, call, nth, kind, code):
        before = {RESUME: "suspended"}.get(kind, "running")
        after = {SUSPEND: "suspended"}.get(kind, "running")
        if kind == RESUME:
            self.call(SUSPEND)
        self.arm(actor, f"{call}@{nth}={code}")
        try:
            self.call(kind)
            outcome = "done"
        except Refused as error:
            outcome = "undone"
            self.assertTrue(str(error))
        if (actor, call, kind) not in UNCERTAIN:
            self.wait_hit(actor, f"the {actor} to come to call {nth} of {call}")
        self.disarm(actor)
        self.assertEqual(self.state(), after if outcome == "done" else before)
        if self.state() == "running":
            self.step()
        if outcome == "undone":
            self.call(kind)
            self.assertEqual(self.state(), after)
        if kind == SUSPEND:
            self.call(RESUME)
        self.step()
        self.check_whole(call in LOSING)

    def check_table(self, actor, table, code):
        for call, nth, kinds in table:
            for kind in kinds:
                with self.subTest(call=call, nth=nth, operation=kind):
                    try:
                        self.check(actor, call, nth, kind, code)
                    except BaseException:
                        self.start_again()
                        raise
        for guest in self.guests:
            guest.finish()

    def test_calls_of_the_mover(self):
        self.check_table("mover", MOVER, UNKNOWN)

    def test_a_mover_whose_context_breaks_is_replaced(self):
        self.check_table("mover", MOVER_BREAKS, LAUNCH_FAILED)

    def test_calls_of_the_gate(self):
        self.check_table("gate", GATE, UNKNOWN)

    def test_no_copy_fails_for_want_of_a_stream(self):
        """The context has one of its own, and a copy needs no event."""
        for call in ("cuStreamCreate", "cuEventCreate"):
            for nth in range(1, 10):
                for kind in ALL:
                    with self.subTest(call=call, nth=nth, operation=kind):
                        if kind == RESUME:
                            self.call(SUSPEND)
                        self.arm("mover", f"{call}@{nth}={NO_MEMORY}")
                        self.call(kind)
                        self.disarm("mover")
                        if kind == SUSPEND:
                            self.call(RESUME)
                        self.step()
        for guest in self.guests:
            guest.finish()

    def test_a_device_that_says_it_is_full(self):
        for actor, table in (("mover", MOVER), ("gate", GATE)):
            for call in ("cuMemCreate", "cuMemMap"):
                for kind in (RESUME, MIGRATE):
                    with self.subTest(actor=actor, call=call, operation=kind):
                        self.check(actor, call, 1, kind, NO_MEMORY)

    def test_a_checkpoint_without_memory_is_the_last_of_its_process(self):
        """So the driver is not asked again; what can be moved still is, and the process works."""
        self.arm("mover", f"cuCheckpointProcessCheckpoint@1={NO_MEMORY}")
        for said in ("failed with 2", "can never be checkpointed again"):
            with self.assertRaisesRegex(Refused, said):
                self.call(SUSPEND)
            self.assertEqual(self.state(), "running")
            self.step()
        self.host.call("SuspendVgpu", name="train", keep_context=True)
        self.host.call("ResumeVgpu", name="train")
        self.step()
        for guest in self.guests:
            guest.finish()


if __name__ == "__main__":
    case.main()
