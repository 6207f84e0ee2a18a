#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Slurm with two nodes on one machine, each with a vgpud over simulated GPUs (docs/slurm.md): a vGPU for each job
step, jobs that leave their GPU when Slurm suspends them, and what Slurm does when a node fails."""
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import case
import stage
from host import Host
from wait import PATIENCE, until

PLUGIN = stage.PRIVATE / "slurm" / "openvgpu-slurm.so"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scancel")
FREEZER = "/sys/fs/cgroup/freezer"
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
ProctrackType=proctrack/{tracking}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
SchedulerTimeSlice=5
SchedulerParameters=sched_min_interval=100000
GresTypes=vgpu
DebugFlags=NO_CONF_HASH
Epilog={directory}/{node}/epilog.sh
PlugStackConfig={directory}/{node}/plugstack.conf
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 Gres=vgpu:no_consume:4 Weight=2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 Gres=vgpu:no_consume:4 Weight=1
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
        self.tracking = tracking
        self.nodes = {f"n{i}": host for i, host in enumerate(hosts, 1)}
        self.processes = {}
        os.makedirs(os.path.join(directory, "state"))
        ports = free_ports(1 + len(hosts))
        for node, host in self.nodes.items():
            self.make_node(node, host.run_directory, ports)
        with open(os.open(self.path("key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as key:
            key.write(os.urandom(64))
        self.environment = {"PATH": SBIN, "SLURM_CONF": self.path("n1/slurm.conf"), "LANG": "C"}

    def make_node(self, node, run_directory, ports):
        """A node has a vgpud of its own, so also a plugstack.conf."""
        os.makedirs(self.path(f"spool-{node}"))
        os.makedirs(self.path(node))
        self.write(f"{node}/slurm.conf", CONFIGURATION.format(
            directory=self.directory, node=node, host=socket.gethostname().split(".")[0], ports=ports,
            tracking=self.tracking))
        self.write(f"{node}/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        self.write(f"{node}/gres.conf", "Name=vgpu Count=4\n")
        self.write(f"{node}/epilog.sh", self.get_epilog(run_directory))
        os.chmod(self.path(f"{node}/epilog.sh"), 0o755)
        self.write(f"{node}/plugstack.conf", f"required {PLUGIN} run={run_directory}\n")

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
        return "".join(f"--- {name}\n{self.read(f'{name}.log')}" for name in self.processes)

    def spawn(self, name, program, *arguments):
        with open(self.path(f"{name}.log"), "a") as log:
            self.processes[name] = subprocess.Popen(
                [program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, start_new_session=True)

    def start(self):
        self.spawn("munged", "munged", "--force", "--foreground", f"--key-file={self.path('key')}",
                   f"--socket={self.path('munge.sock')}", f"--pid-file={self.path('munge.pid')}",
                   f"--log-file={self.path('munge.log')}", f"--seed-file={self.path('munge.seed')}")
        until(lambda: os.path.exists(self.path("munge.sock")), "munged", context=self.log)
        self.spawn("slurmctld", "slurmctld", "-D", "-i")
        for node in self.nodes:
            self.start_node(node)
            self.wait_node(node, "idle")

    def start_node(self, node):
        self.spawn(node, "slurmd", "-D", "-N", node, "-f", self.path(f"{node}/slurm.conf"))

    def kill_node(self, node):
        """slurmd alone: what it has started runs on."""
        self.processes[node].kill()
        self.processes[node].wait()

    def wait_node(self, node, state):
        until(lambda: self.run("sinfo", "-h", "-p", "both", "-n", node, "-o", "%T", code=None).stdout.strip() == state,
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


def missing():
    if os.geteuid() != 0:
        return "needs root"
    programs = [name for name in PROGRAMS if not shutil.which(name, path=SBIN)]
    if programs:
        return f"needs {' '.join(programs)}: apt-get install slurmctld slurmd slurm-client munge"
    return ""


class SlurmCase(case.Case):
    TRACKING = "linuxproc"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.second = Host(devices="1xH200:512M").start()
        cls.addClassCleanup(cls.second.close)
        cls.slurm = Slurm(os.path.join(cls.host.directory, "slurm"), [cls.host, cls.second], cls.TRACKING)
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


@unittest.skipIf(missing(), missing())
class Jobs(SlurmCase):
    def test_a_step_has_a_vgpu_of_its_own(self):
        done = self.slurm.run("srun", "--vgpu=64M", stage.GUESTS / "guest-train", "--size", "32M", "--steps", "2")
        self.assertIn("done 2 ok", done.stdout)
        until(lambda: not self.host.names(), "its vGPU to go", context=self.slurm.log)

    def test_a_step_has_the_share_and_the_class_that_it_asks_for(self):
        done = self.slurm.run("srun", "--vgpu=64M:class=interactive:share=30", stage.VGPU, "ls", "--json")
        (vgpu,) = json.loads(done.stdout)["vgpus"]
        self.assertEqual((vgpu["swap_class"], vgpu["share"], vgpu["frame_buffer"]), ("interactive", 30, 64 << 20))

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
        for wrong in ("20X", "20G:share=0", "20G:share=101", "20G:part=3", "0", "20G:class=urgent", "20G:"):
            with self.subTest(wrong):
                done = self.slurm.run("srun", f"--vgpu={wrong}", "true", code=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("is not a size", done.stderr)

    def test_a_job_that_is_preempted_leaves_its_gpu(self):
        self.check_preemption()

    def test_a_vgpu_that_leaves_more_slowly_than_slurm_waits_leaves_all_the_same(self):
        for step in "reserved", "closed", "released", "moved":
            with self.subTest(step):
                self.check_slow_leave(step, is_stopped)

    def test_a_program_that_waits_for_all_its_children_does_not_wait_for_the_sentry(self):
        for options in ([], ["--vgpu=64M"]):
            done = self.slurm.run("srun", *options, "/usr/bin/python3", "-c", "import os; os.wait()", code=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("ChildProcessError", done.stderr)

    def test_the_attendant_waits_for_the_operation_of_somebody_else(self):
        job, name = self.train()
        (guest,) = [process["pid"] for process in self.host.get(name)["processes"]]
        sentry = find_sentry(guest)
        self.host.arm("migrate.copied", "pause")
        mover = threading.Thread(target=self.host.vgpu, args=("migrate", name, "--device", 1))
        mover.start()
        try:
            self.host.wait_paused("migrate.copied")
            os.kill(sentry, signal.SIGTSTP)
        finally:
            self.host.remove_pause("migrate.copied")
            mover.join()
        self.host.wait_state(name, "suspended")
        os.kill(sentry, signal.SIGCONT)
        self.host.wait_state(name, "running")
        self.wait_steps()
        self.slurm.run("scancel", job)
        self.wait_gone(name)

    def test_a_job_that_stands_still_without_a_notice_leaves_its_gpu(self):
        """Slurm may suspend a job before there is a sentry to hear of it."""
        job, name = self.train()
        (guest,) = [process["pid"] for process in self.host.get(name)["processes"]]
        sentry = find_sentry(guest)
        for pid in guest, sentry:
            os.kill(pid, signal.SIGSTOP)
        self.host.wait_state(name, "suspended")
        until(lambda: is_stopped(guest), "the program to stand still again", context=self.slurm.log)
        for pid in guest, sentry:
            os.kill(pid, signal.SIGCONT)
        self.host.wait_state(name, "running")
        self.wait_steps()
        self.slurm.run("scancel", job)
        self.wait_gone(name)

    def test_a_job_that_is_cancelled_leaves_no_vgpu(self):
        job, name = self.train()
        self.slurm.run("scancel", job)
        self.wait_gone(name)

    def test_tasks_are_in_one_vgpu_or_each_in_its_own(self):
        program = "sh -c 'echo $SLURM_PROCID $OPENVGPU_VGPU; exec {} --size 40M --steps 2'".format(
            stage.GUESTS / "guest-train")
        for options, n_vgpus in ([], 1), (["--vgpu-per-task"], 2):
            with self.subTest(options):
                done = self.slurm.run("srun", "-n2", "--overcommit", "--vgpu=96M", *options, *shlex.split(program))
                self.assertEqual(done.stdout.count("done 2 ok"), 2, done)
                ranks = dict(re.findall(r"^([01]) ([0-9a-f-]{36})$", done.stdout, re.M))
                self.assertEqual((len(ranks), len(set(ranks.values()))), (2, n_vgpus), done)

    def test_each_task_has_a_quota_of_its_own_and_leaves_with_all(self):
        self.slurm.write("ranks.sh", f"#!/bin/sh\nexec srun -n2 --overcommit --vgpu=128M --vgpu-per-task -l "
                         f"{stage.GUESTS}/guest-train --pause 20\n")
        job = self.slurm.run("sbatch", "--parsable", "-p", "low", "-o", self.slurm.path("ranks"),
                             self.slurm.path("ranks.sh")).stdout.strip()
        until(lambda: self.slurm.read("ranks").count("ready") == 2, "both tasks to begin",
              context=lambda: self.slurm.read("ranks") + self.slurm.log())
        names = [f"job-{job}-0-0", f"job-{job}-0-1"]
        self.assertEqual(sorted(self.host.names()), names)
        self.slurm.run("scontrol", "suspend", job)
        for name in names:
            self.host.wait_state(name, "suspended")
        self.slurm.run("scontrol", "resume", job)
        for name in names:
            self.host.wait_state(name, "running")
        self.slurm.run("scancel", "--signal=TERM", job)
        until(lambda: self.slurm.read("ranks").count("done") == 2, "both tasks to end", context=self.slurm.log)
        self.assertEqual(len(re.findall(r"done \d+ ok", self.slurm.read("ranks"))), 2, self.slurm.read("ranks"))
        for name in names:
            self.wait_gone(name)

    def test_a_vgpu_for_each_task_needs_a_size(self):
        done = self.slurm.run("srun", "--vgpu-per-task", "true", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Give --vgpu=SIZE as well", done.stderr)

    def test_a_step_on_two_nodes_has_a_vgpu_on_each(self):
        done = self.slurm.run("srun", "-p", "both", "-N2", "-l", "--vgpu=64M", "sh", "-c",
                              f"{stage.VGPU} ls; exec {stage.GUESTS}/guest-train --size 32M --steps 2")
        self.assertEqual(done.stdout.count("done 2 ok"), 2, done)
        self.assertEqual(len(re.findall(r"^[01]: job-\d+-0 ", done.stdout, re.M)), 2, done)

    def test_an_urgent_job_gets_the_memory_of_the_one_it_preempts(self):
        """Their quotas do not fit on the GPU together; both compare every word at their end."""
        job, name = self.train(partition="both", size=32, quota=300)
        urgent, urgent_name = self.train(partition="urgent", size=32, quota=300, output="urgent.out")
        self.second.wait_state(name, "suspended")
        self.wait_steps(output="urgent.out")
        self.assertEqual(self.second.get(urgent_name)["state"], "running")
        self.finish(urgent, "urgent.out")
        self.second.wait_state(name, "running")
        self.wait_steps()
        self.finish(job)
        self.wait_gone(name, self.second)

    def test_jobs_of_one_gpu_take_turns(self):
        """Time slices: each job has the GPU in its own alone."""
        first, first_name = self.train(partition="slices", size=32, quota=64)
        second, second_name = self.train(partition="slices", size=32, quota=64, output="second.out")
        for _ in range(2):
            for running, off, output in ((first_name, second_name, "train.out"), (second_name, first_name, "second.out")):
                self.second.wait_state(off, "suspended")
                self.second.wait_state(running, "running")
                self.wait_steps(output=output)
        self.slurm.run("scancel", "--batch", "--signal=TERM", first, second)
        for output in "train.out", "second.out":
            until(lambda output=output: "done" in self.slurm.read(output), "the job to end", context=self.slurm.log)
            self.assertRegex(self.slurm.read(output), r"done \d+ ok")

    def test_daemons_that_are_started_anew_find_their_jobs(self):
        job, name = self.train()
        self.slurm.kill_node("n1")
        self.wait_steps()
        self.slurm.start_node("n1")
        self.host.restart()
        self.slurm.wait_node("n1", "allocated")
        self.wait_steps()
        self.slurm.run("scontrol", "suspend", job)
        self.host.wait_state(name, "suspended")
        self.slurm.run("scontrol", "resume", job)
        self.host.wait_state(name, "running")
        self.wait_steps()
        self.finish(job)
        self.wait_gone(name)

    def bring_back(self, node):
        self.slurm.start_node(node)
        self.slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.slurm.wait_node(node, "idle")

    def test_a_job_of_a_node_that_fails_begins_anew_on_another(self):
        job, name = self.train("--requeue", partition="both")
        (guest,) = [process["pid"] for process in self.second.get(name)["processes"]]
        stepd = read_stat(guest)[1]
        self.addCleanup(self.bring_back, "n2")
        self.slurm.kill_node("n2")
        for pid in stepd, guest:
            os.kill(pid, signal.SIGKILL)
        self.second.restart()
        self.wait_gone(name, self.second)
        self.slurm.write("train.out", "")
        self.slurm.run("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=failed")
        # Slurm waits for two minutes until it starts such a job again.
        until(lambda: "PENDING" in self.slurm.run("squeue", "-h", "-j", job, "-o", "%T").stdout, "the job to be requeued",
              context=self.slurm.log)
        self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        until(lambda: name in self.host.names(), f"{name} on the other node", context=self.slurm.log)
        self.wait_ready()
        self.wait_steps()
        self.finish(job)
        self.wait_gone(name)


def missing_for_freezing():
    return missing() or ("" if os.access(f"{FREEZER}/cgroup.procs", os.W_OK) else "needs the freezer of cgroup v1")


@unittest.skipIf(missing_for_freezing(), missing_for_freezing())
class Frozen(SlurmCase):
    """With control groups, Slurm sends signals to its own children only, and freezes a job where it stopped it."""

    TRACKING = "cgroup"

    def test_a_job_that_is_preempted_leaves_its_gpu(self):
        self.check_preemption()

    def test_a_vgpu_that_leaves_more_slowly_than_slurm_waits_leaves_all_the_same(self):
        for step in "closed", "released":
            with self.subTest(step):
                self.check_slow_leave(step, is_frozen)


if __name__ == "__main__":
    case.main()
