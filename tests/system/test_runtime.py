#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of the CUDA runtime on simulated GPUs: alone, in a vGPU, suspended and moved."""
import os
import shutil
import subprocess

import case
import stage
from wait import PATIENCE

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")

PROGRAM = r"""
#include <cstdio>
#include <cuda_runtime.h>

extern "C" __global__ void add(unsigned *words, unsigned value, unsigned long n)
{
        unsigned long i = blockIdx.x * (unsigned long)blockDim.x + threadIdx.x;

        if (i < n)
                words[i] += value;
}

__global__ void scale(float *numbers)
{
        numbers[threadIdx.x] *= 2;
}

int main()
{
        unsigned *device, host[256];
        cudaError_t error = cudaMalloc(&device, sizeof(host));

        if (error == cudaSuccess)
                error = cudaMemset(device, 0, sizeof(host));
        printf("begin %s\n", cudaGetErrorName(error));
        if (error != cudaSuccess)
                return 1;
        add<<<1, 256>>>(device, 7, 256);
        cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
        printf("add %s %u\n", cudaGetErrorName(cudaGetLastError()), host[255]);
        scale<<<1, 256>>>((float *)device);
        printf("scale %s\n", cudaGetErrorName(cudaGetLastError()));
        return 0;
}
"""


class Runtime(case.Case):
    def run_alone(self, command):
        """The program on the driver and the runtime of the simulated GPU, and nothing of ours beside."""
        driver = self.host.info()["driver_path"]
        return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              env=self.host.environment(
                                  OPENVGPU_SIM=os.path.join(self.host.run_directory, "sim"),
                                  LD_LIBRARY_PATH=os.path.dirname(driver)))

    def run_nvcc(self, *arguments):
        """Skips the test where it cannot: what is tested is not this machine's compiler."""
        try:
            done = subprocess.run([NVCC, *arguments], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            self.skipTest("nvcc takes too long here")
        if done.returncode:
            self.skipTest(f"nvcc does not work here: {done.stderr.strip()[-200:]}")
        return done.stdout

    def build(self, kind):
        """PROGRAM, linked with the runtime of that kind."""
        if not NVCC:
            self.skipTest("no nvcc on this machine")
        if "release 13." not in self.run_nvcc("--version"):
            self.skipTest("the nvcc of this machine is not one of CUDA 13")
        source, made, program = (os.path.join(self.host.directory, name)
                                 for name in ("program.cu", "program.o", f"program-{kind}"))
        if not os.path.exists(made):
            with open(source, "w") as file:
                file.write(PROGRAM)
            self.run_nvcc("-c", "-o", made, source)
        self.run_nvcc("-cudart", kind, "-o", program, made)
        return program

    def test_each_part_works_alone(self):
        done = self.run_alone([stage.GUESTS / "guest-runtime", "--check"])
        self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)
        self.assertEqual(done.stderr.count("no kernel '_Z5scalePfi'"), 1, done.stderr)
        self.assertEqual(done.stderr.count("cudaMalloc3DArray is not there"), 1, done.stderr)

    def test_each_part_works_in_a_vgpu(self):
        guest = self.host.run(self.host.create("train"), "guest-runtime", "--check")
        self.assertEqual(guest.join(), 0, guest.context())
        self.assertEqual(guest.lines, ["right"])

    def test_a_program_is_suspended_resumed_on_another_device_and_moved_back(self):
        self.host.create("train")
        log = os.path.join(self.host.directory, "runtime-steps")
        guest = self.host.run("train", "guest-runtime", "--log", log, log=log).wait_ready()
        self.assertGreaterEqual(self.host.get("train")["frame_buffer_used"], 11 << 20)
        self.host.vgpu("suspend", "train")
        self.assertEqual(self.host.device(0)["memory_used"], 0)
        self.host.vgpu("resume", "train", "--device", "1")
        guest.wait_steps()
        self.host.vgpu("migrate", "train", "--device", "0")
        guest.wait_steps()
        guest.finish()

    def test_what_nvcc_makes_runs_with_the_shared_runtime(self):
        program = self.build("shared")
        expected = ["begin cudaSuccess", "add cudaSuccess 7", "scale cudaErrorNotSupported"]
        done = self.run_alone([program])
        self.assertEqual(done.stdout.splitlines(), expected, done.stderr)
        self.assertIn("no kernel '_Z5scalePf'", done.stderr)
        guest = self.host.run(self.host.create("train"), program)
        self.assertEqual(guest.join(), 0, guest.context())
        self.assertEqual(guest.lines, expected)

    def test_what_has_nvidias_runtime_in_it_says_why_it_does_not_run(self):
        done = self.run_alone([self.build("static")])
        self.assertEqual(done.stdout, "begin cudaErrorInvalidValue\n")
        self.assertEqual(done.stderr.count("nvcc -cudart shared"), 1, done.stderr)


class SomeDevices(case.Case):
    """NVIDIA's runtime does not start in a program that is shown other devices than its driver has; nor does this one."""
    HOST = {"devices": "4xH200:1G"}

    def check_vgpus(self, n_seen, **environment):
        for devices in ("2", "0,1", "3,1", "2,0,1"):
            with self.subTest(devices=devices, environment=environment):
                n = devices.count(",") + 1
                self.host.create("job", device=devices)
                guest = self.host.run("job", "guest-runtime", "--check", n, **environment)
                self.assertEqual(guest.join(), 0, guest.context())
                self.assertEqual(guest.lines, ["right"])
                seen = self.host.run("job", "guest-devices", **environment).wait_ready()
                self.assertEqual([line.split()[0] for line in seen.lines],
                                 ["device"] * n + ["other"] * ((n_seen or n) - n) + ["ready"])
                self.assertEqual(seen.end_input(), 0, seen.context())
                self.host.wait_state("job", "idle")
                self.host.vgpu("rm", "job")

    def test_a_program_runs_in_a_vgpu_of_some_of_the_devices(self):
        self.check_vgpus(None)

    def test_a_program_runs_that_sees_all_devices(self):
        self.check_vgpus(4, OPENVGPU_ALL_DEVICES="1")


if __name__ == "__main__":
    case.main()
