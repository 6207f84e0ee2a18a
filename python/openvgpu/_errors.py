# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: a class for each error of docs/control-protocol.md, and two of our own."""
from __future__ import annotations


class Error(Exception):
    """vgpud has refused, or something has failed.

    name:     as in docs/control-protocol.md, "NoSuchVgpu"
    message:  one line: what and why
    hint:     one line: what to do about it; may be empty
    """

    def __init__(self, message: str, hint: str = "", name: str | None = None):
        super().__init__(f"{message} ({hint})" if hint else message)
        self.name = name or type(self).__name__
        self.message = message
        self.hint = hint


class NoManager(Error):
    """No vgpud answers."""


class ConnectionLost(Error):
    """vgpud went away before it answered: whether a change was made is not known."""


class NoSuchVgpu(Error):
    """No vGPU has that name or UUID."""


class NoSuchDevice(Error):
    """No device has that index or UUID."""


class VgpuExists(Error):
    """The name is in use."""


class InvalidParameter(Error, ValueError):
    """A parameter is malformed or out of range."""


class NoRoom(Error):
    """A device, or a limit, has too little left."""


class PoolTooSmall(Error):
    """A suspend needs more host memory than the pool may take."""


class WrongState(Error):
    """The vGPU is not in the state for that."""


class Busy(Error):
    """Another operation is under way, or processes are still in the vGPU."""


class TimedOut(Error):
    """The programs did not come to rest in time; they run on."""


class NotMovable(Error):
    """A program holds something that cannot be suspended."""


class InUse(Error):
    """The setting cannot be changed while vGPUs are active."""


class Unsupported(Error):
    """The device or the vGPU cannot do that."""


class DriverFailed(Error):
    """A driver call failed; what was begun is undone."""


class GuestLost(Error):
    """A program was lost."""


class PermissionDenied(Error):
    """The caller is neither the owner nor root."""


class MethodNotFound(Error):
    """vgpud is older than what it is asked for."""


class Failed(Error):
    """Anything else; the log of vgpud has more."""


_CLASSES = {error.__name__: error for error in
            (NoSuchVgpu, NoSuchDevice, VgpuExists, InvalidParameter, NoRoom, PoolTooSmall, WrongState, Busy,
             TimedOut, NotMovable, InUse, Unsupported, DriverFailed, GuestLost, PermissionDenied,
             MethodNotFound, Failed)}


def from_answer(error: str, parameters: dict) -> Error:
    """The exception for an error answer; one that a newer vgpud has is an Error with its name."""
    name = error.removeprefix("org.openvgpu.")
    return _CLASSES.get(name, Error)(parameters.get("message") or name, parameters.get("hint", ""), name)
