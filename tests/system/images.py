# SPDX-License-Identifier: Apache-2.0
"""What the tests of images share: a host, a guest, dumps of it, and a CRIU that only says that it did."""
import contextlib
import os
import resource
import shutil

import case
from wait import until
from wire import Refused


def entry_lines(host, *words, code=0, **more):
    """The errors of a command that must end so."""
    return host.vgpu(*words, code=code, **more).errors


class Files(case.Case):
    """Directories of images, which are removed; nothing of a vGPU."""

    def setUp(self):
        self.n = 0

    def tearDown(self):
        super().tearDown()
        for entry in os.listdir(self.host.directory):
            if entry.startswith("image"):
                shutil.rmtree(os.path.join(self.host.directory, entry))

    @contextlib.contextmanager
    def limited_files(self, size):
        """Whoever writes more to a file is told that it is too large, as on a disk that is full."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def path(self):
        self.n += 1
        return os.path.join(self.host.directory, f"image-{self.n}")

    # Dumps of processes, with a CRIU that only says that it did, or did not.

    def fake_criu(self, dump):
        """It starts, and its checks are content; dump is what it does when asked to."""
        path = os.path.join(self.host.directory, f"criu-{self.n}")
        self.n += 1
        with open(path, "w") as file:
            file.write(f"""#!/bin/sh
case $1 in
--version) echo Version: 4.1.1 ;;
check) echo Looks good. ;;
dump)
        while [ $# -gt 0 ]; do
                case $1 in --images-dir) folder=$2 ;; --work-dir) work=$2 ;; --tree) pid=$2 ;; esac
                shift
        done
        {dump}
        ;;
esac
""")
        os.chmod(path, 0o755)
        return path

    GOOD_DUMP = "echo pages > $folder/pages-1.img; kill -STOP $pid"

    def running(self):
        self.guest = self.host.train(self.host.create("train"), "--size", "20M")
        return self.guest

    def wait_free(self, name):
        """The manager has heard of the hang-up."""
        def look():
            with self.host.connect() as control:
                try:
                    control.call("OpenMemory", name=name)
                    return control.call("CloseMemory", name=name)
                except Refused:
                    return None
        until(look, "the session to end", context=self.host.log)


class ImageCase(Files):
    HOST = {"devices": "2xH200:512M", "pool": "160M", "slab": "8M"}

    def setUp(self):
        super().setUp()
        self.guest = None

    def suspended(self, *arguments):
        """A vGPU with a guest of 20 MiB and a bit, suspended."""
        self.guest = self.host.train(self.host.create("train"), "--size", "20M", "--small", "30",
                                     *arguments)
        self.host.vgpu("suspend", "train")
        return self.guest

    def dump(self, *options):
        path = self.path()
        self.host.vgpu("checkpoint", "dump", "train", path, *options)
        return path

    def step_on(self):
        """The memory changes."""
        self.host.vgpu("resume", "train")
        self.guest.wait_steps()
        self.host.vgpu("suspend", "train")

    def load(self, path, **more):
        return self.host.vgpu("checkpoint", "load", path, "--vgpu", "train", **more)

    def check_goes_on(self):
        self.host.vgpu("resume", "train")
        self.guest.wait_steps()
        self.guest.finish()

    def check_runs(self):
        self.assertEqual(self.host.get("train")["state"], "running")
        self.guest.wait_steps()
        self.guest.finish()
