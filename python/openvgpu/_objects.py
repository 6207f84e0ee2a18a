# SPDX-License-Identifier: Apache-2.0
"""What vgpud answers, as plain objects. Members have the names of docs/control-protocol.md.

What an older vgpud does not answer has its default.
"""
from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeVar

T = TypeVar("T")

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(size: int | str) -> int:
    """Bytes: a number as it is; "40G", "1.5G", "512M", "40GiB" in powers of 1024.

    >>> parse_size("1.5G")
    1610612736
    """
    if not isinstance(size, str):
        return int(size)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", size, re.IGNORECASE)
    if not match:
        raise ValueError(f"'{size}' is not a size such as 40G, 1.5G or 512M")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def make(kind: type[T], answer: dict[str, Any], **more: Any) -> T:
    """An object of what an answer says, and of more that is ready."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    made = kind(**{**{name: answer[name] for name in names & set(answer)}, **more})
    object.__setattr__(made, "_answer", answer)
    return made


class _Answered:
    """Has what vgpud answered and what is not listed here as attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_answer"][name]
        except KeyError:
            raise AttributeError(f"vgpud does not answer '{name}' of a {type(self).__name__}") from None


@dataclasses.dataclass(frozen=True)
class Device:
    """A physical GPU."""
    index: int
    uuid: str
    name: str
    pci_bus_id: str = ""
    memory_total: int = 0
    memory_promised: int = 0  # the sum of the quotas
    memory_used: int = 0      # by vGPUs
    memory_swapped: int = 0   # of vGPUs that are off it
    overcommitted: bool = False
    left_out: bool = False    # it has no vGPUs: vgpud --leave-out
    vgpus: int = 0            # how many are on it
    memory_left: int = 0      # what it can still promise to one vGPU more


@dataclasses.dataclass(frozen=True)
class Process:
    """A program in a vGPU."""
    pid: int
    name: str = ""
    memory_used: int = 0
    memory_movable: int = 0  # of it, what suspend moves at the speed of the bus
    launches: int = 0
    container_name: str = ""  # as its engine called it when the program joined
    context: str = ""  # "whole": restored and made whole again; "unwhole": the GPU cannot interrupt its kernels
    context_reason: str = ""  # why it is "unwhole"


@dataclasses.dataclass(frozen=True)
class Part:
    """What a vGPU has of one device."""
    id: int      # NVML's vGPU instance id
    device: int  # index
    device_uuid: str = ""
    frame_buffer_used: int = 0


@dataclasses.dataclass(frozen=True)
class Vgpu(_Answered):
    """A vGPU as it was when vgpud was asked.

    What a newer vgpud answers besides these is an attribute too, under its name in the protocol.
    """
    id: int
    name: str
    uuid: str
    device: int  # index, of the first; of a suspended one: where it was
    state: str   # "idle", "running", "suspended", "evicted", ...
    device_uuid: str = ""
    frame_buffer: int = 0  # the quota on each of its devices
    frame_buffer_used: int = 0  # on all of them
    transient: bool = False  # goes with the program that it was made for
    owner: int = 0           # user id
    created: float = 0       # since the epoch
    share: int = 0           # percent of its device's time; 0: none
    processes: tuple[Process, ...] = ()
    idle_after: float = 0    # seconds without work, then it leaves its device; 0: never
    idle_keep_context: bool = False  # then only its memory leaves
    idle: float = 0          # seconds that it has had no work, as far as known
    demand: str = ""         # "away" by itself, "waiting for memory", "coming in"
    demand_reason: str = ""  # why it did not leave, or come in, when it should have
    outside: str = ""  # a process of it that uses a device past the gate
    gone: str = ""  # the UUID of a device that it had, and that vgpud has not found
    swap_class: str = ""     # "batch" or "interactive": how it waits for room
    resident_seconds: float = 0  # this and the following: since vgpud started
    swapped_bytes: int = 0
    waits: int = 0
    waited_seconds: float = 0
    swaps: int = 0           # times that it left or came back by itself
    demand_percent: int = 0  # of its memory that has moved, while it is leaving or coming in
    spilled_memory: int = 0  # of its evicted memory, on disk instead of in host memory
    parts: tuple[Part, ...] = ()  # its devices, as its programs count them; (): an older vgpud
    pool_group: str = ""     # those of one group keep equal memory once; "": those of its owner

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> Vgpu:
        """Of a vGPU in an answer."""
        return make(cls, answer, processes=tuple(make(Process, process)
                                                 for process in answer.get("processes", ())),
                    parts=tuple(make(Part, part) for part in answer.get("parts", ())))


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far an operation is."""
    stage: str  # "running", "draining", "copying", "context", "finishing", or a new one
    bytes_done: int = 0
    bytes_total: int = 0  # 0: not known yet


@dataclasses.dataclass(frozen=True)
class Report:
    """What an operation did."""
    vgpu: Vgpu
    bytes: int = 0
    bytes_unchanged: int = 0    # of them, what host memory had from the last suspend
    seconds: float = 0
    copy_seconds: float = 0
    context_seconds: float = 0  # the driver's checkpoint and restore
    drain_seconds: float = 0    # until the programs were at rest
    pool_seconds: float = 0     # waited for host memory
    processes: int = 0
    from_device: int = 0
    to_device: int = 0
    lost: str = ""  # the processes that the driver could not restore; "": none
    had_left: bool = False  # suspend: it had left by itself; nothing moved, and it stays away now
    fetch_seconds: float = 0    # resume: to read from disk what was spilled there
    stopped_seconds: float = 0  # for how long the programs stood still, of a resume since its suspend; 0: unknown
    pre_copy_seconds: float = 0  # suspend: for how long was copied while they ran
    pre_copy_bytes: int = 0      # that were copied then
    left_behind: str = ""  # resume: the stopped processes that follow, not in `processes`; "": none


@dataclasses.dataclass(frozen=True)
class Pool:
    """Host memory for suspended vGPUs, in bytes."""
    limit: int = 0
    size: int = 0
    ready: int = 0
    used: int = 0
    held: int = 0
    slab_size: int = 0
    spare: int = 0  # kept of resumed vGPUs, and given up when the room is needed
    saved: int = 0  # more that would be used if equal blocks were not kept once
    spilled: int = 0  # of suspended vGPUs, on disk instead
    spill_limit: int = 0  # of it; 0: none but the disk, or nothing goes there
    reserved: int = 0  # of the disk, held for vGPUs of overcommitted devices
    spill_failure: str = ""  # why nothing more is promised on that disk


@dataclasses.dataclass(frozen=True)
class Info:
    """What vgpud says of itself."""
    version: str
    simulated: bool = False
    cuda_driver_version: int = 0
    driver_path: str = ""
    gate_path: str = ""
    nvml_path: str = ""
    run_directory: str = ""
    pool: Pool = Pool()
    descriptors_used: int = 0
    descriptors_limit: int = 0
    scenario: str = ""  # file that vgpud plays for NVML: vgpud --scenario; "": none


@dataclasses.dataclass(frozen=True)
class Percents:
    """Of the physical device, in the last period."""
    gpu: int = 0
    memory: int = 0
    encoder: int = 0
    decoder: int = 0
    jpeg: int = 0
    ofa: int = 0


@dataclasses.dataclass(frozen=True)
class Seconds:
    """Time of the engines of a device."""
    gpu_seconds: float = 0
    memory_seconds: float = 0
    encoder_seconds: float = 0
    decoder_seconds: float = 0
    jpeg_seconds: float = 0
    ofa_seconds: float = 0


@dataclasses.dataclass(frozen=True)
class DeviceUse:
    """How busy a device is."""
    index: int
    uuid: str
    name: str
    source: str = ""  # "turns", "engine", "samples", "none"
    memory_total: int = 0
    memory_promised: int = 0
    memory_used: int = 0
    memory_swapped: int = 0  # of vGPUs that are off it
    overcommitted: bool = False
    turns: int = 0           # that vGPUs have taken since vgpud started
    turns_mode: str = ""     # how they are enforced: "off", "hardware", "gate"
    percents: Percents = Percents()


@dataclasses.dataclass(frozen=True)
class ProcessUse:
    """What a program uses of its device, and has used since it began."""
    pid: int
    name: str = ""
    memory_used: int = 0
    container: str = ""  # the beginning of its id
    percents: Percents = Percents()
    seconds: Seconds = Seconds()
    container_name: str = ""  # as its engine called it when the program joined


@dataclasses.dataclass(frozen=True)
class VgpuUse:
    """What a vGPU may use of its device, and what it uses."""
    name: str
    uuid: str
    device: int
    state: str
    frame_buffer: int = 0
    frame_buffer_used: int = 0
    share: int = 0
    entitled: float = 0  # percent of the device that it can count on, whoever has work
    idle: float = 0      # this and the following as in Vgpu
    demand: str = ""
    demand_reason: str = ""
    demand_percent: int = 0
    swap_class: str = ""
    resident_seconds: float = 0
    swaps: int = 0
    swapped_bytes: int = 0
    waits: int = 0
    waited_seconds: float = 0
    host_memory: int = 0  # what its evicted memory takes of the pool
    container: str = ""   # that all of its programs are in
    whole_count: int = 0  # processes, by Process.context
    unwhole_count: int = 0
    percents: Percents = Percents()
    seconds: Seconds = Seconds()
    processes: tuple[ProcessUse, ...] = ()


@dataclasses.dataclass(frozen=True)
class Utilization:
    """All devices and vGPUs, as of now."""
    devices: tuple[DeviceUse, ...] = ()
    vgpus: tuple[VgpuUse, ...] = ()

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> Utilization:
        """Of the answer to GetUtilization."""
        return cls(tuple(make(DeviceUse, device, percents=make(Percents, device))
                         for device in answer.get("devices", ())),
                   tuple(_vgpu_use(vgpu) for vgpu in answer.get("vgpus", ())))


def _vgpu_use(answer: dict[str, Any]) -> VgpuUse:
    processes = tuple(make(ProcessUse, process, percents=make(Percents, process),
                           seconds=make(Seconds, process)) for process in answer.get("processes", ()))
    return make(VgpuUse, answer, percents=make(Percents, answer), seconds=make(Seconds, answer),
                processes=processes)


@dataclasses.dataclass(frozen=True)
class Account:
    """What a program that runs or ran in a vGPU has used."""
    id: int
    pid: int
    name: str = ""
    running: bool = False
    started: float = 0           # since the epoch
    time: float = 0              # seconds of its life
    gpu_utilization: int = 0     # percent of its life
    memory_utilization: int = 0
    memory_peak: int = 0
    seconds: Seconds = Seconds()

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> Account:
        """Of a record of GetAccounting."""
        return make(cls, answer, time=answer.get("seconds", 0), seconds=make(Seconds, answer))


@dataclasses.dataclass(frozen=True)
class Usage:
    """A sum of the ledger; which of the last members are set hangs on what it is summed up by."""
    seconds: Seconds = Seconds()
    quota_gib_hours: float = 0
    used_gib_hours: float = 0
    tenant: int | None = None  # user id
    vgpu: str | None = None
    vgpu_uuid: str | None = None
    pid: int | None = None
    name: str | None = None
    started: float | None = None
    ended: float | None = None  # 0: it runs
    device_uuid: str | None = None
    device_name: str | None = None
    job: str | None = None
    memory_peak: int | None = None  # of the program of a job or a container that held most
    container: str | None = None  # the first 12 letters of its id
    container_name: str | None = None

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> Usage:
        """Of a row of GetUsage."""
        return make(cls, answer, seconds=make(Seconds, answer))


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened to a vGPU."""
    id: int          # rises; never used again
    time: float      # since the epoch
    vgpu: str        # the name that it had then
    vgpu_uuid: str
    event: str       # "created", "suspended", "process-began", ..., or a new one
    message: str     # the same in words
    owner: int = 0   # user id
    device: int = 0  # index, after the event
    pid: int = 0     # of the program that it is about; 0: it is about no program
    bytes: int = 0   # that were moved, or set aside
    seconds: float = 0
