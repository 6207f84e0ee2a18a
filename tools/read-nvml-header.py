#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read the facts of the NVML interface from a header, and compare them with what the project has.

usage: read-nvml-header.py facts nvml.h                 print the facts, as in abi/nvml-header.json
       read-nvml-header.py check abi [nvml.h|facts]     list what a header declares and we lack

The facts are names, kinds of arguments, sizes in bytes, version words and values: no text of the
header. "check" without a header takes the facts in abi/nvml-header.json; with one, the compiler ($CC,
else cc) measures its structs.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HANDLES = ("nvmlDevice_t", "nvmlUnit_t", "nvmlGpuInstance_t", "nvmlComputeInstance_t", "nvmlEventSet_t",
           "nvmlGpmSample_t", "nvmlSystemEventSet_t")
FUNCTION = re.compile(r"nvmlReturn_t\s+DECLDIR\s+(nvml\w+)\s*\(([^;]*?)\)\s*;")
PARAMETER = re.compile(r"^(const\s+)?([\w\s]+?)\s*(\**)\s*(\w+)(\[\w*\])?$")
STRUCT = re.compile(r"typedef\s+struct\s*\w*\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*(nvml\w+)\s*;", re.DOTALL)
ENUM = re.compile(r"typedef\s+enum\s*\w*\s*\{([^{}]*)\}\s*(nvml\w+)\s*;", re.DOTALL)
ALIAS = re.compile(r"typedef\s+(nvml\w+)\s+(nvml\w+)\s*;")
VERSION = re.compile(r"NVML_STRUCT_VERSION\((\w+),\s*(\d+)\)")
DOCUMENTED = re.compile(r"/\*\*((?:(?!\*/).)*)\*/((?:\s*(?:DEPRECATED\([\d.]+\)|nvmlReturn_t\s+DECLDIR\s+nvml\w+"
                        r"\([^;]*\);))+)", re.DOTALL)
FIELD = re.compile(r"^#define\s+(NVML_FI_\w+)\s+\d+", re.MULTILINE)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def read_parameters(text):
    for part in text.split(","):
        part = " ".join(part.split())
        if part in ("", "void"):
            continue
        constant, kind, stars, name, array = PARAMETER.match(part).groups()
        yield {"name": name, "type": kind, "pointer": bool(stars or array), "const": bool(constant)}


def measure(path, expressions):
    """The values of C expressions in the scope of the header; None: it has no such thing."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "facts.c"), os.path.join(folder, "facts")
        with open(source, "w") as file:
            file.write(f'#include "{os.path.abspath(path)}"\n#include <stdio.h>\nint main(void)\n{{\n')
            file.writelines(f'printf("%llu\\n", (unsigned long long)({one}));\n' for one in expressions)
            file.write("return 0;\n}\n")
        subprocess.run([os.environ.get("CC", "cc"), "-w", "-o", program, source], check=True)
        lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(expressions, map(int, lines)))


def read_codes(text):
    """The codes that the documentation of each function lists."""
    codes = {}
    for words, declarations in DOCUMENTED.findall(text):
        _, _, listed = words.partition("@return")
        for name, _ in FUNCTION.findall(declarations):
            codes[name] = sorted(set(re.findall(r"\bNVML_(?:ERROR_)?([A-Z_]+)\b(?=\s+\w)", listed)))
    return codes


def read_header(path):
    raw = open(path).read()
    text = without_comments(raw)
    functions = {name: list(read_parameters(arguments)) for name, arguments in FUNCTION.findall(text)}
    versions = {f"nvml{name}_v{number}_t": int(number) for name, number in VERSION.findall(text)}
    structs = {name: versions.get(name) for _, name in STRUCT.findall(text)}
    for original, alias in ALIAS.findall(text):
        if original in structs:
            structs[alias] = structs[original]
    values = [word.split("=")[0].strip() for body, _ in ENUM.findall(text) for word in body.split(",")]
    values = sorted({value for value in values if value} | set(FIELD.findall(text)))
    types = sorted({a["type"] for arguments in functions.values() for a in arguments if a["type"] != "void"} |
                   set(structs))
    sizes = measure(path, [f"sizeof({one})" for one in types] + values)
    version = re.search(r"NVML VERSION: (\S+)", raw)
    return {
        "version": version.group(1) if version else "unknown",
        "functions": {name: [describe(a, sizes, structs) for a in arguments]
                      for name, arguments in sorted(functions.items())},
        "codes": {name: words for name, words in sorted(read_codes(raw).items()) if words},
        "structs": {name: {"size": sizes[f"sizeof({name})"],
                           **({"version": sizes[f"sizeof({name})"] | generation << 24} if generation else {})}
                    for name, generation in sorted(structs.items())},
        "values": {name: sizes[name] for name in values},
    }


def describe(argument, sizes, structs):
    """[name, kind, size, version]: what a caller has to pass."""
    kind = argument["type"]
    size = sizes.get(f"sizeof({kind})", 1)
    if argument["pointer"]:
        word = "text" if kind == "char" else "struct" if kind in structs else "array"
        word = f"const {word}" if argument["const"] else word
        generation = structs.get(kind)
        return [argument["name"], word, size] + ([size | generation << 24] if generation else [])
    return [argument["name"], kind if kind in HANDLES else "number", size]


def dump(facts):
    """One fact a line, so that a change can be read."""
    def section(name):
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in facts[name].items())
        return f' "{name}": {{\n{lines}\n }}'
    note = ("Facts of the newest nvml.h: arguments as [name, kind, bytes, version word], documented codes, sizes, values. "
            "Made by tools/read-nvml-header.py.")
    return (f'{{\n "_": "{note}",\n "version": "{facts["version"]}",\n' +
            ",\n".join(section(name) for name in ("functions", "codes", "structs", "values")) + "\n}\n")


def read_facts(path):
    return json.load(open(path)) if path.endswith(".json") else read_header(path)


def list_lacks(folder, facts):
    ours = {line.split()[0] for line in open(os.path.join(folder, "nvml.abi")) if line.startswith("nvml")}
    layouts = json.load(open(os.path.join(folder, "nvml-layouts.json")))
    for name in facts["functions"]:
        if name not in ours:
            yield f"function {name} is not in abi/nvml.abi"
    newer = layouts["newer"]
    for name, layout in layouts["structs"].items():
        theirs = None if name in newer else facts["structs"].get(name)
        if theirs and theirs["size"] != layout["size"]:
            yield f"struct {name} has {theirs['size']} bytes, not {layout['size']}"
        if theirs and theirs.get("version") != layout.get("version"):
            yield f"struct {name} has the version {theirs.get('version')}, not {layout.get('version')}"
    for name, value in layouts["values"].items():
        if name not in newer and facts["values"].get(name, value) != value:
            yield f"{name} is {facts['values'][name]}, not {value}"
    for name, value in facts["values"].items():
        if name.startswith("NVML_ERROR_") and name not in layouts["values"]:
            yield f"{name} ({value}) is not in abi/nvml-layouts.json"


def check(folder, path):
    facts = read_facts(path or os.path.join(folder, "nvml-header.json"))
    lacks = list(list_lacks(folder, facts))
    print(*lacks, f"NVML {facts['version']}: {len(facts['functions'])} functions, {len(lacks)} differences", sep="\n")
    return 1 if lacks else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "facts":
        print(dump(read_header(sys.argv[2])), end="")
    elif len(sys.argv) in (3, 4) and sys.argv[1] == "check":
        sys.exit(check(sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else None))
    else:
        sys.exit(__doc__)
