# SPDX-License-Identifier: Apache-2.0
"""What the tests of images share: a host, a guest, dumps of it, and a CRIU that only says that it did."""
import os
import shutil

import case


def entry_lines(host, *words, code=0, **more):
    """The errors of a command that must end so."""
    return host.vgpu(*words, code=code, **more).errors


class ImageCase(case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "160M", "slab": "8M"}

    def setUp(self):
        self.n = 0
        self.guest = None

    def tearDown(self):
        super().tearDown()
        for entry in os.listdir(self.host.directory):
            if entry.startswith("image"):
                shutil.rmtree(os.path.join(self.host.directory, entry))

    def path(self):
        self.n += 1
        return os.path.join(self.host.directory, f"image-{self.n}")

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

    def check_runs(self):
        self.assertEqual(self.host.get("train")["state"], "running")
        self.guest.wait_steps()
        self.guest.finish()
