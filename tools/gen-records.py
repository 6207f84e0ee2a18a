#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the tables of src/record/ from abi/records.abi and the structs of the public headers.

usage: gen-records.py TABLE HEADER...

A struct of the public library is a list of members with names, types and meanings. It is the only such
list: this program turns it into the table by which JSON is read and written.
"""
import pathlib
import re
import sys

SCALARS = {
    "const char *": "TEXT",
    "uint64_t ": "U64",
    "uint32_t ": "U32",
    "int32_t ": "I32",
    "int64_t ": "TIME",
    "double ": "SECONDS",
    "bool ": "BOOL",
}


def read_records(path):
    """[(record, struct, last, {member: JSON name})]."""
    records = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if words[:1] == ["record"] and len(words) == 4:
            records.append((words[1], words[2], words[3], {}))
        elif len(words) == 2 and records:
            records[-1][3][words[0]] = words[1]
        elif words:
            sys.exit(f"{path}:{number}: want 'record NAME STRUCT LAST' or 'MEMBER NAME'")
    return records


def read_headers(paths):
    """(structs: name -> (header, [(type, member)]), enums: name -> [constant])"""
    structs, enums = {}, {}
    for path in paths:
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", code, flags=re.S | re.M):
            structs[name] = (path.name, list(read_members(body)))
        for name, body in re.findall(r"^enum (\w+) \{(.*?)^\};", code, flags=re.S | re.M):
            enums[name] = re.findall(r"^\s*(\w+)", body, flags=re.M)
    return structs, enums


def read_members(body):
    for declaration in body.split(";"):
        found = re.fullmatch(r"\s*((?:const )?(?:struct |enum )?\w+(?: \*const| )?\s*\**)(.+)\s*", declaration, re.S)
        if found:
            for member in found[2].split(","):
                yield re.sub(r"\s+", " ", found[1]), member.strip()


def word(constant, constants):
    """VGPU_INSTANCE_IDLE: "idle"."""
    prefix = constants[0]
    while not all(other.startswith(prefix) for other in constants) or not prefix.endswith("_"):
        prefix = prefix[:-1]
    return constant[len(prefix):].lower()


class Generator:
    def __init__(self, records, structs, enums):
        self.records, self.structs, self.enums = records, structs, enums
        self.of_struct = {struct: name for name, struct, _, _ in records}
        self.words = {}

    def fail(self, struct, member, why):
        sys.exit(f"{self.structs[struct][0]}: struct {struct}: {member}: {why}")

    def part(self, struct, member, kind):
        part = re.search(r"struct (\w+)", kind)[1]
        if part not in self.of_struct:
            self.fail(struct, member, f"struct {part} is no record of abi/records.abi")
        return self.of_struct[part]

    def field(self, struct, kind, member):
        """What the field has besides its name and its place."""
        if kind in SCALARS:
            return f".type = RECORD_{SCALARS[kind]}"
        if kind.startswith("enum "):
            name = kind.split()[1]
            self.words[name] = self.enums[name]
            return f".type = RECORD_WORD, .words = &record_words_{name.removeprefix('vgpu_')}"
        if re.fullmatch(r"const struct \w+ \*const \*", kind):
            if ("size_t ", f"n_{member}") not in self.structs[struct][1]:
                self.fail(struct, member, f"the array has no size_t n_{member}")
            return (f".type = RECORD_LIST, .record = &record_{self.part(struct, member, kind)}, "
                    f".count_offset = offsetof(struct {struct}, n_{member})")
        if re.fullmatch(r"const struct \w+ \*", kind):
            return f".type = RECORD_PART, .record = &record_{self.part(struct, member, kind)}"
        self.fail(struct, member, f"JSON has nothing like '{kind.strip()}'")
        return ""

    def record(self, name, struct, last, names):
        members = self.structs[struct][1]
        if last not in [member for _, member in members]:
            self.fail(struct, last, "abi/records.abi names it, and the struct lacks it")
        for member in set(names) - {member for _, member in members}:
            self.fail(struct, member, "abi/records.abi names it, and the struct lacks it")
        rows, is_optional = [], False
        for kind, member in members:
            if kind != "size_t ":
                name_or_sign = names.get(member, member)
                json = {"=": "", "?": member}.get(name_or_sign, name_or_sign)
                optional = ", .is_optional = true" if is_optional or name_or_sign == "?" else ""
                row = (f"        {{ .name = \"{json}\", .offset = offsetof(struct {struct}, {member}), "
                       f"{self.field(struct, kind, member)}{optional} }},")
                rows.append((kind.endswith("*const *"), row))
            is_optional = is_optional or member == last
        rows.sort(key=lambda row: row[0])  # lists are long: they come last
        text = "\n".join(row for _, row in rows)
        return (f"static const struct record_field {name}_fields[] = {{\n{text}\n}};\n\n"
                f"const struct record record_{name} = {{ sizeof(struct {struct}), {name}_fields, "
                f"sizeof({name}_fields) / sizeof({name}_fields[0]) }};\n")

    def write(self):
        bodies = [self.record(*record) for record in self.records]
        headers = sorted({self.structs[struct][0] for _, struct, _, _ in self.records})
        print('#include "record/records.h"\n')
        print("".join(f"#include <openvgpu/{header}>\n" for header in headers))
        for name, constants in sorted(self.words.items()):
            short = name.removeprefix("vgpu_")
            rows = "\n".join(f'        [{constant}] = "{word(constant, constants)}",' for constant in constants)
            print(f"static const char *const {short}_words[] = {{\n{rows}\n}};\n")
            print(f"const struct record_words record_words_{short} = {{ {short}_words, "
                  f"sizeof({short}_words) / sizeof({short}_words[0]) }};\n")
        print("\n".join(bodies))


def main(table, *headers):
    records = read_records(pathlib.Path(table))
    structs, enums = read_headers([pathlib.Path(header) for header in headers])
    for name, struct, _, _ in records:
        if struct not in structs:
            sys.exit(f"{table}: record {name}: no public header has a struct {struct}")
    Generator(records, structs, enums).write()


if __name__ == "__main__":
    main(*sys.argv[1:])
