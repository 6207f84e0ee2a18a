#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The man page of vgpu names each member of the records that --json prints, and no other.

usage: check-records.py RECORDS.C PAGE
"""
import pathlib
import re
import sys

# What the page calls a record, and what it is made of.
PAGE = {
    "device": ["device"],
    "vgpu": ["instance", "instance_part", "process"],
    "use": ["usage_device", "usage_instance", "usage_part", "usage_process", "percents"],
    "account": ["account"],
    "usage": ["usage_row"],
    "seconds": ["seconds"],
}


def read_tables(text):
    """record -> its names in JSON"""
    return {name: set(re.findall(r'\.name = "(\w+)"', body))
            for name, body in re.findall(r"record_field (\w+)_fields\[\] = \{(.*?)^\};", text, re.S | re.M)}


def read_page(text, item):
    """The literal words below the item."""
    body = re.search(rf"^\.It Em {item}$(.*?)^\.(?:It|El)", text, re.S | re.M)
    words = " ".join(re.findall(r"^\.Li (.*)$", body[1], re.M)) if body else ""
    return {word for word in words.split() if word[0].isalpha()}


def main(tables_path, page_path):
    tables, page = read_tables(pathlib.Path(tables_path).read_text()), pathlib.Path(page_path).read_text()
    bad = 0
    for item, records in PAGE.items():
        have, want = read_page(page, item), set().union(*(tables[record] for record in records))
        for word in sorted(want ^ have):
            print(f"{page_path}: JSON: {item}: '{word}' is {'missing' if word in want else 'not in the public headers'}")
            bad = 1
    sys.exit(bad)


main(*sys.argv[1:])
