# SPDX-License-Identifier: Apache-2.0
"""A client of NVML that asks one question for each line of its input.

A question is the name of a function and its arguments, where "D0" is the handle of device 0, "@" a
place for a number and "$" one for a text. It answers with the code and what came at those places.
"""
import ctypes
import shlex
import sys

ROOM = 256


class Client:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.devices = {}

    def device(self, index):
        handle = ctypes.c_void_p()
        code = self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
        return handle if code == 0 else ctypes.c_void_p()

    def argument(self, text, places):
        if text.startswith("D"):
            return self.device(int(text[1:]))
        if text == "@":
            places.append(ctypes.c_ulonglong())
            return ctypes.byref(places[-1])
        if text == "$":
            places.append(ctypes.create_string_buffer(ROOM))
            return places[-1]
        if text.startswith("{"):  # a struct of unsigned ints: {1,2,3}
            numbers = [int(number, 0) for number in text.strip("{}").split(",")]
            places.append((ctypes.c_uint * len(numbers))(*numbers))
            return ctypes.byref(places[-1])
        return ctypes.c_uint(int(text, 0))

    def ask(self, name, *arguments):
        places = []
        code = getattr(self.library, name)(*[self.argument(text, places) for text in arguments])
        return " ".join([str(code), *(show(place) for place in places)])


def show(place):
    if isinstance(place, ctypes.c_ulonglong):
        return str(place.value)
    if isinstance(place, ctypes.Array) and place._type_ is ctypes.c_char:
        return place.value.decode() or "-"
    return ",".join(str(number) for number in place)


def main():
    client = Client(sys.argv[1])
    print(client.ask("nvmlInit_v2"), flush=True)
    for line in sys.stdin:
        print(client.ask(*shlex.split(line)), flush=True)


if __name__ == "__main__":
    main()
