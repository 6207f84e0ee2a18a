# SPDX-License-Identifier: Apache-2.0
"""A browser, driven by WebDriver with what Python has: as much of it as a test of one page needs."""
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from wait import PATIENCE, until

DRIVER = "chromedriver"
BROWSER = "chromium"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c"}


def why_not():
    """Why no browser can be had here, or None."""
    for program, package in ((BROWSER, "chromium"), (DRIVER, "chromium-driver")):
        if not shutil.which(program):
            return f"{program} is not installed (Debian's package {package})"
    return None


class Browser:
    def __init__(self, width=1280, height=800, is_dark=False):
        self.directory = tempfile.mkdtemp(prefix="vg-", dir="/tmp")
        self.log = open(os.path.join(self.directory, "log"), "w+")
        environment = {**os.environ, "HOME": self.directory, "TMPDIR": self.directory,
                       "XDG_CONFIG_HOME": self.directory, "XDG_CACHE_HOME": self.directory}
        environment.pop("LD_LIBRARY_PATH", None)
        self.process = subprocess.Popen([DRIVER, "--port=0"], stdout=self.log, stderr=self.log,
                                        env=environment, start_new_session=True)
        self.base = None
        try:
            self._begin(width, height, is_dark)
        except BaseException:
            self.close()
            raise

    def _begin(self, width, height, is_dark):
        driver = f"http://127.0.0.1:{self._find_port()}"
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--hide-scrollbars",
                     # It can be had neither by root nor in most containers, and the only page is ours.
                     "--no-sandbox"]
        options = {"args": arguments, "binary": shutil.which(BROWSER)}
        session = self._send("POST", f"{driver}/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base = f"{driver}/session/{session['sessionId']}"
        self.resize(width, height, is_dark)

    def _read_log(self):
        self.log.seek(0)
        return self.log.read()

    def _find_port(self):
        def look():
            assert self.process.poll() is None, self._read_log()
            return re.search(r"successfully on port (\d+)", self._read_log())
        return until(look, "the browser's driver", context=self._read_log)[1]

    def _send(self, method, url, parameters=None):
        data = None if parameters is None else json.dumps(parameters).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=4 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{url}: {error.read().decode()[:2000]}\n{self._read_log()[-2000:]}") from error

    def open(self, url):
        self._send("POST", self.base + "/url", {"url": url})

    def run(self, script, *arguments):
        """What a function with this body returns."""
        return self._send("POST", self.base + "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """What a function with this body gives to the function that is its last argument."""
        return self._send("POST", self.base + "/execute/async", {"script": script, "args": list(arguments)})

    def press(self, key):
        """A key of the keyboard: a letter, or one of KEYS."""
        key = KEYS.get(key, key)
        self._send("POST", self.base + "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]})

    def command(self, name, **parameters):
        """Of Chrome's own protocol."""
        return self._send("POST", self.base + "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def resize(self, width, height, is_dark=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=False)
        self.command("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])

    def slow_down(self, latency_ms=0, bytes_a_second=-1):
        """The network; without arguments it is as it was."""
        self.command("Network.enable")
        self.command("Network.emulateNetworkConditions", offline=False, latency=latency_ms,
                     downloadThroughput=bytes_a_second, uploadThroughput=bytes_a_second)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._send("GET", self.base + "/screenshot")))

    def complaints(self):
        """What the page's console said since the last time: errors, and what the policy forbade."""
        return self._send("POST", self.base + "/se/log", {"type": "browser"})

    def close(self):
        try:
            if self.base:
                self._send("DELETE", self.base)
        finally:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.log.close()
            shutil.rmtree(self.directory, ignore_errors=True)
