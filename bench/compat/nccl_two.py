# SPDX-License-Identifier: Apache-2.0
"""NCCL: an all-reduce between two processes, on two devices where there are two."""
import os
import socket

import torch
import torch.distributed
import torch.multiprocessing


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def work(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank % torch.cuda.device_count())
    torch.distributed.init_process_group("nccl", rank=rank, world_size=world)
    ones = torch.ones(1 << 20, device="cuda")
    torch.distributed.all_reduce(ones)
    torch.cuda.synchronize()
    print(f"NCCL rank {rank} of {world}: {'ok' if bool((ones == world).all()) else 'BAD'}",
          flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    devices = min(2, torch.cuda.device_count())
    torch.multiprocessing.spawn(work, args=(devices, free_port()), nprocs=devices)
