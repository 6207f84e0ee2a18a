# SPDX-License-Identifier: Apache-2.0
"""A real Slurm with two nodes on one machine, each with a vgpud over simulated GPUs."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess

import case
import stage
from host import Host
from wait import PATIENCE, until

PLUGIN = stage.PRIVATE / "slurm" / "openvgpu-slurm.so"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scancel")
FREEZER = "/sys/fs/cgroup/freezer"
SBIN = os.environ["PATH"] + ":/usr/sbin"

# Slurm's own time-outs are for machines that are less busy than this one: a message has 10 s, a connection 2, the start of a
# batch job 10. And what it schedules when something happens it may miss: else it looks once a minute, longer than we wait.
BASIS = """ClusterName=t
MessageTimeout=60
TCPTimeout=30
BatchStartTimeout=60
UnkillableStepTimeout=300
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
ProctrackType=proctrack/{tracking}
TaskPlugin=task/none
SchedulerTimeSlice=5
SchedulerParameters=sched_min_interval=100000,sched_interval=2,bf_interval=2
DebugFlags=NO_CONF_HASH
Epilog={directory}/{node}/epilog.sh
PlugStackConfig={directory}/{node}/plugstack.conf
"""

# What the tests of jobs need: on each node one core, so that any urgent job suspends the other.
CONFIGURATION = """SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
GresTypes=vgpu
NodeName=n1 {address[n1]} CPUs=1 Gres=vgpu:no_consume:4 Weight=2
NodeName=n2 {address[n2]} CPUs=1 Gres=vgpu:no_consume:4 Weight=1
PartitionName=low Nodes=n1 Default=YES PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=high Nodes=n1 PriorityTier=10 OverSubscribe=FORCE:1
PartitionName=both Nodes=n1,n2 PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=slices Nodes=n2 PriorityTier=1 OverSubscribe=FORCE:2
PartitionName=urgent Nodes=n2 PriorityTier=10 OverSubscribe=FORCE:1
"""


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    """Controller, munge and a node for each host, all in one folder."""

    def __init__(self, directory, hosts, tracking):
        self.directory = directory
        self.host_name = socket.gethostname().split(".")[0]
        self.tracking = tracking
        self.nodes = {f"n{i}": host for i, host in enumerate(hosts, 1)}
        self.processes = {}
        os.makedirs(os.path.join(directory, "state"))
        self.ports = free_ports(1 + len(hosts))
        for node, host in self.nodes.items():
            self.make_node(node, host.run_directory)
        with open(os.open(self.path("key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as key:
            key.write(os.urandom(64))
        self.environment = {"PATH": SBIN, "SLURM_CONF": self.path("n1/slurm.conf"), "LANG": "C"}
        if "LD_LIBRARY_PATH" in os.environ:  # the driver's, or that of a Slurm that is only unpacked
            self.environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]

    def get_addresses(self):
        """Of each node, as slurm.conf has it."""
        return {node: f"NodeHostname={self.host_name} NodeAddr=127.0.0.1 Port={port}"
                for node, port in zip(self.nodes, self.ports[1:])}

    def get_configuration(self):
        """What slurm.conf says of GRES, nodes and partitions."""
        return CONFIGURATION.format(address=self.get_addresses())

    def get_gres(self):
        return "Name=vgpu Count=4\n"

    def make_node(self, node, run_directory):
        """A node has a vgpud of its own, so also a plugstack.conf."""
        os.makedirs(self.path(f"spool-{node}"))
        os.makedirs(self.path(node))
        self.write(f"{node}/slurm.conf", self.get_configuration() + BASIS.format(
            directory=self.directory, node=node, host=self.host_name, ports=self.ports, tracking=self.tracking))
        self.write(f"{node}/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        self.write(f"{node}/gres.conf", self.get_gres())
        self.write(f"{node}/epilog.sh", self.get_epilog(run_directory))
        os.chmod(self.path(f"{node}/epilog.sh"), 0o755)
        self.write(f"{node}/plugstack.conf", f"required {PLUGIN} run={run_directory}\n")

    def get_epilog(self, run_directory):
        """The one that is installed, for this place."""
        epilog = (stage.ROOT / "share" / "openvgpu" / "slurm" / "epilog").read_text()
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
        return "".join(f"--- {name}\n{self.read(f'{name}.log')}" for name in self.processes)

    def spawn(self, name, program, *arguments):
        with open(self.path(f"{name}.log"), "a") as log:
            self.processes[name] = subprocess.Popen(
                [program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, start_new_session=True)

    def start(self):
        self.spawn("munged", "munged", "--force", "--foreground", "--origin=127.0.0.1", f"--key-file={self.path('key')}",
                   f"--socket={self.path('munge.sock')}", f"--pid-file={self.path('munge.pid')}",
                   f"--log-file={self.path('munge.log')}", f"--seed-file={self.path('munge.seed')}")
        until(lambda: os.path.exists(self.path("munge.sock")), "munged", context=self.log)
        self.start_accounts()
        self.spawn("slurmctld", "slurmctld", "-D", "-i")
        for node in self.nodes:
            self.start_node(node)
            self.wait_node(node, "idle")

    def start_accounts(self):
        """What slurmctld writes to, if it does."""

    def start_node(self, node):
        self.spawn(node, "slurmd", "-D", "-N", node, "-f", self.path(f"{node}/slurm.conf"))

    def kill_node(self, node):
        """slurmd alone: what it has started runs on."""
        self.processes[node].kill()
        self.processes[node].wait()

    def wait_node(self, node, state):
        until(lambda: self.run("sinfo", "-h", "-N", "-n", node, "-o", "%T", code=None).stdout.split()[:1] == [state],
              f"{node} to be {state}", context=self.log)

    def stop(self):
        self.run("scancel", "--user=root", code=None)
        with contextlib.suppress(AssertionError):  # what matters has been said before
            until(lambda: not self.run("squeue", "-h", code=None).stdout.strip(), "the last job to end")
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
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


def read_stat(pid):
    """Its state and its parent."""
    with open(f"/proc/{pid}/stat", errors="replace") as stat:
        state, parent = stat.read().rsplit(")", 1)[1].split()[:2]
    return state, int(parent)


def is_stopped(pid):
    return read_stat(pid)[0] == "T"


def is_frozen(pid):
    with open(f"/proc/{pid}/cgroup") as groups:
        group = re.search(r":freezer:(.*)", groups.read())[1]
    return pathlib.Path(f"{FREEZER}{group}/freezer.state").read_text().strip() == "FROZEN"


def find_sentry(guest):
    """The process of ours beside it."""
    stepd = read_stat(guest)[1]
    children = pathlib.Path(f"/proc/{stepd}/task/{stepd}/children").read_text().split()
    (sentry,) = [int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "vgpu-sentry\n"]
    return sentry


def can_resolve():
    """As Slurm does it: where lo is the only interface with an address, not even 127.0.0.1 is found."""
    try:
        return bool(socket.getaddrinfo("127.0.0.1", None, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG))
    except OSError:
        return False


def missing():
    if os.geteuid() != 0:
        return "needs root"
    programs = [name for name in PROGRAMS if not shutil.which(name, path=SBIN)]
    if programs:
        return f"needs {' '.join(programs)}: apt-get install slurmctld slurmd slurm-client munge"
    if not can_resolve():
        return "needs an interface with an address beside lo: else Slurm finds not even 127.0.0.1"
    return ""


class SlurmCase(case.Case):
    TRACKING = "linuxproc"
    SLURM = Slurm
    SECOND = {"devices": "1xH200:512M"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.second = Host(**cls.SECOND).start()
        cls.addClassCleanup(cls.second.close)
        cls.slurm = cls.SLURM(os.path.join(cls.host.directory, "slurm"), [cls.host, cls.second], cls.TRACKING)
        cls.addClassCleanup(cls.slurm.stop)
        cls.slurm.start()

    def tearDown(self):
        self.slurm.run("scancel", "--user=root", code=None)
        super().tearDown()
        self.second.wait_clean()
        until(lambda: not self.second.names(), "the last vGPU to go", context=self.slurm.log)

    def train(self, *options, output="train.out", partition="low", size=64, quota=128):
        """A job that computes until it is told to end, once it has begun; (number, its vGPU)."""
        self.slurm.write(output, "")
        job = self.slurm.submit(partition, output, stage.GUESTS / "guest-train", "--pause", "20", "--log",
                                self.slurm.path(f"{output}.steps"), "--size", f"{size}M",
                                options=[f"--vgpu={quota}M", *options])
        self.wait_ready(output)
        return job, f"job-{job}-batch"

    def wait_ready(self, output="train.out"):
        until(lambda: "ready" in self.slurm.read(output), "the job to begin",
              context=lambda: self.slurm.read(output) + self.slurm.log())

    def finish(self, job, output="train.out"):
        """In good order: it compares every word that it has."""
        self.slurm.run("scancel", "--batch", "--signal=TERM", job)
        until(lambda: "done" in self.slurm.read(output), "the job to end", context=self.slurm.log)
        self.assertRegex(self.slurm.read(output), r"done \d+ ok")
        self.assertNotIn("BAD", self.slurm.read(f"{output}.steps"))

    def wait_steps(self, n=2, output="train.out"):
        def count():
            return len(self.slurm.read(f"{output}.steps").splitlines())
        target = count() + n
        until(lambda: count() >= target, f"{n} more steps", context=self.slurm.log)

    def wait_gone(self, name, host=None):
        until(lambda: name not in (host or self.host).names(), f"{name} to go", context=self.slurm.log)

    def check_preemption(self):
        job, name = self.train()
        end = self.slurm.path("end")
        self.slurm.submit("high", "urgent.out", f"sh -c 'until [ -e {end} ]; do sleep 0.1; done'")
        self.host.wait_state(name, "suspended")
        self.assertEqual(self.host.get(name)["frame_buffer_used"], 64 << 20)
        with open(end, "w"):
            pass
        self.host.wait_state(name, "running")
        self.wait_steps()
        self.finish(job)
        self.wait_gone(name)

    def check_slow_leave(self, step, stands_still):
        """Slurm makes the program stand still in the middle of it."""
        job, name = self.train()
        (guest,) = [process["pid"] for process in self.host.get(name)["processes"]]
        sentry = find_sentry(guest)
        self.host.arm(f"suspend.{step}", "pause")
        self.slurm.run("scontrol", "suspend", job)
        self.host.wait_paused(f"suspend.{step}")
        until(lambda: stands_still(sentry), "Slurm to let the job stand still", context=self.slurm.log)
        self.host.remove_pause(f"suspend.{step}")
        self.host.wait_state(name, "suspended")
        until(lambda: is_stopped(guest), "the program to stand still again", context=self.slurm.log)
        self.slurm.run("scontrol", "resume", job)
        self.wait_steps()
        self.host.wait_state(name, "running")
        self.finish(job)
        self.wait_gone(name)
