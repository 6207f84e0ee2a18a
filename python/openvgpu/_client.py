# SPDX-License-Identifier: Apache-2.0
"""A client of vgpud."""
from __future__ import annotations

import contextlib
import datetime
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _errors
from ._connection import Connection, find_run_directory
from ._objects import (Account, Device, Event, Info, Pool, Progress, Report, Usage, Utilization, Vgpu, make,
                       parse_size)

Time = "float | datetime.datetime"

# Put before what is there, so that a program that needs its own keeps it.
_LISTS = ("LD_PRELOAD", "LD_LIBRARY_PATH")


class Client:
    """Asks one vgpud. It connects when it is first needed, and again after vgpud went away.

    A client serves one call after another; threads that must not wait for each other have their own.

    run_directory:  of vgpud; None: as the command vgpu finds it
    timeout:        seconds for an answer; operations take as long as they take
    """

    def __init__(self, run_directory: str | os.PathLike[str] | None = None, timeout: float = 60.0):
        self.run_directory = os.fspath(run_directory) if run_directory else find_run_directory()
        self._is_found = not run_directory and "OPENVGPU_RUN" not in os.environ
        self._timeout = timeout
        self._connection: Connection | None = None
        self._pid = 0  # whose connection it is: a child of fork() makes its own
        self._lock = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; a later call makes a new one."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection = None

    def call(self, method: str, *, progress: Callable[[dict[str, Any]], None] | None = None,
             is_long: bool = False, **parameters: Any) -> dict[str, Any]:
        """A call of docs/control-protocol.md as it is; parameters that are None are left out."""
        given = {name: value for name, value in parameters.items() if value is not None}
        with self._lock:
            if not self._connection or self._pid != os.getpid():
                self._connection = Connection(self.run_directory, self._timeout, self._is_found)
                self._pid = os.getpid()
            try:
                return self._connection.call(method, given, progress, is_long)
            except BaseException as error:
                # After an answer that says no, the connection is as good as before.
                if not isinstance(error, _errors.Error) or isinstance(error, _errors.ConnectionLost):
                    self._connection.close()
                    self._connection = None
                raise

    # What there is.

    def info(self) -> Info:
        """What vgpud says of itself."""
        answer = self.call("GetInfo")
        return make(Info, answer, pool=make(Pool, answer.get("pool", {})))

    def devices(self) -> list[Device]:
        """All devices."""
        return [make(Device, device) for device in self.call("ListDevices")["devices"]]

    def vgpus(self) -> list[Vgpu]:
        """All vGPUs."""
        return [Vgpu.from_answer(vgpu) for vgpu in self.call("ListVgpus")["vgpus"]]

    def vgpu(self, name: str) -> Vgpu:
        """The vGPU of that name or UUID, as it is now."""
        return Vgpu.from_answer(self.call("ListVgpus", name=name)["vgpus"][0])

    # Creating and removing.

    def create(self, name: str | None = None, frame_buffer: int | str = 0, *,
               device: int | str | None = None, share: int | None = None,
               owner: int | None = None, idle_after: float | None = None,
               idle_keep_context: bool | None = None, swap_class: str | None = None,
               devices: int | None = None, pool_group: str | None = None) -> Vgpu:
        """Create a vGPU, which stays until it is removed.

        name:          None: vgpud makes one up
        frame_buffer:  its quota of GPU memory: bytes, or "40G"
        device:        index, UUID or beginning of a UUID; several: "0,1"; None: where most is left
        share:         percent of the device's time; for root
        owner:         user id; None: the caller's own; for root
        idle_after:    seconds without work, then it leaves its device; None: never
        idle_keep_context:  then only its memory leaves
        swap_class:    "batch" (as without it) or "interactive": how it waits for room
        devices:       so many devices, linked ones if possible, with the quota on each; None: one
        pool_group:    those of one group keep equal memory once; None: those of the owner; for root
        """
        return Vgpu.from_answer(self.call(
            "CreateVgpu", name=name, frame_buffer=parse_size(frame_buffer), share=share, owner=owner,
            idle_after=idle_after, idle_keep_context=idle_keep_context, swap_class=swap_class,
            device=None if device is None else str(device), devices=devices, pool_group=pool_group)["vgpu"])

    def remove(self, name: str) -> Vgpu:
        """Remove a vGPU that no program runs in; what it was."""
        return Vgpu.from_answer(self.call("RemoveVgpu", name=name)["vgpu"])

    def rename(self, name: str, to: str) -> Vgpu:
        """Give a vGPU another name; its programs run on."""
        return Vgpu.from_answer(self.call("RenameVgpu", name=name, to=to)["vgpu"])

    def resize(self, name: str, frame_buffer: int | str) -> Vgpu:
        """Give a vGPU another quota of GPU memory: bytes, or "40G"; its programs run on."""
        return Vgpu.from_answer(self.call("ResizeVgpu", name=name, frame_buffer=parse_size(frame_buffer))["vgpu"])

    @contextlib.contextmanager
    def created(self, name: str | None = None, frame_buffer: int | str = 0, **options: Any) -> Iterator[Vgpu]:
        """A vGPU for the length of a with block, at whose end its programs must have ended.

        Parameters are those of create().
        """
        vgpu = self.create(name, frame_buffer, **options)
        try:
            yield vgpu
        finally:
            self.remove(vgpu.uuid)

    def set_share(self, name: str, percent: int) -> None:
        """Give a vGPU a share of its device's time, 1 to 100 percent; 0: none. For root."""
        self.call("SetVgpuShare", name=name, percent=percent)

    def set_idle(self, name: str, after: float | None, keep_context: bool = False) -> Vgpu:
        """Let a vGPU leave its device after so many seconds without work; None: never."""
        return Vgpu.from_answer(self.call("SetVgpuIdle", name=name, idle_after=after,
                                          idle_keep_context=keep_context)["vgpu"])

    def set_class(self, name: str, swap_class: str) -> Vgpu:
        """Say how a vGPU waits for room on an overcommitted device: "batch" or "interactive"."""
        return Vgpu.from_answer(self.call("SetVgpuClass", name=name, swap_class=swap_class)["vgpu"])

    # Programs.

    def environment(self, name: str) -> dict[str, str]:
        """The variables with which a program runs in the vGPU: those of this process, and vgpud's."""
        environment = dict(os.environ)
        for variable, value in self.call("PrepareRun", name=name)["environment"].items():
            old = environment.get(variable, "")
            if variable in _LISTS and old and old.split(":")[0] != value:
                value = f"{value}:{old}"
            elif variable in _LISTS and old:
                value = old
            environment[variable] = value
        return environment

    def start(self, name: str, arguments: Sequence[str | os.PathLike[str]],
              **options: Any) -> subprocess.Popen[Any]:
        """Start a program in the vGPU; options are those of subprocess.Popen, but for env."""
        return subprocess.Popen(arguments, env=self.environment(name), **options)

    # Operations.

    def _operate(self, method: str, progress: Callable[[Progress], None] | None,
                 **parameters: Any) -> Report:
        tell = (lambda said: progress(make(Progress, said))) if progress else None
        answer = self.call(method, progress=tell, is_long=True, **parameters)
        return make(Report, answer, vgpu=Vgpu.from_answer(answer["vgpu"]))

    def suspend(self, name: str, *, keep_context: bool = False, group: bool = False,
                timeout: float | None = None, verify: bool = False, pre_copy: bool = False,
                progress: Callable[[Progress], None] | None = None) -> Report:
        """Take a vGPU off its device; its programs wait in their next GPU call.

        keep_context:  move only the memory: quicker both ways; the CUDA contexts stay
        group:         also all vGPUs whose processes share memory with it
        timeout:       seconds for its programs to come to rest; None: vgpud's choice
        verify:        compare every byte that has not changed since the last suspend
        pre_copy:      copy while its programs run, then stop them for what they changed
        progress:      called meanwhile, in this thread; must not use this client
        """
        return self._operate("SuspendVgpu", progress, name=name, timeout=timeout,
                             keep_context=keep_context or None, group=group or None,
                             verify=verify or None, pre_copy=pre_copy or None)

    def resume(self, name: str, *, device: int | str | None = None, group: bool = False,
               timeout: float | None = None,
               progress: Callable[[Progress], None] | None = None) -> Report:
        """Put a suspended vGPU on a device; None: the one that it was on. Its programs go on.

        group: also all vGPUs whose processes share memory with it
        """
        return self._operate("ResumeVgpu", progress, name=name, timeout=timeout, group=group or None,
                             device=None if device is None else str(device))

    def migrate(self, name: str, device: int | str, *, timeout: float | None = None,
                progress: Callable[[Progress], None] | None = None) -> Report:
        """Move a vGPU to another device while its programs run."""
        return self._operate("MigrateVgpu", progress, name=name, timeout=timeout, device=str(device))

    @contextlib.contextmanager
    def suspended(self, name: str, *, keep_context: bool = False, timeout: float | None = None,
                  device: int | str | None = None) -> Iterator[Report]:
        """A vGPU is off its device for the length of a with block, and resumed at its end.

        It is resumed also when the block raises. What suspend() and resume() refuse is raised: WrongState
        for a vGPU that is suspended already, or that has no program.
        """
        report = self.suspend(name, keep_context=keep_context, timeout=timeout)
        try:
            yield report
        finally:
            self.resume(report.vgpu.uuid, device=device, timeout=timeout)

    # What is used.

    def utilization(self) -> Utilization:
        """How busy devices, vGPUs and programs are, as of now."""
        return Utilization.from_answer(self.call("GetUtilization"))

    def accounting(self, name: str) -> list[Account]:
        """What each program that runs or ran in a vGPU has used."""
        return [Account.from_answer(record)
                for record in self._pages("GetAccounting", "records", name=name)]

    def usage(self, since: Time, until: Time | None = None, by: str = "vgpu") -> list[Usage]:
        """Sums of the ledger, by "tenant", "vgpu", "process", "device", "job" or "container".

        Root sees those of all users.
        Times are seconds since the epoch, or datetime objects; whole minutes count.
        """
        return [Usage.from_answer(row) for row in
                self._pages("GetUsage", "rows", since=_seconds(since),
                            until=None if until is None else _seconds(until), by=by)]

    def events(self, name: str | None = None, *, after: int = 0, since: Time = 0) -> list[Event]:
        """What happened to a vGPU that is there, or was; None: to all. The earliest event comes first.

        after:  the id of the last event that is known: only later ones
        since:  only events from then on
        """
        events: list[Event] = []
        while True:
            answer = self.call("ListEvents", name=name, after=after or None, since=_seconds(since) or None)
            events += [make(Event, event) for event in answer["events"]]
            if not answer.get("more") or not answer["events"]:
                return events
            after = events[-1].id

    def _pages(self, method: str, key: str, **parameters: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while True:
            answer = self.call(method, offset=len(rows) or None, **parameters)
            rows += answer[key]
            if not answer.get("more") or not answer[key]:
                return rows


def _seconds(time: Time) -> float:
    return time.timestamp() if isinstance(time, datetime.datetime) else float(time)
