#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when hash.ptx does not compute what hash.c does. No GPU: this interprets the text, thread by thread.

usage: run_ptx.py HASH.PTX PRINT-HASH

It knows the instructions that hash.ptx has and no others. A thread runs until it waits for the others, at a
barrier or in a shuffle.
"""
import operator
import random
import re
import struct
import subprocess
import sys
import tempfile

THREADS, WARP = 512, 32
MASK = {32: 2**32 - 1, 64: 2**64 - 1}
MEMORY = {"blocks": 1 << 40, "key": 1 << 41, "values": 1 << 42}
PLAIN = {"add": operator.add, "sub": operator.sub, "and": operator.and_, "or": operator.or_, "shl": operator.lshift,
         "shr": operator.rshift}
TESTS = {"lt": operator.lt, "ge": operator.ge, "gt": operator.gt, "ne": operator.ne}


class Machine:
    def __init__(self, text):
        self.code, self.labels, self.shared_at, size = [], {}, {}, 0
        for name, n in re.findall(r"\.shared \.align 16 \.b8 (\w+)\[(\d+)\]", text):
            self.shared_at[name] = size
            size += int(n)
        self.shared = bytearray(size)
        body = text[text.index(".maxntid"):]
        for line in re.sub(r"//.*", "", body[body.index("{"):]).splitlines():
            label = re.match(r"(\w+):$", line.strip())
            found = re.match(r"(?:@(%\w+)\s+)?([a-z][\w.]+)\s*(.*);$", line.strip())
            if label:
                self.labels[label[1]] = len(self.code)
            elif found and not line.strip().startswith(".reg"):
                operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", found[3])
                words = found[2].split(".")
                if words[0] in ("ld", "st") and words[1] != "param":
                    operands = self.parse_access(words, operands)
                self.code.append((found[1], words, operands))

    @staticmethod
    def parse_access(words, operands):
        """The registers, the one with the address, the offset, and how the bytes are packed."""
        names, where = operands if words[0] == "ld" else reversed(operands)
        names = re.findall(r"%\w+", names)
        base, _, offset = where.strip("[]").partition(" + ")
        return names, base, int(offset or 0), struct.Struct(f"<{len(names)}{'I' if words[-1].endswith('32') else 'Q'}")

    def run(self, memory, parameters, n_thread_blocks):
        for index in range(n_thread_blocks):
            self.shared[:] = bytes(len(self.shared))
            self.run_thread_block(memory, parameters, index, n_thread_blocks)

    def run_thread_block(self, memory, parameters, index, n_thread_blocks):
        special = {"%ctaid.x": index, "%nctaid.x": n_thread_blocks}
        threads = [Thread(self, memory, parameters, dict(special) | {"%tid.x": i}) for i in range(THREADS)]
        waits = [thread.run() for thread in threads]
        while any(waits):
            assert len(set(waits)) == 1, f"threads wait for different things: {set(waits)}"
            if waits[0][0] == "shfl":
                _, to, source, distance = waits[0]
                old = [thread.registers[source] for thread in threads]
                for i, thread in enumerate(threads):
                    assert (i ^ distance) // WARP == i // WARP
                    thread.registers[to] = old[i ^ distance]
            waits = [thread.run() for thread in threads]


class Thread:
    def __init__(self, machine, memory, parameters, special):
        self.machine, self.memory, self.parameters = machine, memory, parameters
        self.registers, self.at, self.carry = special, 0, 0

    def value(self, operand):
        if operand in self.registers:
            return self.registers[operand]
        if operand in self.machine.shared_at:
            return self.machine.shared_at[operand]
        return int(operand, 0)

    def place(self, space, address):
        """The bytes that an address names, and where in them."""
        if space == "shared":
            return self.machine.shared, address
        name = max((name for name in MEMORY if MEMORY[name] <= address), key=MEMORY.get)
        return self.memory[name], address - MEMORY[name]

    def access(self, words, operands, is_load):
        names, base, offset, form = operands
        data, at = self.place(words[1], self.registers[base] + offset)
        assert at % form.size == 0 and 0 <= at <= len(data) - form.size, (words, at)
        if is_load:
            self.registers.update(zip(names, form.unpack_from(data, at)))
        else:
            form.pack_into(data, at, *(self.registers[name] for name in names))

    def compute(self, words, operands):
        name, bits = words[0], int(words[-1][1:])
        a, b, *rest = [self.value(operand) for operand in operands[1:]] + [0]
        if name not in ("mad", "madc", "mul"):
            return PLAIN[name](a, b) & MASK[bits]
        full = a * b
        if words[1] == "wide":
            return (full + (rest[0] if name == "mad" else 0)) & MASK[64]
        part = full >> 64 if words[1] == "hi" else full & MASK[64]
        if name == "mul":
            return part
        total = part + rest[0] + (self.carry if name == "madc" else 0)
        if "cc" in words:
            self.carry = total >> 64
        return total & MASK[64]

    def move(self, operands):
        to, source = operands
        if to.startswith("{"):
            low, high = re.findall(r"%\w+", to)
            self.registers |= {low: self.value(source) & MASK[32], high: self.value(source) >> 32}
        elif source.startswith("{"):
            low, high = re.findall(r"%\w+", source)
            self.registers[to] = self.value(low) | self.value(high) << 32
        else:
            self.registers[to] = self.value(source)

    def run(self):
        """Until it waits: returns for what. None: it has ended."""
        while True:
            predicate, words, operands = self.machine.code[self.at]
            self.at += 1
            if predicate and not self.registers[predicate]:
                continue
            name = words[0]
            if name == "ret":
                return None
            if name == "bar":
                return ("bar",)
            if name == "shfl":
                assert words[1:3] == ["sync", "bfly"] and operands[3:] == ["31", "0xffffffff"]
                return ("shfl", operands[0], operands[1], int(operands[2]))
            if name == "bra":
                self.at = self.machine.labels[operands[0]]
            elif name == "setp":
                self.registers[operands[0]] = TESTS[words[1]](self.value(operands[1]), self.value(operands[2]))
            elif name in ("mov", "cvta", "cvt"):
                self.move(operands)
            elif name == "ld" and words[1] == "param":
                self.registers[operands[0]] = self.parameters[operands[1].strip("[]")]
            elif name in ("ld", "st"):
                self.access(words, operands, name == "ld")
            else:
                self.registers[operands[0]] = self.compute(words, operands)


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        machine = Machine(file.read())
    chance, n = random.Random(14), 2
    blocks = chance.randbytes(2 << 20) + b"\xff" * (2 << 20)
    with tempfile.TemporaryDirectory() as folder:
        expected = subprocess.run([sys.argv[2], folder + "/key", "/dev/stdin"], input=blocks, check=True,
                                  capture_output=True).stdout
        with open(folder + "/key", "rb") as file:
            key = file.read()
    memory = {"blocks": blocks, "key": key, "values": bytearray(16 * n)}
    parameters = {f"param_{name}": address for name, address in MEMORY.items()} | {"param_n": n}
    machine.run(memory, parameters, 1)
    assert memory["values"] == expected, f"{memory['values'].hex()} is not {expected.hex()}"
    print("hash.ptx and hash.c agree")


main()
