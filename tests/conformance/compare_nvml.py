#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare what our NVML library and NVIDIA's answer to the same calls, on a machine with a GPU.

    tests/conformance/compare_nvml.py --ours LIBRARY [--theirs LIBRARY] [--output FILE]
            [--manager "VGPUD ARGUMENTS"] [--prepare "COMMAND"] [--guest VGPU] [--explained FILE]
    tests/conformance/compare_nvml.py --replay OUTPUT --explained FILE

Every getter of abi/nvml-header.json is called with good arguments, NULL for each pointer, a wrong handle, a
wrong version, each size up to the needed one, strange numbers, before nvmlInit() and after
nvmlShutdown(). A function that changes something gets only calls that cannot change anything: before
nvmlInit(), and with NULL for the handle. Each library has processes of its own; a call that crashes or
hangs is an answer, too. Differences go to the output as they come; the end has the sums.

--theirs is looked for where drivers put it. --manager starts a vgpud for ours, with a private run and state folder; --prepare runs a command there
("vgpu create train --fb 10G"); --guest asks as a program in this vGPU. Without NVIDIA's driver for ours
("vgpud --simulate 1xH100") ours stands in alone.

A line of an explained file: FUNCTION CALL OURS THEIRS REASON, the first four as shell patterns; the first line
that fits explains. =WORD instead of a function: those that abi/nvml.abi has this word for. Several files count one
behind the other. --replay asks no library: it holds an output of before against the explained files, and prints what
stays open and the lines of the last file that explain nothing.
Exit status: 0 if every difference is explained (and, of --replay, every line explains one), 1 otherwise.
"""
import argparse
import collections
import contextlib
import ctypes
import fnmatch
import functools
import json
import mmap
import os
import pathlib
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time

FACTS = pathlib.Path(__file__).resolve().parents[2] / "abi" / "nvml-header.json"
CODES = {0: "SUCCESS", 1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION",
         5: "ALREADY_INITIALIZED", 6: "NOT_FOUND", 7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER",
         9: "DRIVER_NOT_LOADED", 10: "TIMEOUT", 11: "IRQ_ISSUE", 12: "LIBRARY_NOT_FOUND",
         13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST", 16: "RESET_REQUIRED",
         17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY", 21: "NO_DATA",
         22: "VGPU_ECC_NOT_SUPPORTED", 23: "INSUFFICIENT_RESOURCES", 24: "FREQ_NOT_SUPPORTED",
         25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY", 28: "GPU_NOT_FOUND",
         29: "INVALID_STATE", 30: "RESET_TYPE_NOT_SUPPORTED", 999: "UNKNOWN"}
GETTER = re.compile(r"nvml(Device|Unit|GpuInstance|ComputeInstance|VgpuInstance|VgpuType|System|Gpm)?"
                    r"(Get|Query|Is|OnSame|WorkloadPowerProfileGet)")
LEFT_OUT = {"nvmlSystemGetCPER_v1"}  # takes records away
HANDLES = ("nvmlDevice_t", "nvmlUnit_t", "nvmlGpuInstance_t", "nvmlComputeInstance_t", "nvmlEventSet_t",
           "nvmlGpmSample_t", "nvmlSystemEventSet_t")
COUNT = re.compile(r"count|size|length", re.IGNORECASE)
WRONG_HANDLE = 0x10
PLAIN_VERSIONS = {"nvmlGpmQueryDeviceSupport": 1}  # no word with the size
BUFFER = 1 << 20
HANG_SECONDS = 30
DIFFERENCE = re.compile(r"(\w+) \| (.+) \| ours (.+) \| NVIDIA's ([^|\n]+?)(?: \||$)")
STAGES = ("before init", "running", "after shutdown")


def is_handle(argument):
    return argument[1] in HANDLES


def is_pointer(argument):
    return argument[1] not in HANDLES and argument[1] != "number"


def is_written(argument):
    return is_pointer(argument) and not argument[1].startswith("const")


def size_behind(arguments, index):
    """Of a text: where its size is."""
    behind = index + 1
    if arguments[index][1] == "text" and behind < len(arguments) and COUNT.search(arguments[behind][0]):
        return behind
    return None


def list_calls(name, arguments):
    """(what it is called, changes of the good arguments); a change of None is a NULL."""
    first = arguments[0] if arguments else None
    if not GETTER.match(name) or name in LEFT_OUT:
        if first and (is_handle(first) or first[0] == "vgpuInstance"):
            yield "no handle", {0: 0}
        return
    yield "good", {}
    for i, argument in enumerate(arguments):
        if is_pointer(argument):
            yield f"{argument[0]} NULL", {i: None}
            if argument[1] == "array" and COUNT.search(argument[0]):
                yield f"{argument[0]} 64", {i: ("room", 64)}
                others = {j: None for j, other in enumerate(arguments) if j != i and is_written(other)}
                if others:
                    yield f"{argument[0]} 0, all else NULL", others
                    yield f"{argument[0]} 64, all else NULL", {i: ("room", 64), **others}
        elif is_handle(argument):
            yield f"{argument[0]} NULL", {i: 0}
            yield f"{argument[0]} wrong", {i: WRONG_HANDLE}
        else:
            values = (0, 1, 2, 3, 0xffff) if argument[2] == 4 else (0, 1 << 62)
            for value in values:
                yield f"{argument[0]} {value}", {i: value}
        if len(argument) > 3:
            for word in (0, argument[3] & 0xffffff, argument[3] + 1, argument[3] + (64 << 24)):
                yield f"{argument[0]} version {word:#x}", {i: ("version", word)}
        if size_behind(arguments, i):
            yield f"{argument[0]} of each size", {i: ("each size", size_behind(arguments, i))}
    pointers = {i: None for i, argument in enumerate(arguments) if is_pointer(argument)}
    if len(pointers) > 1:
        yield "every pointer NULL", pointers
    zeros = {i: 0 for i, argument in enumerate(arguments) if not is_pointer(argument)}
    if pointers and zeros:
        yield "all 0", {**pointers, **zeros}


def list_all(facts):
    """(stage, function, call, changes), in an order that both processes share."""
    for stage in STAGES:
        for name, arguments in facts.items():
            if name.startswith(("nvmlInit", "nvmlShutdown")):
                if stage == "before init" and name == "nvmlShutdown":
                    yield stage, name, "good", {}
            elif stage == "running":
                yield from ((stage, name, call, changes) for call, changes in list_calls(name, arguments))
            elif GETTER.match(name) or (arguments and is_handle(arguments[0])):
                yield stage, name, "all 0", {i: None if is_pointer(a) else 0 for i, a in enumerate(arguments)}


class Library:
    """One library in this process."""

    def __init__(self, path, facts, device):
        self.library, self.facts, self.stage = ctypes.CDLL(path), facts, STAGES[0]
        self.buffers = [ctypes.create_string_buffer(BUFFER) for _ in range(8)]
        self.good = {"vgpuTypeId": 1, "vgpuInstance": 1, "nvmlDevice_t": device}

    def enter(self, stage):
        if self.stage == stage:
            return
        if stage != STAGES[0] and self.stage == STAGES[0]:
            print("init", self.library.nvmlInit_v2(), file=sys.stderr)
            self.find_good()
        if stage == STAGES[2]:
            self.library.nvmlShutdown()
        self.stage = stage

    def find_good(self):
        device, count, text = ctypes.c_void_p(), ctypes.c_uint(64), ctypes.create_string_buffer(128)
        numbers = (ctypes.c_uint * 64)()
        if self.good["nvmlDevice_t"] or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) != 0:
            return
        self.good["nvmlDevice_t"] = device.value
        for name, key in (("nvmlDeviceGetSupportedVgpus", "vgpuTypeId"), ("nvmlDeviceGetActiveVgpus", "vgpuInstance")):
            count.value = 64
            if getattr(self.library, name)(device, ctypes.byref(count), numbers) == 0 and count.value:
                self.good[key] = numbers[0]
        self.find_gpu_instance(device)
        for name, key in (("nvmlDeviceGetUUID", "uuid"), ("nvmlDeviceGetSerial", "serial")):
            if getattr(self.library, name)(device, text, 96) == 0:
                self.good[key] = text.value
        if self.library.nvmlDeviceGetPciInfo_v3(device, text) == 0:
            self.good["pciBusId"] = text.raw[36:68].split(b"\0")[0]

    def find_gpu_instance(self, device):
        """The first one of the device, and a compute instance of it, if MIG cuts it."""
        for kind, ask, parent in (("nvmlGpuInstance_t", "nvmlDeviceGetGpuInstances", device),
                                  ("nvmlComputeInstance_t", "nvmlGpuInstanceGetComputeInstances", None)):
            parent = parent or ctypes.c_void_p(self.good.get("nvmlGpuInstance_t"))
            for profile in range(24 if hasattr(self.library, ask) else 0):
                handles, count = (ctypes.c_void_p * 16)(), ctypes.c_uint(16)
                if getattr(self.library, ask)(parent, profile, handles, ctypes.byref(count)) == 0 and count.value:
                    self.good[kind] = handles[0]
                    break

    def good_value(self, arguments, i):
        argument = arguments[i]
        if is_handle(argument):
            return self.good.get(argument[1], 0)
        if argument[0] in self.good:
            return self.good[argument[0]]
        if i and arguments[i - 1][1] == "text" and COUNT.search(argument[0]):
            return 4096
        if argument[0] in ("cpuSetSize", "nodeSetSize"):
            return 16
        return 1 if argument[0] == "valuesCount" else 0

    def fill(self, name, i, change):
        """The bytes of what a pointer leads to."""
        start, arguments = bytearray(64), self.facts[name]
        argument = arguments[i]
        if argument[1] == "const text":
            value = self.good.get(argument[0], b"nothing")
            start[:len(value)] = value
        elif i and arguments[i - 1][1] == "text" and COUNT.search(argument[0]):
            struct.pack_into("I", start, 0, 4096)
        if len(argument) > 3 or name in PLAIN_VERSIONS:
            struct.pack_into("I", start, 0, argument[3] if len(argument) > 3 else PLAIN_VERSIONS[name])
        if change:
            struct.pack_into("I", start, 0, change[1])
        ctypes.memset(self.buffers[i], 0, BUFFER)
        ctypes.memmove(self.buffers[i], bytes(start), len(start))
        return bytes(start)

    def call(self, name, changes):
        arguments, values, before = self.facts[name], [], {}
        for i, argument in enumerate(arguments):
            change = changes.get(i, "good")
            if is_pointer(argument):
                if change is None:
                    values.append(ctypes.c_void_p(None))
                    continue
                before[i] = self.fill(name, i, change if change != "good" else None)
                values.append(ctypes.cast(self.buffers[i], ctypes.c_void_p))
            else:
                value = self.good_value(arguments, i) if change == "good" else change
                values.append(ctypes.c_void_p(value) if is_handle(argument) else
                              ctypes.c_ulonglong(value) if argument[2] == 8 else ctypes.c_uint(value))
        code = getattr(self.library, name)(*values)
        return self.describe(code & 0xffffffff, arguments, before)

    def describe(self, code, arguments, before):
        answer = CODES.get(code, str(code))
        written = [i for i in before if is_written(arguments[i]) and ctypes.string_at(self.buffers[i], 64) != before[i]]
        if code == 7:
            needs = [struct.unpack("I", ctypes.string_at(self.buffers[i], 4))[0] for i in written
                     if COUNT.search(arguments[i][0])]
            answer += f" needs {needs[0]}" if needs else ""
        elif code != 0 and written:
            answer += " and writes " + " ".join(arguments[i][0] for i in written)
        return answer

    def call_each_size(self, name, index, behind):
        """Where the answer changes when the text has room for more."""
        by_reference = is_pointer(self.facts[name][behind])
        runs = []
        for size in range(0, 200):
            answer = self.call(name, {behind: ("room", size) if by_reference else size})
            if not runs or runs[-1][1] != answer:
                runs.append((size, answer))
        return ", ".join(f"from {size} {answer}" for size, answer in runs)

    def answer(self, name, changes):
        if not hasattr(self.library, name):
            return "absent"
        if not self.facts[name] and name != "nvmlShutdown":
            return CODES.get(getattr(self.library, name)(), "?")
        for i, change in changes.items():
            if isinstance(change, tuple) and change[0] == "each size":
                return self.call_each_size(name, i, change[1])
        return self.call(name, changes)


class Progress:
    """How many calls have an answer: shared by a process and its children."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 8)

    @property
    def done(self):
        return struct.unpack("Q", self.memory[:8])[0]

    def tell(self, answers, answer):
        os.write(answers, answer.encode() + b"\n")
        self.memory[:8] = struct.pack("Q", self.done + 1)


def answer_on(library, calls, answers, progress):
    for stage, name, _, changes in calls[progress.done:]:
        signal.alarm(HANG_SECONDS)
        library.enter(stage)
        progress.tell(answers, library.answer(name, changes))


def describe_end(code):
    if code >= 0:
        return f"ends the process with {code}"
    return "hangs" if code == -signal.SIGALRM else f"crashes (signal {-code})"


def work(path, facts, device):
    """Answers one call after the other, on standard output. Whatever the library prints goes elsewhere.

    A child does; another one goes on behind a call that ends it. Each initialises the library itself, because in
    a child of the process that did so NVIDIA's answers UNINITIALIZED.
    """
    answers = os.dup(1)
    os.dup2(2, 1)
    library, calls, progress = Library(path, facts, device), list(list_all(facts)), Progress()
    while progress.done < len(calls):
        child = os.fork()
        if child == 0:
            answer_on(library, calls, answers, progress)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if progress.done < len(calls):
            progress.tell(answers, describe_end(code))


def ask(path, options, environment, log):
    """The answers of a library, which has a process of its own."""
    command = [sys.executable, __file__, "--work", path,
               "--facts", options.facts, "--only", options.only, "--device", str(options.device)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process:
        for line in process.stdout:
            yield line.rstrip("\n")


def list_exports(path):
    """The functions that an ELF file of 64 bits exports."""
    data = open(path, "rb").read()
    at, size, n = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + size * i) for i in range(n)]
    for section in sections:
        if section[1] != 11:  # SHT_DYNSYM
            continue
        names = sections[section[6]][4]
        for i in range(section[5] // 24):
            name, info, _, index = struct.unpack_from("<IBBH", data, section[4] + 24 * i)
            if index and info & 15 == 2:
                start = names + name
                yield data[start:data.index(b"\0", start)].decode()


@contextlib.contextmanager
def manager_of(options, log):
    """The environment for ours, with a manager if one is wanted."""
    environment = dict(os.environ)
    if options.guest:
        environment["OPENVGPU_VGPU"] = options.guest
    if not options.manager:
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix="compare-nvml-") as folder:
        command = shlex.split(options.manager)
        environment.update(OPENVGPU_RUN=f"{folder}/run", OPENVGPU_STATE=f"{folder}/state",
                           PATH=os.path.dirname(os.path.abspath(command[0])) + ":" + os.environ["PATH"])
        for name in ("run", "state"):
            os.mkdir(f"{folder}/{name}")
        manager = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            deadline = time.monotonic() + 120
            while subprocess.run(["vgpu", "ls"], env=environment, stdout=log, stderr=log).returncode != 0:
                if manager.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} does not start; see its lines in the log")
            if options.prepare:
                subprocess.run(shlex.split(options.prepare), check=True, env=environment, stdout=log, stderr=log)
            yield environment
        finally:
            manager.terminate()
            manager.wait()


def find_theirs():
    """Where a driver or a container's runtime puts NVIDIA's library."""
    for folder in ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/nvidia",
                   "/usr/lib/x86_64-linux-gnu/nvidia/current"):
        path = os.path.join(folder, "libnvidia-ml.so.1")
        if os.path.exists(path):
            return path
    return sys.exit("NVIDIA's library is not here; name it with --theirs")


def read_explanations(path):
    fields = [shlex.split(line, comments=True) for line in open(path)]
    return [(one[:4], " ".join(one[4:])) for one in fields if one]


def read_all_explanations(options):
    return [row for path in options.explained for row in read_explanations(path)]


@functools.cache
def read_words():
    """What abi/nvml.abi says of each function."""
    lines = [line.split() for line in open(FACTS.with_name("nvml.abi")) if line.startswith("nvml")]
    return {line[0]: line[1] for line in lines}


def is_of(function, pattern):
    if pattern.startswith("="):
        return read_words().get(function) == pattern[1:]
    return fnmatch.fnmatchcase(function, pattern)


def find_row(rows, difference):
    for row in rows:
        if is_of(difference[0], row[0][0]) and all(map(fnmatch.fnmatchcase, difference[1:], row[0][1:])):
            return row
    return None


def explain(rows, *difference):
    row = find_row(rows, difference)
    return row[1] if row else ""


def replay(path, options):
    """Prints what of an output is open, and what of the last explained file explains nothing of it."""
    rows, used, n_differences, n_open = read_all_explanations(options), [], 0, 0
    for line in open(path):
        found = DIFFERENCE.match(line)
        if not found:
            continue
        n_differences += 1
        row = find_row(rows, found.groups())
        used.append(row)
        if not row:
            n_open += 1
            print(line, end="")
    unused = [row for row in read_explanations(options.explained[-1]) if row not in used]
    for patterns, reason in unused:
        print(f"explains nothing: {shlex.join(patterns)} {reason}")
    print(f"{n_differences} differences: {n_differences - n_open} explained, {n_open} open")
    return 1 if n_open or unused else 0


def compare(options, facts, output, log):
    calls, rows = list(list_all(facts)), read_all_explanations(options)
    kinds, n_same, n_explained, n_open = collections.Counter(), 0, 0, 0
    for name in sorted(set(list_exports(options.theirs)) - set(list_exports(options.ours))):
        print(f"only NVIDIA's library has {name}", file=output, flush=True)
    with manager_of(options, log) as environment:
        both = zip(calls, ask(options.ours, options, environment, log),
                   ask(options.theirs, options, dict(os.environ), log), strict=True)
        for (stage, name, call, _), ours, theirs in both:
            if ours == theirs:
                n_same += 1
                continue
            call = call if stage == "running" else stage
            reason = explain(rows, name, call, ours, theirs)
            n_explained += bool(reason)
            n_open += not reason
            kinds[ours.split(" needs")[0], theirs.split(" needs")[0]] += 1
            print(f"{name} | {call} | ours {ours} | NVIDIA's {theirs}" + (f" | {reason}" if reason else ""),
                  file=output, flush=True)
    print("", *(f"{n:5} times ours {ours}, NVIDIA's {theirs}" for (ours, theirs), n in kinds.most_common()),
          f"{len(calls)} calls of {len(facts)} functions: {n_same} same, {n_explained} explained, {n_open} open",
          sep="\n", file=output, flush=True)
    return 0 if n_open == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours")
    parser.add_argument("--theirs")
    parser.add_argument("--output", default="-")
    parser.add_argument("--manager")
    parser.add_argument("--prepare")
    parser.add_argument("--guest")
    parser.add_argument("--explained", action="append", default=[])
    parser.add_argument("--replay", help="an output of before")
    parser.add_argument("--facts", default=str(FACTS))
    parser.add_argument("--only", default="*", help="a pattern of functions")
    parser.add_argument("--device", type=int, default=0, help="a handle, instead of that of device 0")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    facts = {name: arguments for name, arguments in json.load(open(options.facts))["functions"].items()
             if fnmatch.fnmatchcase(name, options.only)}
    if options.work:
        work(options.work, facts, options.device)
        return 0
    if options.replay and not options.explained:
        parser.error("--replay needs --explained")
    if options.replay:
        return replay(options.replay, options)
    if not options.ours:
        parser.error("--ours is needed")
    options.theirs = options.theirs or find_theirs()
    with contextlib.ExitStack() as stack:
        output = sys.stdout if options.output == "-" else stack.enter_context(open(options.output, "w"))
        log = stack.enter_context(open(options.output + ".log" if options.output != "-" else os.devnull, "w"))
        return compare(options, facts, output, log)


if __name__ == "__main__":
    sys.exit(main())
