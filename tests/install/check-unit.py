#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The units of systemd: what our recovery rests on, and how exposed systemd finds the service.

usage: check-unit.py SERVICE SOCKET
"""
import configparser
import pathlib
import shutil
import subprocess
import sys

# Tenths, of 100. What keeps it there: CUDA, and guests that are other users' processes.
EXPOSURE_MAX = 50


class Options(dict):
    """An option that is given more than once is a list."""

    def __setitem__(self, key, value):
        if key in self and isinstance(value, list):
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def read(path):
    parser = configparser.ConfigParser(strict=False, dict_type=Options, interpolation=None,
                                       delimiters="=")
    parser.optionxform = str
    parser.read_string(pathlib.Path(path).read_text())
    return {section: dict(parser[section]) for section in parser.sections()}


def main(service_path, socket_path):
    service, socket = read(service_path)["Service"], read(socket_path)["Socket"]
    assert service["KillMode"] == "process", "the keeper must outlive a manager that is killed"
    assert service["RuntimeDirectoryPreserve"] == "yes", "guests find the next manager there"
    assert service["Restart"] == "on-failure" and int(service["WatchdogSec"]) > 0
    assert service["Type"] == "notify", "the watchdog begins with READY=1"
    assert service["ExecReload"] == '/bin/sh -c "kill -HUP $MAINPID"', "vgpud.conf(5) promises it"
    assert service["RestartPreventExitStatus"] == "2", "a wrong configuration is not tried again"
    assert service["Sockets"] == pathlib.Path(socket_path).name
    assert socket["Service"] == pathlib.Path(service_path).name
    run = "/run/" + service["RuntimeDirectory"].split()[0]
    assert socket["ListenStream"] == run + "/control.sock"
    assert socket["ListenSequentialPacket"] == run + "/gate.sock"
    if not shutil.which("systemd-analyze"):
        sys.exit(77)
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                           f"--threshold={EXPOSURE_MAX}", service_path],
                          capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        sys.exit(77)
    print(done.stdout.strip().splitlines()[-1], done.stderr)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
