#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/slurm.md, as they stand there, in a real Slurm: GPU memory that Slurm counts, beside whole GPUs and
shards, and a real MPI."""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import unittest

import blocks
import case
import stage
from slurm import SBIN, Slurm, SlurmCase, free_ports, missing
from wait import until

DOCUMENT = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "slurm.md").read_text()
SHARE = stage.ROOT / "share" / "openvgpu" / "slurm"
MPI = stage.GUESTS / "guest-mpi"
MPICH = stage.GUESTS / "guest-mpich"
CORES = 4
MIB = 1 << 20


def read_document(file):
    """What it says of a configuration file."""
    return "\n".join(line for block in blocks.in_markdown(DOCUMENT) if block.skipped == file for line in block.text) + "\n"


class Recipes(Slurm):
    """What openvgpu-slurm-node prints takes the place of what it printed when the document was written."""

    def ask_node(self, node, *options):
        return subprocess.run([stage.ROOT / "bin" / "openvgpu-slurm-node", "--tiers", "low,high", "--node", node, "--run-dir",
                               self.nodes[node].run_directory, *options], check=True, capture_output=True, text=True).stdout

    def get_node(self, node, written):
        count, feature = re.match(r"NodeName=\S+ Gres=(\S+) (Feature=\S+)$", self.ask_node(node)).groups()
        others = re.sub(r"^.*?vgpu:high:[^, ]*", "", re.search(r" Gres=(\S+)", written)[1])
        return (f"NodeName={node} Gres={count}{others} {feature} {self.get_addresses()[node]} Boards=1 "
                f"SocketsPerBoard=1 CoresPerSocket={CORES} ThreadsPerCore=1 CPUs={CORES}")

    def get_configuration(self):
        text = re.sub(r"^NodeName=(\S+) .*", lambda line: self.get_node(line[1], line[0]), read_document("slurm.conf"),
                      flags=re.M)
        return text + "SlurmdParameters=config_overrides\n"

    def get_gres(self):
        if not os.path.exists(self.path("nvidia0")):
            os.mknod(self.path("nvidia0"), stat.S_IFCHR | 0o600, os.stat("/dev/null").st_rdev)
        text = read_document("gres.conf").replace("/dev/nvidia0", self.path("nvidia0"))
        return text + "".join(self.ask_node(node, "--gres-conf") for node in self.nodes)

    def make_node(self, node, run_directory):
        super().make_node(node, run_directory)
        tiers = re.search(r"`(tiers = \{ .*? mixed = .*?\})`", DOCUMENT, re.S)[1].replace("\n", " ")
        self.write(f"{node}/cli_filter.lua", re.sub(r"tiers = \{.*?\}", tiers, (SHARE / "cli_filter.lua").read_text()))


class RecipeCase(SlurmCase):
    SLURM = Recipes
    SECOND = {"devices": "2xH200:512M", "options": ["--leave-out", "0"]}

    def show(self, kind, name, word):
        return re.search(rf"\b{word}=(\S*)", self.slurm.run("scontrol", "-d", "show", kind, name).stdout)[1]

    def wait_job(self, job, state):
        until(lambda: self.show("job", job, "JobState") == state, f"job {job} to be {state}", context=self.slurm.log)

    def used(self, node, gres):
        return int(re.search(rf"(?:^|,){gres}:(\d+)", self.show("node", node, "GresUsed"))[1])


@unittest.skipIf(missing(), missing())
class Counted(RecipeCase):
    def tearDown(self):
        self.slurm.run("scontrol", "reconfigure")
        super().tearDown()

    def crowd(self):
        """Two jobs whose memory leaves no room for the third, and the third."""
        first = self.train(size=32, quota=700)
        second = self.train(size=32, quota=700, output="second.out")
        self.slurm.write("third.out", "")
        third = self.slurm.submit("low", "third.out", stage.GUESTS / "guest-train", "--size", "32M", "--pause", "20",
                                  options=["--vgpu=700M"])
        until(lambda: self.show("job", third, "Reason") == "Resources", "the third job to wait", context=self.slurm.log)
        return first, second, third

    def test_the_tier_above_gets_what_suspended_jobs_have(self):
        (first, name), (second, second_name), third = self.crowd()
        self.assertEqual(self.used("n1", "vgpu:low"), 1400 * MIB)
        urgent, urgent_name = self.train(f"--cpus-per-task={CORES}", partition="high", size=32, quota=900,
                                         output="urgent.out")
        for one in name, second_name:
            self.host.wait_state(one, "suspended")
        self.assertEqual((self.used("n1", "vgpu:low"), self.used("n1", "vgpu:high")), (1400 * MIB, 900 * MIB))
        self.assertEqual(self.show("job", third, "JobState"), "PENDING")
        self.finish(urgent, "urgent.out")
        for one in name, second_name:
            self.host.wait_state(one, "running")
        self.finish(first)
        self.wait_job(third, "RUNNING")
        self.finish(second, "second.out")
        self.wait_gone(urgent_name)

    def test_an_operator_gives_out_what_a_job_has_that_he_suspends(self):
        (first, name), (second, _), third = self.crowd()
        self.slurm.run("scontrol", "suspend", first)
        self.host.wait_state(name, "suspended")
        self.assertEqual(self.show("job", third, "JobState"), "PENDING")
        command = re.search(r"`(scontrol update NodeName=n1 [^`]*)`", DOCUMENT)[1]
        self.slurm.run(*command.replace("low:302G", "low:2748M").replace("high:282G", "high:2G").split())
        self.wait_job(third, "RUNNING")
        self.wait_ready("third.out")
        self.slurm.run("scancel", "--batch", "--signal=TERM", third)  # without, Slurm kills it half a minute later
        self.wait_gone(f"job-{third}-batch")
        self.slurm.run("scontrol", "reconfigure")
        self.slurm.run("scontrol", "resume", first)
        self.host.wait_state(name, "running")
        self.finish(first)
        self.finish(second, "second.out")

    def ask(self, *options):
        """What Slurm counts of such a job."""
        job = self.slurm.run("sbatch", "--parsable", "--hold", "--wrap=true", *options).stdout.strip()
        return re.search(r" TresPerNode=(\S*)", self.slurm.run("scontrol", "show", "job", job).stdout.replace("\n", " "))

    def test_what_is_asked_of_the_plugin_is_counted(self):
        for options, counted in ((["--vgpu=1.5G:share=25"], "vgpu:low:1536M"), (["--vgpu=20MiB", "-p", "high"], "vgpu:high:20M"),
                                 (["--vgpu=30M", "--vgpu-per-task", "-n3"], "vgpu:low:90M"),
                                 (["--vgpu=30M", "--gres=vgpu:low:50M"], "vgpu:low:50M")):
            with self.subTest(options=options):
                self.assertEqual(self.ask(*options)[1], f"gres:{counted}")
        self.assertIsNone(self.ask())

    def test_what_no_node_has_is_refused_when_it_is_submitted(self):
        done = self.slurm.run("sbatch", "--vgpu=900G", "--wrap=true", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Requested node configuration is not available", done.stderr)

    def test_a_node_says_which_gpus_it_has(self):
        self.assertIn("ok", self.slurm.run("srun", "-C", "nvidia_h200", "--vgpu=64M", stage.GUESTS / "guest-train", "--size",
                                           "16M", "--steps", "1").stderr)


@unittest.skipIf(missing(), missing())
class Overcommitted(RecipeCase):
    """Jobs whose quotas, and memory, exceed the GPU together."""

    HOST = {"devices": "1xH200:512M", "pool": "2G", "options": ["--overcommit", "all", "--swap-time", "50"]}

    def check_both_work(self, *outputs):
        for _ in range(2):
            for output in outputs:
                self.wait_steps(output=output)

    def test_jobs_of_two_tiers_that_slurm_lets_run_at_once(self):
        """There is a free core, so it suspends nobody."""
        low, _ = self.train(size=320, quota=400)
        high, _ = self.train(partition="high", size=320, quota=400, output="high.out")
        self.check_both_work("train.out", "high.out")
        for job in low, high:
            self.assertEqual(self.show("job", job, "JobState"), "RUNNING")
        self.finish(high, "high.out")
        self.finish(low)

    def test_jobs_of_one_tier_that_has_more_than_the_gpu(self):
        self.addCleanup(self.slurm.run, "scontrol", "reconfigure")
        self.slurm.run("scontrol", "update", "NodeName=n1", "Gres=vgpu:low:1G,vgpu:high:512M")
        first, name = self.train(size=320, quota=400)
        second, second_name = self.train(size=320, quota=400, output="second.out")
        self.check_both_work("train.out", "second.out")
        urgent, _ = self.train(f"--cpus-per-task={CORES}", partition="high", size=320, quota=400, output="urgent.out")
        for one in name, second_name:
            self.host.wait_state(one, "suspended")
        self.wait_steps(output="urgent.out")
        self.assertEqual([self.host.get(one)["state"] for one in (name, second_name)], ["suspended"] * 2)
        self.finish(urgent, "urgent.out")
        self.check_both_work("train.out", "second.out")
        self.finish(first)
        self.finish(second, "second.out")


@unittest.skipIf(missing(), missing())
class Mixed(RecipeCase):
    """A node with a GPU for vGPUs and one that Slurm gives away whole, or in shards."""

    def hold(self, output, *options):
        """A job that has what it asks for, once it has begun."""
        self.slurm.write(output, "")
        job = self.slurm.submit("mixed", output, "sh -c 'echo gpus=$CUDA_VISIBLE_DEVICES; exec sleep 600'", options=options)
        until(lambda: "gpus=" in self.slurm.read(output), f"{output} to begin", context=self.slurm.log)
        return job, self.slurm.read(output).strip()

    def test_each_gets_what_it_asks_for(self):
        gpu, seen = self.hold("gpu", "--gres=gpu:1")
        self.assertEqual(seen, "gpus=0")
        vgpu, seen = self.hold("vgpu", "--vgpu=300M")
        self.assertEqual(seen, f"gpus={self.second.device(1)['uuid']}")
        shard = self.slurm.submit("mixed", "shard", "true", options=["--gres=shard:1"])
        more = self.slurm.submit("mixed", "more", "true", options=["--vgpu=300M"])
        for job in shard, more:
            until(lambda job=job: self.show("job", job, "Reason") in ("Resources", "Priority"), "the job to wait",
                  context=self.slurm.log)
        self.slurm.run("scancel", gpu)
        self.wait_job(shard, "COMPLETED")
        self.slurm.run("scancel", vgpu)
        self.wait_job(more, "COMPLETED")

    def test_shards_share_the_other_gpu(self):
        for i in range(2):
            self.assertEqual(self.hold(f"shard-{i}", "--gres=shard:2")[1], "gpus=0")
        self.hold("vgpu", "--vgpu=500M")
        more = self.slurm.submit("mixed", "more", "true", options=["--gres=shard:1"])
        until(lambda: self.show("job", more, "Reason") == "Resources", "the job to wait", context=self.slurm.log)

    def test_a_job_has_one_or_the_other(self):
        for options in (["--gres=gpu:1"], ["--gres=shard:1"], ["--gpus=1"]):
            with self.subTest(options=options):
                done = self.slurm.run("srun", "-p", "mixed", "--vgpu=64M", *options, "true", code=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("leave out one of both", done.stderr)


@unittest.skipIf(missing() or not MPI.exists(), missing() or "needs Open MPI: apt-get install openmpi-bin libopenmpi-dev")
class Mpi(RecipeCase):
    """Ranks of a real MPI, whose sums show each one that has fallen behind or lost its memory."""

    def setUp(self):
        self.slurm.environment["OMPI_MCA_mpi_yield_when_idle"] = "1"

    def check(self, command, names, *options, signal_options=()):
        """Preempted in the middle; all ranks go on, with the right sums."""
        self.slurm.write("ranks", "")
        job = self.slurm.submit("low", "ranks", *command, MPI, "32M", "20", options=["-n2", *options])
        self.wait_ready("ranks")
        names = [name.format(job) for name in names]
        self.assertEqual(sorted(self.host.names()), names)
        end = self.slurm.path("end-of-urgent")
        self.slurm.submit("high", "urgent", f"sh -c 'until [ -e {end} ]; do sleep 0.1; done'", options=["-c", str(CORES)])
        for name in names:
            self.host.wait_state(name, "suspended")
        self.slurm.write(end, "")
        self.addCleanup(os.unlink, end)
        for name in names:
            self.host.wait_state(name, "running")
        n = self.slurm.read("ranks").count(" ok")
        until(lambda: self.slurm.read("ranks").count(" ok") > n, "another step", context=self.slurm.log)
        self.slurm.run("scancel", "--signal=USR1", *signal_options, job)
        until(lambda: "done" in self.slurm.read("ranks"), "the ranks to end",
              context=lambda: self.slurm.read("ranks") + self.slurm.log())
        self.assertRegex(self.slurm.read("ranks"), r"done \d+, 2 ranks: ok")
        self.assertNotIn("BAD", self.slurm.read("ranks"))
        for name in names:
            self.wait_gone(name)

    def test_srun_gives_each_rank_a_vgpu(self):
        self.check(["srun", "--mpi=pmix", "-n2", "--vgpu=128M", "--vgpu-per-task"], ["job-{}-0-0", "job-{}-0-1"])

    def test_the_ranks_of_a_step_share_a_vgpu(self):
        self.check(["srun", "--mpi=pmix", "-n2", "--vgpu=128M"], ["job-{}-0"])

    def test_srun_uses_the_vgpu_of_its_script(self):
        self.check(["srun", "--mpi=pmix", "-n2"], ["job-{}-batch"], "--vgpu=128M")

    def test_mpirun_uses_the_vgpu_of_its_script(self):
        self.check(["mpirun", "--allow-run-as-root", "-n", "2"], ["job-{}-batch"], "--vgpu=128M", signal_options=["--batch"])


@unittest.skipIf(missing() or not MPICH.exists(), missing() or "needs MPICH: apt-get install mpich libmpich-dev")
class Pmi2(SlurmCase):
    """Ranks of MPICH, which Slurm's own PMI2 brings together, on one node and on two. Not in CI, which has no MPICH."""

    def check(self, partition, options, vgpus):
        self.slurm.write("ranks", "")
        job = self.slurm.submit(partition, "ranks", "srun", "--mpi=pmi2", "-n2", *options, "--vgpu=128M", MPICH, "32M", "20",
                                options=["-n2", "-O", *(["-N2"] if partition == "both" else [])])
        self.wait_ready("ranks")
        names = [(host, f"job-{job}-{name}") for host, name in vgpus]
        for host in self.host, self.second:
            self.assertEqual(sorted(host.names()), [name for one, name in names if one is host])
        self.slurm.run("scontrol", "suspend", job)
        for host, name in names:
            host.wait_state(name, "suspended")
        self.slurm.run("scontrol", "resume", job)
        n = self.slurm.read("ranks").count(" ok")
        until(lambda: self.slurm.read("ranks").count(" ok") > n, "another step", context=self.slurm.log)
        self.slurm.run("scancel", "--signal=USR1", job)
        until(lambda: "done" in self.slurm.read("ranks"), "the ranks to end",
              context=lambda: self.slurm.read("ranks") + self.slurm.log())
        self.assertRegex(self.slurm.read("ranks"), r"done \d+, 2 ranks: ok")
        self.assertNotIn("BAD", self.slurm.read("ranks"))
        for host, name in names:
            self.wait_gone(name, host)

    def test_the_ranks_of_a_step_share_a_vgpu(self):
        self.check("low", ["-O"], [(self.host, "0")])

    def test_each_rank_has_a_vgpu(self):
        self.check("low", ["-O", "--vgpu-per-task"], [(self.host, "0-0"), (self.host, "0-1")])

    def test_ranks_on_two_nodes(self):
        self.check("both", ["-N2"], [(self.host, "0"), (self.second, "0")])

    def test_ranks_on_two_nodes_each_with_a_vgpu_for_tasks(self):
        self.check("both", ["-N2", "--vgpu-per-task"], [(self.host, "0-0"), (self.second, "0-1")])


class Accounted(Slurm):
    """With slurmdbd, and a MariaDB of its own that asks for no password."""

    def get_configuration(self):
        self.account_ports = getattr(self, "account_ports", None) or free_ports(2)
        return super().get_configuration() + (
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
            f"AccountingStoragePort={self.account_ports[0]}\nAccountingStoragePass={self.path('munge.sock')}\n")

    def start_database(self):
        data = self.path("database")
        self.run("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db")
        self.spawn("mariadbd", "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--bind-address=127.0.0.1",
                   f"--port={self.account_ports[1]}", f"--socket={self.path('database.sock')}", "--skip-grant-tables",
                   "--innodb-buffer-pool-size=64M")
        until(lambda: self.run("mariadb-admin", "--no-defaults", f"--socket={self.path('database.sock')}", "ping",
                               code=None).returncode == 0, "mariadbd", context=self.log)

    def start_accounts(self):
        self.start_database()
        self.write("n1/slurmdbd.conf", f"""AuthType=auth/munge
AuthInfo=socket={self.path("munge.sock")}
DbdHost={self.host_name}
DbdAddr=127.0.0.1
DbdPort={self.account_ports[0]}
SlurmUser=root
PidFile={self.path("slurmdbd.pid")}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={self.account_ports[1]}
StorageUser=root
StorageLoc=slurm
""")
        os.chmod(self.path("n1/slurmdbd.conf"), 0o600)
        self.spawn("slurmdbd", "slurmdbd", "-D")
        add = "sacctmgr", "-i", "-Q", "add", "cluster", "t"
        until(lambda: self.run(*add, code=None).returncode == 0, "slurmdbd",
              context=lambda: f"{self.run(*add, code=None)}\n{self.log()}")


def missing_for_accounts():
    programs = [name for name in ("slurmdbd", "mariadbd") if not shutil.which(name, path=SBIN)]
    return missing() or (f"needs {' '.join(programs)}: apt-get install slurmdbd mariadb-server" if programs else "")


@unittest.skipIf(missing_for_accounts(), missing_for_accounts())
class Accounts(SlurmCase):
    """Not in CI, which has no MariaDB."""

    SLURM = Accounted

    def test_the_use_of_a_job_is_its_comment(self):
        job, name = self.train()
        self.host.wait_for(name, lambda vgpu: vgpu["processes"], "to have a program")
        self.finish(job)
        self.wait_gone(name)
        ask = ["sacct", "-n", "-P", "-X", "-j", job, "-o", "State,AdminComment"]
        until(lambda: "COMPLETED|vgpu n1:" in self.slurm.run(*ask).stdout, "the comment",
              context=lambda: self.slurm.run(*ask).stdout + self.slurm.log())
        (line,) = [line for line in self.slurm.read("jobs.csv").splitlines() if line.startswith(f"{job},")]
        self.assertEqual(self.slurm.run(*ask).stdout.strip(), f"COMPLETED|vgpu n1: {line}")


if __name__ == "__main__":
    case.main()
