#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In a real Slurm (docs/slurm.md): a vGPU for each job step, jobs that leave their GPU when Slurm suspends them, and what
Slurm does when a node fails."""
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
import unittest

import case
import stage
from slurm import FREEZER, SlurmCase, find_sentry, is_frozen, is_stopped, missing, read_stat
from wait import PATIENCE, until


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

    def run_script(self, output, *lines, code=0):
        """What a batch script writes, once it has ended, and its job."""
        self.slurm.write(f"{output}.sh", "#!/bin/sh\n" + "\n".join(map(str, lines)) + "\n")
        done = self.slurm.run("sbatch", "--wait", "--parsable", "-p", "low", "-o", self.slurm.path(f"{output}.%a"),
                              self.slurm.path(f"{output}.sh"), code=code)
        return done.stdout.strip(), self.slurm.read(f"{output}.4294967294")

    def test_a_step_in_a_script_has_the_vgpu_of_the_script_unless_it_asks_for_another(self):
        tell = "sh -c 'echo $OPENVGPU_VGPU'"
        _, text = self.run_script("nested", "#SBATCH --vgpu=64M:share=30", tell, f"srun {tell}", f"srun --vgpu=32M {tell}",
                                  f"srun --vgpu=32M {stage.VGPU} ls --json")
        # On a busy machine srun says that it waits for the step before it.
        script, joined, own, *told = [line for line in text.splitlines() if not line.startswith("srun: ")]
        self.assertEqual(script, joined)
        self.assertNotEqual(script, own)
        self.assertEqual([(vgpu["frame_buffer"], vgpu["share"]) for vgpu in json.loads("\n".join(told))["vgpus"]],
                         [(64 << 20, 30), (32 << 20, 0)])

    def test_a_script_that_joined_steps_is_preempted(self):
        self.slurm.write("train.out", "")
        self.slurm.write("joined.sh", f"#!/bin/sh\n#SBATCH --vgpu=128M\nexec srun {stage.GUESTS}/guest-train --pause 20 --log "
                         f"{self.slurm.path('train.out.steps')}\n")
        job = self.slurm.run("sbatch", "--parsable", "-o", self.slurm.path("train.out"), self.slurm.path("joined.sh")).stdout.strip()
        self.wait_ready()
        name = f"job-{job}-batch"
        self.assertEqual(self.host.names(), [name])
        self.slurm.run("scontrol", "suspend", job)
        self.host.wait_state(name, "suspended")
        self.slurm.run("scontrol", "resume", job)
        self.host.wait_state(name, "running")
        self.wait_steps()
        self.slurm.run("scancel", "--signal=TERM", job)
        until(lambda: "done" in self.slurm.read("train.out"), "the job to end", context=self.slurm.log)
        self.assertRegex(self.slurm.read("train.out"), r"done \d+ ok")
        self.wait_gone(name)

    def test_each_step_after_salloc_has_a_vgpu(self):
        done = self.slurm.run("salloc", "--vgpu=64M", "sh", "-c", f"srun {stage.VGPU} ls; srun {stage.VGPU} ls")
        self.assertEqual(re.findall(r"^job-\d+-(\d) ", done.stdout, re.M), ["0", "1"])

    def test_each_job_of_an_array_has_a_vgpu(self):
        done = self.slurm.run("sbatch", "--wait", "--parsable", "--array=1-2", "--vgpu=64M", "-o", self.slurm.path("array.%a"),
                              f"--wrap={stage.VGPU} ls")
        names = [name for task in "12" for name in re.findall(r"^job-(\d+)-batch ", self.slurm.read(f"array.{task}"), re.M)]
        self.assertEqual(len(set(names)), 2, done)

    def test_what_is_wrong_in_a_script_is_said_by_sbatch(self):
        for wrong in "64X", "64M:class=urgent", "64M:share=0":
            with self.subTest(wrong):
                self.slurm.write("wrong.sh", f"#!/bin/sh\n#SBATCH --vgpu={wrong}\n")
                done = self.slurm.run("sbatch", self.slurm.path("wrong.sh"), code=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"--vgpu: '{wrong}' is not a size", done.stderr)

    def test_what_cannot_be_is_said_in_the_output_of_the_script(self):
        _, text = self.run_script("large", "#SBATCH --vgpu=900G", "echo ran", code=None)
        self.assertIn("sbatch: --vgpu: no vGPU for this step: device", text)
        self.assertNotIn("ran", text.split("\n"))

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

    @contextlib.contextmanager
    def leaving(self):
        """A job of the second node that is on its way off the GPU, for as long as the test wants; its vGPU."""
        job, name = self.train(partition="both", size=32, quota=300)
        self.second.arm("mover.job-copied", "pause")
        try:
            yield name
        finally:
            self.second.remove_pause("mover.job-copied")
        self.second.wait_state(name, "running")
        self.finish(job)
        self.wait_gone(name, self.second)

    def start_urgent(self):
        """At a terminal, so to speak: its memory does not fit beside that of the first."""
        urgent = subprocess.Popen(
            ["srun", "-p", "urgent", "--vgpu=300M", stage.GUESTS / "guest-train", "--size", "32M", "--steps", "2"], text=True,
            env=self.slurm.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(urgent.stdout.close)
        self.addCleanup(urgent.kill)
        self.second.wait_paused("mover.job-copied")
        return urgent

    def test_an_urgent_job_waits_as_long_as_memory_is_on_its_way(self):
        with self.leaving() as name:
            begin = time.monotonic()
            urgent = self.start_urgent()
            line = urgent.stdout.readline()
            while "srun: --vgpu" not in line and line:  # Slurm's own words come before
                line = urgent.stdout.readline()
            self.assertIn(f"waiting for room: {name} is leaving the GPU", line)
            # Longer than for a job of which nobody knows whether it will leave.
            until(lambda: time.monotonic() - begin > 11 or urgent.poll() is not None, "time to pass")
            self.assertIsNone(urgent.poll())
            self.second.remove_pause("mover.job-copied")
            text = urgent.stdout.read()
            self.assertEqual(urgent.wait(PATIENCE), 0, text)
            self.assertRegex(text, r"srun: --vgpu: waited \d+ seconds for room\n(?s:.*)done 2 ok")

    def test_an_urgent_job_does_not_wait_for_longer_than_is_configured(self):
        file = "n2/plugstack.conf"
        self.addCleanup(self.slurm.write, file, self.slurm.read(file))
        self.slurm.write(file, self.slurm.read(file).rstrip() + " wait=3\n")
        with self.leaving():
            urgent = self.start_urgent()
            text = urgent.communicate(timeout=PATIENCE)[0]
            self.assertNotEqual(urgent.returncode, 0)
            self.assertIn("(for 3 seconds at most)", text)
            self.assertIn("no vGPU for this step", text)

    def test_a_job_that_is_cancelled_while_it_waits_leaves_no_vgpu(self):
        with self.leaving():
            urgent = self.start_urgent()
            until(lambda: "NoRoom" in self.second.log(), "the step to wait")
            self.slurm.run("scancel", "--partition=urgent")
            self.second.remove_pause("mover.job-copied")
            text = urgent.communicate(timeout=PATIENCE)[0]
            self.assertIn("CANCELLED", text)

    def test_a_wait_that_is_no_number_is_named(self):
        file = "n1/plugstack.conf"
        self.addCleanup(self.slurm.write, file, self.slurm.read(file))
        self.slurm.write(file, self.slurm.read(file).rstrip() + " wait=3min\n")
        done = self.slurm.run("srun", "true", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("wait=3min is no number of seconds", done.stderr)

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

    def begin_anew(self, job):
        """Slurm waits for two minutes until it starts such a job again."""
        until(lambda: "PENDING" in self.slurm.run("squeue", "-h", "-j", job, "-o", "%T").stdout, "the job to be requeued",
              context=self.slurm.log)
        self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")

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
        self.begin_anew(job)
        until(lambda: name in self.host.names(), f"{name} on the other node", context=self.slurm.log)
        self.wait_ready()
        self.wait_steps()
        self.finish(job)
        self.wait_gone(name)

    def suspend_on_second(self, *options, is_preempted=False):
        """A job whose memory is off the GPU of the second node; (job, vGPU, its program)."""
        job, name = self.train(*options, partition="both")
        (guest,) = [process["pid"] for process in self.second.get(name)["processes"]]
        if is_preempted:
            self.slurm.submit("urgent", "urgent.out", "sleep 600", options=["--no-requeue"])
        else:
            self.slurm.run("scontrol", "suspend", job)
        self.second.wait_state(name, "suspended")
        until(lambda: is_stopped(guest), "the program to stand still", context=self.slurm.log)
        return job, name, guest

    def test_a_suspended_job_outlives_slurmd(self):
        job, name, _ = self.suspend_on_second()
        self.slurm.kill_node("n2")
        self.slurm.start_node("n2")
        self.second.restart()
        self.slurm.wait_node("n2", "idle")  # so it calls one whose only job is suspended
        self.assertEqual(self.second.get(name)["state"], "suspended")
        self.slurm.run("scontrol", "resume", job)
        self.second.wait_state(name, "running")
        self.wait_steps()
        self.finish(job)
        self.wait_gone(name, self.second)

    def test_a_suspended_job_of_a_node_that_is_set_down_leaves_nothing_and_begins_anew(self):
        job, name, guest = self.suspend_on_second("--requeue", is_preempted=True)
        former = self.second.get(name)["uuid"]
        self.addCleanup(self.slurm.wait_node, "n2", "idle")
        self.addCleanup(self.slurm.run, "scontrol", "update", "NodeName=n2", "State=RESUME")
        self.slurm.write("train.out", "")
        self.slurm.run("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=failed")
        self.wait_gone(name, self.second)
        until(lambda: not os.path.exists(f"/proc/{guest}"), "its program to end", context=self.slurm.log)
        self.begin_anew(job)
        until(lambda: name in self.host.names(), f"{name} on the other node", context=self.slurm.log)
        self.assertNotEqual(self.host.get(name)["uuid"], former)
        self.wait_ready()
        self.finish(job)
        self.wait_gone(name)

    def test_a_suspended_job_of_a_node_that_fails_leaves_nothing_and_begins_anew(self):
        job, name, guest = self.suspend_on_second("--requeue")
        stepd = read_stat(guest)[1]
        self.addCleanup(self.bring_back, "n2")
        self.slurm.kill_node("n2")
        for pid in stepd, guest:
            os.kill(pid, signal.SIGKILL)
        self.wait_gone(name, self.second)
        self.slurm.write("train.out", "")
        self.slurm.run("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=failed")
        self.begin_anew(job)
        self.slurm.run("scontrol", "release", job)  # Slurm holds a job that an operator had suspended
        until(lambda: name in self.host.names(), f"{name} on the other node", context=self.slurm.log)
        self.wait_ready()
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
