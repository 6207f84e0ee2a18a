# SPDX-License-Identifier: Apache-2.0
"""short_lived.py RUN-DIRECTORY VGPU COUNT: processes that join the vGPU and end, one after another."""
import os
import sys

from wire import Gate


def live(run_directory, vgpu):
    """Connect, join, be welcomed, die. Returns the exit status."""
    with Gate(os.path.join(run_directory, "gate.sock")) as gate:
        gate.join(vgpu)
        message, _, _ = gate.receive_message()
        return 0 if message == Gate.WELCOME else 1


def main():
    run_directory, vgpu, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(live(run_directory, vgpu))
        _, status = os.waitpid(pid, 0)
        if status:
            sys.exit(f"process {pid} was not let in: {status}")
        print(pid)


main()
