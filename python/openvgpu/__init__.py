# SPDX-License-Identifier: Apache-2.0
"""OpenVGPU: virtual GPUs that are shared, suspended, resumed and moved while their programs run.

The functions of this module ask the vgpud of the machine, which the command vgpu asks too:

    >>> import openvgpu
    >>> openvgpu.create("train", "40G")
    >>> openvgpu.start("train", ["python3", "train.py"])
    >>> with openvgpu.suspended("train"):
    ...     use_the_whole_gpu()
    >>> for vgpu in openvgpu.vgpus():
    ...     print(vgpu.name, vgpu.state, vgpu.frame_buffer_used)

Each is a method of Client with the same name and the same parameters; a Client is for a vgpud with another
run directory, or for a thread of its own. What goes wrong is an Error, of a class for each kind.

Sizes are bytes, or texts such as "40G"; times are seconds. Nothing but Python's standard library is needed.
"""
import threading

from ._client import Client
from ._errors import (Busy, ConnectionLost, DriverFailed, Error, Failed, GuestLost, InUse, InvalidParameter,
                      MethodNotFound, NoManager, NoRoom, NoSuchDevice, NoSuchVgpu, NotMovable,
                      PermissionDenied, PoolTooSmall, TimedOut, Unsupported, VgpuExists, WrongState)
from ._objects import (Account, Device, DeviceUse, Event, Info, Part, Percents, Pool, Process, ProcessUse, Progress, Report,
                       Seconds, Usage, Utilization, Vgpu, VgpuUse, parse_size)

__all__ = ["Account", "Busy", "Client", "ConnectionLost", "Device", "DeviceUse", "DriverFailed", "Error", "Event",
           "Failed", "GuestLost", "InUse", "Info", "InvalidParameter", "MethodNotFound", "NoManager", "NoRoom",
           "NoSuchDevice", "NoSuchVgpu", "NotMovable", "Part", "Percents", "PermissionDenied", "Pool", "PoolTooSmall",
           "Process", "ProcessUse", "Progress", "Report", "Seconds", "TimedOut", "Unsupported", "Usage",
           "Utilization", "Vgpu", "VgpuExists", "VgpuUse", "WrongState", "accounting", "create", "created",
           "devices", "environment", "events", "info", "migrate", "parse_size", "remove", "rename", "resize", "resume", "set_class", "set_idle", "set_share", "start",
           "suspend", "suspended", "usage", "utilization", "vgpu", "vgpus"]

_local = threading.local()


def _default() -> Client:
    """A client of the calling thread, made when it is first needed."""
    if not hasattr(_local, "client"):
        _local.client = Client()
    return _local.client


def _of_default(name):
    method = getattr(Client, name)

    def function(*arguments, **keywords):
        return getattr(_default(), name)(*arguments, **keywords)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = method.__doc__
    function.__wrapped__ = method  # for help() and inspect.signature()
    return function


accounting = _of_default("accounting")
create = _of_default("create")
created = _of_default("created")
devices = _of_default("devices")
environment = _of_default("environment")
events = _of_default("events")
info = _of_default("info")
migrate = _of_default("migrate")
remove = _of_default("remove")
rename = _of_default("rename")
resize = _of_default("resize")
resume = _of_default("resume")
set_class = _of_default("set_class")
set_idle = _of_default("set_idle")
set_share = _of_default("set_share")
start = _of_default("start")
suspend = _of_default("suspend")
suspended = _of_default("suspended")
usage = _of_default("usage")
utilization = _of_default("utilization")
vgpu = _of_default("vgpu")
vgpus = _of_default("vgpus")
