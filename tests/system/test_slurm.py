#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on one machine over simulated GPUs (docs/slurm.md): a vGPU for each job step, and jobs that leave their
GPU when Slurm suspends them."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import case
import stage
from wait import PATIENCE, until

PLUGIN = stage.PRIVATE / "slurm" / "openvgpu-slurm.so"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scancel")
SBIN = os.environ["PATH"] + ":/usr/sbin"

CONFIGURATION = """ClusterName=t
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.sock
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
SchedulerTimeSlice=5
SchedulerParameters=sched_min_interval=100000
GresTypes=vgpu
Epilog={directory}/epilog.sh
PlugStackConfig={directory}/plugstack.conf
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 Gres=vgpu:no_consume:4
PartitionName=low Nodes=n1 Default=YES PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=high Nodes=n1 PriorityTier=10 OverSubscribe=FORCE:1
"""


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    """Controller, one node and munge, all in one folder."""

    def __init__(self, directory, run_directory):
        self.directory = directory
        self.processes = []
        os.makedirs(os.path.join(directory, "state"))
        os.makedirs(os.path.join(directory, "spool-n1"))
        self.write("slurm.conf", CONFIGURATION.format(
            directory=directory, host=socket.gethostname().split(".")[0], ports=free_ports(2)))
        self.write("gres.conf", "Name=vgpu Count=4\n")
        self.write("epilog.sh", self.get_epilog(run_directory))
        os.chmod(self.path("epilog.sh"), 0o755)
        self.write("plugstack.conf", f"required {PLUGIN} run={run_directory}\n")
        with open(os.open(self.path("key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as key:
            key.write(os.urandom(64))
        self.environment = {"PATH": SBIN, "SLURM_CONF": self.path("slurm.conf"), "LANG": "C"}

    def get_epilog(self, run_directory):
        """That of the document, for this place."""
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "slurm.md").read_text()
        epilog = re.search(r"^```\n(#!/bin/sh\nvgpu usage .*?)^```", text, re.M | re.S)[1]
        return epilog.replace("vgpu usage", f"OPENVGPU_RUN={run_directory} {stage.VGPU} usage").replace(
            "/var/log/openvgpu-jobs.csv", self.path("jobs.csv"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name):
        try:
            with open(self.path(name), errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def log(self):
        return "".join(f"--- {name}\n{self.read(name)}" for name in ("munged", "slurmctld", "slurmd"))

    def spawn(self, program, *arguments):
        with open(self.path(program), "w") as log:
            self.processes.append(subprocess.Popen(
                [program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, start_new_session=True))

    def start(self):
        self.spawn("munged", "--force", "--foreground", f"--key-file={self.path('key')}",
                   f"--socket={self.path('munge.sock')}", f"--pid-file={self.path('munge.pid')}",
                   f"--log-file={self.path('munge.log')}", f"--seed-file={self.path('munge.seed')}")
        until(lambda: os.path.exists(self.path("munge.sock")), "munged", context=self.log)
        self.spawn("slurmctld", "-D", "-i")
        self.spawn("slurmd", "-D", "-N", "n1")
        until(lambda: self.run("sinfo", "-h", "-p", "low", "-o", "%T", code=None).stdout.strip() == "idle",
              "the node to be idle", context=self.log)

    def stop(self):
        self.run("scancel", "--user=root", code=None)
        with contextlib.suppress(AssertionError):  # what matters has been said before
            until(lambda: not self.run("squeue", "-h", code=None).stdout.strip(), "the last job to end")
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def run(self, *command, code=0):
        done = subprocess.run(command, env=self.environment, cwd=self.directory, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE * 2)
        assert code is None or done.returncode == code, f"{command}: {done}\n{self.log()}"
        return done

    def submit(self, partition, output, *command, options=()):
        """A batch job; its number."""
        self.write(f"{output}.sh", "#!/bin/sh\nexec " + " ".join(map(str, command)) + "\n")
        return self.run("sbatch", "--parsable", "-p", partition, "-o", self.path(output), *options,
                        self.path(f"{output}.sh")).stdout.strip()


def missing():
    if os.geteuid() != 0:
        return "needs root"
    programs = [name for name in PROGRAMS if not shutil.which(name, path=SBIN)]
    if programs:
        return f"needs {' '.join(programs)}: apt-get install slurmctld slurmd slurm-client munge"
    return ""


@unittest.skipIf(missing(), missing())
class Jobs(case.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = Slurm(os.path.join(cls.host.directory, "slurm"), cls.host.run_directory)
        cls.addClassCleanup(cls.slurm.stop)
        cls.slurm.start()

    def train(self, *options):
        """A job that computes until it is told to end, once it has begun; (number, its vGPU)."""
        output = "train.out"
        self.slurm.write(output, "")
        job = self.slurm.submit("low", output, stage.GUESTS / "guest-train", "--pause", "20", "--log",
                                self.slurm.path("steps"), options=["--vgpu=128M", *options])
        until(lambda: "ready" in self.slurm.read(output), "the job to begin",
              context=lambda: self.slurm.read(output) + self.slurm.log())
        return job, f"job-{job}-batch"

    def wait_steps(self, n=2):
        target = len(self.slurm.read("steps").splitlines()) + n
        until(lambda: len(self.slurm.read("steps").splitlines()) >= target, f"{n} more steps",
              context=self.slurm.log)

    def wait_gone(self, name):
        until(lambda: name not in self.host.names(), f"{name} to go", context=self.slurm.log)

    def test_a_step_has_a_vgpu_of_its_own(self):
        done = self.slurm.run("srun", "--vgpu=64M", stage.GUESTS / "guest-train", "--size", "32M", "--steps", "2")
        self.assertIn("done 2 ok", done.stdout)
        until(lambda: not self.host.names(), "its vGPU to go", context=self.slurm.log)

    def test_the_use_of_a_job_is_accounted(self):
        _, name = self.train()
        self.host.wait_for(name, lambda vgpu: vgpu["processes"], "to have a program")
        job = name.split("-")[1]
        self.slurm.run("scancel", job)
        self.wait_gone(name)
        until(lambda: f"\n{job}," in "\n" + self.slurm.read("jobs.csv"), "the epilog to write", context=self.slurm.log)
        (row,) = [row for row in self.host.vgpu("usage", "--by", "job", "--since", "1h", "--json").json["rows"]
                  if row["job"] == job]
        self.assertEqual(row["tenant"], 0)
        self.assertGreaterEqual(row["memory_peak"], 64 << 20)
        self.assertGreater(row["quota_gib_hours"], 0)

    def test_more_than_the_quota_is_refused(self):
        done = self.slurm.run("srun", "--vgpu=64M", stage.GUESTS / "guest-train", "--size", "96M", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("OUT_OF_MEMORY", done.stderr)

    def test_what_is_wrong_is_said_at_the_terminal(self):
        done = self.slurm.run("srun", "--vgpu=900G", "true", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no vGPU for this step", done.stderr)
        for wrong in ("20X", "20G:share=0", "20G:share=101", "20G:part=3", "0"):
            with self.subTest(wrong):
                done = self.slurm.run("srun", f"--vgpu={wrong}", "true", code=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("is not a size", done.stderr)

    def test_a_job_that_is_preempted_leaves_its_gpu(self):
        job, name = self.train()
        end = self.slurm.path("end")
        self.slurm.submit("high", "urgent.out", f"sh -c 'until [ -e {end} ]; do sleep 0.1; done'")
        self.host.wait_state(name, "suspended")
        self.assertEqual(self.host.get(name)["frame_buffer_used"], 64 << 20)
        with open(end, "w"):
            pass
        self.host.wait_state(name, "running")
        self.wait_steps()
        self.slurm.run("scancel", "--batch", "--signal=TERM", job)
        until(lambda: "done" in self.slurm.read("train.out"), "the job to end", context=self.slurm.log)
        self.assertRegex(self.slurm.read("train.out"), r"done \d+ ok")
        self.assertNotIn("BAD", self.slurm.read("steps"))
        self.wait_gone(name)

    def test_a_program_that_waits_for_all_its_children_does_not_wait_for_the_attendant(self):
        for options in ([], ["--vgpu=64M"]):
            done = self.slurm.run("srun", *options, "/usr/bin/python3", "-c", "import os; os.wait()", code=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("ChildProcessError", done.stderr)

    def test_the_attendant_waits_for_the_operation_of_somebody_else(self):
        job, name = self.train()
        (guest,) = [process["pid"] for process in self.host.get(name)["processes"]]
        with open(f"/proc/{guest}/task/{guest}/children") as children:
            (attendant,) = map(int, children.read().split())
        self.host.arm("migrate.copied", "pause")
        mover = threading.Thread(target=self.host.vgpu, args=("migrate", name, "--device", 1))
        mover.start()
        try:
            self.host.wait_paused("migrate.copied")
            os.kill(attendant, signal.SIGTSTP)
        finally:
            self.host.remove_pause("migrate.copied")
            mover.join()
        self.host.wait_state(name, "suspended")
        os.kill(attendant, signal.SIGCONT)
        self.host.wait_state(name, "running")
        self.wait_steps()
        self.slurm.run("scancel", job)
        self.wait_gone(name)

    def test_a_job_that_is_cancelled_leaves_no_vgpu(self):
        job, name = self.train()
        self.slurm.run("scancel", job)
        self.wait_gone(name)


if __name__ == "__main__":
    case.main()
