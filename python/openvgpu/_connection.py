# SPDX-License-Identifier: Apache-2.0
"""The control protocol of vgpud (docs/control-protocol.md): one JSON object a message, a NUL behind it."""
from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from . import _errors

PREFIX = "org.openvgpu."
SYSTEM_DIRECTORY = "/run/openvgpu"


def find_run_directory() -> str:
    """Where a vgpud is: $OPENVGPU_RUN, that of the machine, or the user's own."""
    given = os.environ.get("OPENVGPU_RUN")
    if given:
        return given
    if os.geteuid() == 0 or os.path.exists(f"{SYSTEM_DIRECTORY}/control.sock"):
        return SYSTEM_DIRECTORY
    session = os.environ.get("XDG_RUNTIME_DIR")
    return f"{session}/openvgpu" if session else f"/tmp/openvgpu-{os.geteuid()}"


class Connection:
    """One connection; after an error of its own it is closed."""

    def __init__(self, run_directory: str, timeout: float, is_found: bool):
        self.path = os.path.join(run_directory, "control.sock")
        self._buffer = b""
        self._timeout = timeout
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(self.path)
        except PermissionError as error:
            self.close()
            raise _errors.PermissionDenied(f"no permission to talk to vgpud at {self.path}",
                                           "vgpud --group says who may use it") from error
        except ConnectionRefusedError as error:
            self.close()
            raise _errors.NoManager(f"the vgpud at {self.path} has ended",
                                    "its vGPUs are kept and their programs run on: start it again, with the options "
                                    "that it had") from error
        except OSError as error:
            self.close()
            raise _errors.NoManager(f"no vgpud answers at {self.path}",
                                    "start it, or set OPENVGPU_RUN to its run directory") from error
        # Somebody else could have made a folder where nobody named one.
        if is_found and not self.is_trusted():
            self.close()
            raise _errors.PermissionDenied(
                f"the process that answers at {self.path} belongs neither to root nor to you",
                "if you trust that user as yourself, set OPENVGPU_RUN to that folder")

    def close(self) -> None:
        """May be called twice."""
        self._socket.close()

    def is_trusted(self) -> bool:
        """Does root answer, or the user's own program?"""
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", credentials)[1] in (0, os.geteuid())

    def call(self, method: str, parameters: dict[str, Any],
             progress: Callable[[dict[str, Any]], None] | None, is_long: bool) -> dict[str, Any]:
        """The answer to a call; progress() gets what comes before it."""
        message = {"method": PREFIX + method, "parameters": parameters}
        if progress:
            message["more"] = True
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(json.dumps(message).encode() + b"\0")
            self._socket.settimeout(None if is_long else self._timeout)
            while True:
                answer = self._receive()
                if not answer.get("continues"):
                    break
                if progress:
                    progress(answer["parameters"])
        except TimeoutError as error:
            self.close()
            raise _errors.ConnectionLost(f"vgpud does not answer {method} for {self._timeout:g} s",
                                         "look at its log") from error
        except OSError as error:
            self.close()
            raise _errors.ConnectionLost(f"vgpud went away before it answered {method}",
                                         "when it runs again, look at its vGPUs") from error
        except BaseException:
            self.close()  # in the middle of an answer, or before it: the next call must not get it
            raise
        if "error" in answer:
            raise _errors.from_answer(answer["error"], answer.get("parameters", {}))
        return answer.get("parameters", {})

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionResetError("the end of the connection")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)
