# SPDX-License-Identifier: Apache-2.0
"""A vgpu-exporter beside a host, and its answers strictly read."""
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import stage
from wait import PATIENCE

EXPORTER = stage.ROOT / "bin" / "vgpu-exporter"

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def read_labels(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, f"labels {text}"
        labels[found[1]] = found[2].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
        at = found.end()
    return labels


class Metrics:
    """Strictly read: no two samples are alike, and each family stands in one piece."""

    def __init__(self, text):
        self.text, self.samples, self.families = text, {}, []
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                self.families.append(line.split()[2])
            if line.startswith("#"):
                continue
            found = SAMPLE.fullmatch(line)
            assert found, f"no sample: {line!r}"
            key = (found[1], frozenset(read_labels(found[2] or "").items()))
            assert key not in self.samples, f"twice: {line!r}"
            self.samples[key] = float(found[3])
        assert len(self.families) == len(set(self.families)), self.families

    def get(self, name, **labels):
        found = [value for (other, has), value in self.samples.items()
                 if other == name and set(labels.items()) <= has]
        assert len(found) <= 1, (name, labels, found)
        return found[0] if found else None

    def labels(self, name):
        return [dict(has) for (other, has) in self.samples if other == name]


class Exporter:
    def __init__(self, host, *options, **who):
        self.process = subprocess.Popen([EXPORTER, "--listen", "127.0.0.1:0", *options], text=True,
                                        env=host.environment(), stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, **who)
        self.url = self.process.stdout.readline().split()[1]

    def scrape(self, **headers):
        with urllib.request.urlopen(urllib.request.Request(self.url, headers=headers),
                                    timeout=PATIENCE) as answer:
            return Metrics(answer.read().decode())

    def ask(self, path, body=None, **headers):
        """(status, text) of another path; an underscore in a header's name is a dash."""
        request = urllib.request.Request(urllib.parse.urljoin(self.url, path), body,
                                         {name.replace("_", "-"): value for name, value in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        assert code == 0, code
