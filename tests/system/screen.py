# SPDX-License-Identifier: Apache-2.0
"""A terminal for a program: a pseudo terminal, and a model of the screen that it draws.

The model knows what ncurses sends for TERM=xterm, vt100 and linux: text, cursor movement, erasing, the
scrolling region, insertion and deletion, and attributes. What it does not know fails the test: a screen
that was misread proves nothing.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

from wait import PATIENCE, until

CONTROL = re.compile(rb"\x1b\[([?>]?)([0-9;]*)([@-~])|\x1b([()])(.)|\x1b([=>78DMEcH])|[\x00-\x1f]|"
                     rb"[\x20-\x7e]+|[\x80-\xff]+", re.S)
PARTIAL = re.compile(rb"\x1b(\[[?>]?[0-9;]*|[()])?$")


class Screen:
    """Rows of characters; reverse has the rows of which any character was drawn in reverse."""

    def __init__(self, rows, columns):
        self.resize(rows, columns)
        self.is_alternate = False
        self.attributes = set()
        self.rest = b""
        self.was_coloured = False

    def resize(self, rows, columns):
        self.n_rows, self.n_columns = rows, columns
        self.cells = [[(" ", False)] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.top, self.bottom = 0, rows - 1

    def text(self):
        return ["".join(c for c, _ in row).rstrip() for row in self.cells]

    def reversed_rows(self):
        return [i for i, row in enumerate(self.cells) if any(r for _, r in row)]

    def feed(self, data):
        data = self.rest + data
        partial = PARTIAL.search(data)
        self.rest = data[partial.start():] if partial else b""
        data = data[:partial.start()] if partial else data
        at = 0
        while at < len(data):
            match = CONTROL.match(data, at)
            assert match, f"not understood: {data[at:at + 20]!r}"
            at = match.end()
            if match[3]:
                self.control(match[1], [int(n or 0) for n in match[2].split(b";")], match[3])
            elif match[4]:
                pass  # a set of characters: lines are not drawn
            elif match[6]:
                self.escape(match[6])
            elif match[0][0] < 0x20:
                self.move_by(match[0])
            else:
                self.put(match[0].decode(errors="replace"))

    def put(self, text):
        for character in text:
            if self.column >= self.n_columns:
                self.column, self.row = 0, min(self.row + 1, self.n_rows - 1)
            self.cells[self.row][self.column] = (character, "reverse" in self.attributes)
            self.column += 1

    def scroll(self, n):
        blank = [(" ", False)] * self.n_columns
        region = self.cells[self.top:self.bottom + 1]
        region = region[n:] + [list(blank) for _ in range(n)] if n > 0 else \
            [list(blank) for _ in range(-n)] + region[:n]
        self.cells[self.top:self.bottom + 1] = region

    def move_by(self, byte):
        if byte == b"\r":
            self.column = 0
        elif byte == b"\n":
            if self.row == self.bottom:
                self.scroll(1)
            else:
                self.row = min(self.row + 1, self.n_rows - 1)
        elif byte == b"\b":
            self.column = max(self.column - 1, 0)
        elif byte == b"\t":
            self.column = min(self.column // 8 * 8 + 8, self.n_columns - 1)
        else:
            assert byte in b"\x0e\x0f\x07\x00", f"control character {byte!r}"

    def escape(self, letter):
        if letter == b"M":
            if self.row == self.top:
                self.scroll(-1)
            else:
                self.row -= 1
        else:
            assert letter in b"=>78c", f"ESC {letter!r}"

    def erase(self, row, begin, end):
        self.cells[row][begin:end] = [(" ", "reverse" in self.attributes)] * (end - begin)

    def control(self, private, n, letter):
        first = n[0] or 1
        if private:
            self.is_alternate = letter == b"h" if 1049 in n else self.is_alternate
            return
        simple = {
            b"A": lambda: setattr(self, "row", max(self.row - first, 0)),
            b"B": lambda: setattr(self, "row", min(self.row + first, self.n_rows - 1)),
            b"C": lambda: setattr(self, "column", min(self.column + first, self.n_columns - 1)),
            b"D": lambda: setattr(self, "column", max(self.column - first, 0)),
            b"G": lambda: setattr(self, "column", first - 1),
            b"d": lambda: setattr(self, "row", first - 1),
            b"S": lambda: self.scroll(first),
            b"T": lambda: self.scroll(-first),
            b"X": lambda: self.erase(self.row, self.column, min(self.column + first,
                                                                self.n_columns)),
        }
        if letter in simple:
            simple[letter]()
        elif letter in b"Hf":
            self.row = min(first, self.n_rows) - 1
            self.column = min((n[1] or 1) if len(n) > 1 else 1, self.n_columns) - 1
        elif letter == b"J":
            self.erase_screen(n[0])
        elif letter == b"K":
            begin, end = (self.column, self.n_columns) if n[0] == 0 else (0, self.column + 1)
            self.erase(self.row, begin if n[0] != 2 else 0, end if n[0] != 2 else self.n_columns)
        elif letter == b"b":
            self.put(self.cells[self.row][self.column - 1][0] * first)
        elif letter == b"P":
            row = self.cells[self.row]
            del row[self.column:self.column + first]
            row += [(" ", False)] * (self.n_columns - len(row))
        elif letter == b"@":
            row = self.cells[self.row]
            row[self.column:self.column] = [(" ", False)] * first
            del row[self.n_columns:]
        elif letter in b"LM":
            self.shift_lines(first if letter == b"M" else -first)
        elif letter == b"m":
            self.set_attributes(n)
        elif letter == b"r":
            self.top, self.bottom = first - 1, (n[1] if len(n) > 1 and n[1] else self.n_rows) - 1
            self.row = self.column = 0
        else:
            assert letter in b"hlnct", f"CSI {n} {letter!r}"

    def shift_lines(self, n):
        top, self.top = self.top, self.row
        self.scroll(n)
        self.top = top

    def erase_screen(self, how):
        if how == 2:
            self.cells = [[(" ", False)] * self.n_columns for _ in range(self.n_rows)]
            return
        self.erase(self.row, *((self.column, self.n_columns) if how == 0 else (0, self.column + 1)))
        for row in range(self.row + 1, self.n_rows) if how == 0 else range(self.row):
            self.erase(row, 0, self.n_columns)

    def set_attributes(self, n):
        for one in n:
            if one == 0:
                self.attributes.clear()
            elif one == 7:
                self.attributes.add("reverse")
            elif one == 27:
                self.attributes.discard("reverse")
            elif 30 <= one <= 37:
                self.was_coloured = True


class Terminal:
    """A program on a terminal."""

    def __init__(self, arguments, environment, rows=24, columns=80, term="xterm"):
        self.screen = Screen(rows, columns)
        self.raw = b""
        self.master, slave = pty.openpty()
        self.set_size(rows, columns)
        self.process = subprocess.Popen([str(a) for a in arguments], stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                        env={**environment, "TERM": term, "LC_ALL": "C.UTF-8"})
        os.close(slave)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.read()
        self.screen.resize(rows, columns)
        self.set_size(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def read(self):
        """All that it has drawn so far; what it drew when it has ended."""
        while select.select([self.master], [], [], 0)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break  # it has ended
            if not data:
                break
            self.raw += data
            self.screen.feed(data)
        return self.screen

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait(self, condition, what):
        """The screen, once it is as wanted."""
        return until(lambda: condition(self.read()) and self.screen, what,
                     context=lambda: "\n".join(self.screen.text()))

    def wait_text(self, text):
        return self.wait(lambda screen: any(text in row for row in screen.text()),
                         f"'{text}' on the screen")

    def join(self):
        until(lambda: self.read() and self.process.poll() is not None, "the program to end",
              PATIENCE, lambda: "\n".join(self.screen.text()))
        self.read()
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
