# SPDX-License-Identifier: Apache-2.0
"""After the run: nothing may be lost, stuck, held or leaked."""
import contextlib
import itertools
import json
import os
import re
import sqlite3

from wait import GaveUp, until
from wire import Refused


def describe(guest):
    """Where the threads of a guest are, to be read when it does not end."""
    lines = [guest.context()]
    for thread in sorted(os.listdir(f"/proc/{guest.pid}/task")) if guest.is_alive() else ():
        words = []
        for name in ("comm", "wchan", "syscall"):
            with contextlib.suppress(OSError), open(f"/proc/{guest.pid}/task/{thread}/{name}", encoding="ascii") as file:
                words.append(file.read().strip())
        lines.append(f"  thread {thread}: {' '.join(words)}")
    return "\n".join(lines)


def bring_back(world, vgpu):
    """True when its programs run; False when there is no room yet, also for one that has failed for want of it."""
    try:
        state = world.host.get(vgpu.name)["state"]
    except Refused as refused:
        if not vgpu.may_be_gone or any(program.is_alive() for program in vgpu.programs):
            world.complain(f"{vgpu.name} is lost: {refused}")
        return True
    if state in ("running", "idle"):
        return True
    if state not in ("suspended", "evicted"):
        return False
    for place in itertools.combinations(map(str, range(world.options.devices)), vgpu.n_devices):
        code, text = world.host.try_vgpu("resume", vgpu.name, "--device", ",".join(place))
        if code == 0:
            return True
        vgpu.last_refusal = text.strip()
    return False


def end_programs(world, vgpu):
    """Each goes on for two steps, compares all of its memory and ends."""
    world.reap(vgpu)
    for program in list(vgpu.programs):
        try:
            if program.was_killed:
                program.guest.kill()
            else:
                program.wait_ready()
                program.guest.finish()
        except AssertionError as error:
            if not program.was_killed and program.was_ready():
                world.complain(f"{vgpu.name}: {error}\n{describe(program.guest)}")
                program.was_killed = True  # it has been judged
            world.kill_program(program)
            program.guest.kill()
    world.reap(vgpu)


def settle(world, stranger):
    """
    All vGPUs run again and end, as far as there is room for them one after another.

    One whose programs have filled what the stranger left, to the last MiB, does not come back beside him: a restore
    wants a reserve for each process that its first start did not. He goes, and then it must come back.
    """
    left = world.all_vgpus()

    def any_ended():  # one has to end before the next has room
        for vgpu in list(left):
            if bring_back(world, vgpu):
                end_programs(world, vgpu)
                remove(world, vgpu.name)
                left.remove(vgpu)
                return True
        return False

    def bring_back_all():
        with contextlib.suppress(GaveUp):
            while left:
                until(any_ended, "a vGPU to come back")
    bring_back_all()
    if stranger:
        world.count("vGPUs that came back only when the stranger had gone", len(left))
        stranger.end_input()
        bring_back_all()
    for vgpu in left:
        world.complain(f"{vgpu.name} is stuck: {world.host.get(vgpu.name)['state']}, "
                       f"{getattr(vgpu, 'last_refusal', '')}")
        for program in vgpu.programs:
            world.kill_program(program)
        world.reap(vgpu)
    for name in world.host.names():  # of which the answer was lost
        remove(world, name)


def remove(world, name):
    def gone():
        return world.host.try_vgpu("rm", name)[0] in (0, 3)
    try:
        until(gone, f"{name} to be removed")
    except GaveUp as error:
        world.complain(str(error))


def check_rows(world):
    """No row of the store is of a vGPU that is gone. Only while vgpud does not run: it locks the store."""
    for name in os.listdir(world.host.state_directory):
        if not name.endswith(".db"):
            continue
        with contextlib.closing(sqlite3.connect(os.path.join(world.host.state_directory, name))) as store:
            tables = [row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type='table'")]
            if "operation" not in tables:  # the ledger, which keeps what was
                continue
            for table in tables:
                if table in ("instance", "process", "memory", "operation", "extent"):
                    rows = store.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                    if rows:
                        world.complain(f"{rows} rows are left in {name}, table {table}")


FATAL = ["it is lost: the driver", "taken for unchanged", "event=protocol-broken", "ERROR: ", "runtime error: "]


def check_log(world, log):
    """What nobody else would tell: a process may be lost and then be killed."""
    for line in log.splitlines():
        if any(words in line for words in FATAL):
            world.complain(line)


# What the run directory has for ever: the socket of the keeper and the simulated driver's files, while they run.
STAYS = r"control\.sock|gate\.sock|state-page|vgpud\.pid"
STAYS_WHILE_IT_RUNS = STAYS + r"|keeper\.sock|cdi|sim(/(host|slots|lock|(turn|engine)-\d+|memory|services(/\d+)?))?"


def list_left(host, stays):
    found = [os.path.relpath(os.path.join(folder, name), host.run_directory)
             for folder, folders, files in os.walk(host.run_directory) for name in folders + files]
    return sorted(name for name in found if not re.fullmatch(stays, name))


def check_files(world, stays):
    """No file of a vGPU that is gone, of a daemon that was killed, or half made; the keeper ends a moment after vgpud."""
    try:
        until(lambda: not list_left(world.host, stays), "the run directory to be empty")
    except GaveUp:
        world.complain(f"left in the run directory: {list_left(world.host, stays)[:9]}")


def check_doors(world):
    """The CDI file is written a moment later, and names what has a door."""
    def read_names():
        with open(world.host.cdi_path, encoding="utf-8") as file:
            return [device["name"] for device in json.load(file)["devices"]]

    until(lambda: not os.listdir(os.path.join(world.host.run_directory, "cdi")), "the doors of all vGPUs to go")
    until(lambda: not read_names(), "the CDI file to name no vGPU", context=lambda: str(read_names()))
    left = set(os.listdir(os.path.dirname(world.host.cdi_path))) - {os.path.basename(world.host.cdi_path)}
    if left:
        world.complain(f"left beside the CDI file: {left}")


def list_shared_memory(host):
    """What of this host's simulated devices is in /dev/shm: each folder has a link to its host."""
    found = []
    for name in os.listdir("/dev/shm"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/dev/shm/{name}/.host").startswith(host.directory + "/"):
                found.append(name)
    return found


def check_leaks(world, fds_before):
    """Called when no vGPU is left."""
    host = world.host
    try:
        host.wait_clean()
        check_doors(world)
        check_files(world, STAYS_WHILE_IT_RUNS)
        if world.options.simulate and len(list_shared_memory(host)) > 1:
            world.complain(f"left in shared memory: {list_shared_memory(host)}")
        if fds_before is not None:
            until(lambda: count_fds(host) <= fds_before + 8,
                  f"vgpud to have {fds_before} descriptors again, it has {count_fds(host)}")
        host.stop()
        check_files(world, STAYS + "|cdi")
        check_rows(world)
        host.start()
        host.close()
    except AssertionError as error:
        world.complain(f"left behind: {str(error)[:200]} ... {str(error)[-1500:]}")
    left = list_shared_memory(host)
    if left:
        world.complain(f"left in shared memory: {left[:5]}")


def count_fds(host):
    """Of vgpud, but for the slabs that the pool keeps ready."""
    folder = f"/proc/{host.manager.pid}/fd"
    names = []
    for number in os.listdir(folder):
        try:
            names.append(os.readlink(f"{folder}/{number}"))
        except FileNotFoundError:
            pass
    return sum("openvgpu-slab" not in name for name in names)
