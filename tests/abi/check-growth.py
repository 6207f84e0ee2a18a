#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What include/openvgpu/base.h promises: structs of the public library may grow.

So no struct has another one in it, no array of structs has them one behind the other, and no function
fills in a struct of the caller's; what callers fill in begins with its size.
"""
import pathlib
import re
import sys

# Two texts, from and to: complete, and said so in base.h.
FINAL = {"vgpu_checkpoint_pair"}


def faults(text):
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", code, flags=re.S | re.M):
        for member in re.findall(r"^\s*struct (\w+) \w+;", body, flags=re.M):
            yield f"struct {name} has a struct {member} in it"
        for member, of in re.findall(r"const\s+struct (\w+)\s*\*\s*(\w+);", body):
            if f"size_t n_{of};" in body and member not in FINAL:
                yield f"struct {name}: {of} has its structs one behind the other"
        if re.search(r"(options|settings)$", name) and not re.match(r"\s*size_t size;", body):
            yield f"struct {name} does not begin with its size"
    for struct, name in re.findall(r"[(,]\s*struct (\w+) \*(ret_\w+)", code):
        yield f"{name} is filled in as a struct {struct}, without its size"
    for struct, name in re.findall(r"const struct (\w+) \*\s*(\w+)\([^;]*ret_n", code):
        yield f"{name}() returns struct {struct} one behind the other"


def main():
    found = [f"{path.name}: {fault}" for path in sorted(pathlib.Path(sys.argv[1]).glob("*.h"))
             for fault in faults(path.read_text())]
    print("\n".join(found) or "no public struct is kept from growing")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
