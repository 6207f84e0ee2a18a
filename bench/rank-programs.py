# SPDX-License-Identifier: Apache-2.0
"""Programs of several ranks for bench/ranks: what each step comes to is a line in a file, to be compared.

usage: bench/rank-programs.py PROGRAM RANK WORLD PORT FILE [STEPS]

PROGRAM: ddp, fsdp, tensor, collectives, graphs, bandwidth. Without STEPS, it ends when FILE.stop is there; all ranks
then end after the same step. "plain" is for simulated GPUs: it needs no PyTorch and its ranks do not know each other.
"""
import os
import sys
import time

LOOK_EVERY = 8  # steps from one look for the end to the next: in between hosts run ahead
CONTEXT = 96


def plain(rank, path):
    """Memory that is filled anew with each step."""
    import ctypes
    cuda, context, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
    count = ctypes.c_int()
    assert cuda.cuInit(0) == 0 == cuda.cuDeviceGetCount(ctypes.byref(count))
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), rank % count.value) == 0
    assert cuda.cuCtxSetCurrent(context) == 0 == cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(16 << 20))

    def step(number):
        word = ctypes.c_uint32()
        assert cuda.cuMemsetD32_v2(address, number, ctypes.c_size_t(4 << 20)) == 0
        time.sleep(0.002)
        assert cuda.cuMemcpyDtoH_v2(ctypes.byref(word), address, ctypes.c_size_t(4)) == 0
        return word.value

    return step, lambda: os.path.exists(f"{path}.stop")


def network(torch, width=2048):
    return torch.nn.Sequential(*(layer for _ in range(6) for layer in (torch.nn.Linear(width, width), torch.nn.GELU())))


def train(torch, model, rank, device):
    """The step of a training: its loss, all bits of it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    generator = torch.Generator(device)

    def step(number):
        generator.manual_seed(1000 * number + rank)
        loss = (model(torch.randn(64, 2048, device=device, generator=generator)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss).hex()

    return step


def ddp(torch, rank, _world, device):
    model = torch.nn.parallel.DistributedDataParallel(network(torch).to(device), device_ids=[device.index])
    return train(torch, model, rank, device)


def fsdp(torch, rank, _world, device):
    from torch.distributed.fsdp import fully_shard
    model = network(torch).to(device)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    return train(torch, model, rank, device)


def make_block(torch, width, heads):
    """A layer of a decoder, whose heads and inner columns PyTorch's tensor parallelism divides among the ranks."""
    functional = torch.nn.functional

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("query", "key", "value", "out"):
                setattr(self, name, torch.nn.Linear(width, width, bias=False))
            self.wide, self.narrow = (torch.nn.Linear(width, 4 * width, bias=False),
                                      torch.nn.Linear(4 * width, width, bias=False))

        def forward(self, x):
            batch, length, _ = x.shape
            normal = functional.layer_norm(x, (width,))
            query, key, value = (part(normal).view(batch, length, -1, width // heads).transpose(1, 2)
                                 for part in (self.query, self.key, self.value))
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, -1))
            return x + self.narrow(functional.gelu(self.wide(functional.layer_norm(x, (width,)))))

    return Block()


def tensor(torch, _rank, world, device):
    """Tokens of a decoder, one with each step; a new prompt when the context is full."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    width, words = 1024, 32000
    mesh = init_device_mesh("cuda", (world,))
    plan = {"query": ColwiseParallel(), "key": ColwiseParallel(), "value": ColwiseParallel(), "out": RowwiseParallel(),
            "wide": ColwiseParallel(), "narrow": RowwiseParallel()}
    blocks = [parallelize_module(make_block(torch, width, 16).to(device), mesh, plan) for _ in range(8)]
    embedding = torch.randn(words, width, device=device)
    state = {}

    @torch.no_grad()
    def step(number):
        if number % CONTEXT == 0:
            state["tokens"] = torch.tensor([[(number + i) % words for i in range(8)]], device=device)
        x = embedding[state["tokens"]]
        for block in blocks:
            x = block(x)
        token = (x[:, -1] @ embedding.T).argmax(-1, keepdim=True)
        state["tokens"] = torch.cat([state["tokens"], token], 1)
        return int(token)

    return step


def collectives(torch, rank, world, device):
    """Each collective in turn, with numbers whose sums are exact."""
    distributed = torch.distributed
    others, before = (rank + 1) % world, (rank - 1) % world

    def check(name, number, got, expected):
        if not bool((got == expected).all()):
            raise SystemExit(f"rank {rank}, step {number}: {name} is wrong")

    def step(number):
        n = world << (8 + number % 12)
        base = torch.full((n,), float(number % 1000 + rank), device=device)
        total = sum(number % 1000 + r for r in range(world))
        got = base.clone()
        distributed.all_reduce(got)
        check("all_reduce", number, got, total)
        gathered = torch.empty(n * world, device=device)
        distributed.all_gather_into_tensor(gathered, base)
        for r in range(world):
            check("all_gather", number, gathered[r * n:(r + 1) * n], number % 1000 + r)
        part = torch.empty(n // world, device=device)
        distributed.reduce_scatter_tensor(part, base)
        check("reduce_scatter", number, part, total)
        got = base.clone()
        distributed.broadcast(got, number % world)
        check("broadcast", number, got, number % 1000 + number % world)
        got = base.clone()
        distributed.reduce(got, number % world)
        check("reduce", number, got, total if rank == number % world else got[0])
        swapped = torch.empty(n, device=device)
        distributed.all_to_all_single(swapped, base)
        for r in range(world):
            check("all_to_all", number, swapped[r * n // world:(r + 1) * n // world], number % 1000 + r)
        got = torch.empty(n, device=device)
        for request in distributed.batch_isend_irecv([distributed.P2POp(distributed.isend, base, others),
                                                      distributed.P2POp(distributed.irecv, got, before)]):
            request.wait()
        check("send, receive", number, got, number % 1000 + before)
        return int(total) * n

    return step


def graphs(torch, _rank, world, device):
    """A graph of products and all-reduces, launched once with each step."""
    n = 1024
    weight = torch.randn(n, n, device=device) / n ** 0.5
    state = torch.randn(n, n, device=device)

    def work():
        for _ in range(4):
            state.copy_(torch.tanh(state @ weight))
            torch.distributed.all_reduce(state)
            state.div_(world)

    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        work()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        work()

    def step(number):
        state.add_(number % 7)
        graph.replay()
        return float(state.double().sum()).hex()

    return step


def bandwidth(torch, _rank, world, device):
    """All-reduces of 1 GiB: what each rank sends and receives, in GB/s (the median of 8 times 5)."""
    data = torch.ones(1 << 28, device=device)

    def step(_number):
        rounds = []
        for _ in range(8):
            torch.cuda.synchronize()
            begin = time.monotonic()
            for _ in range(5):
                torch.distributed.all_reduce(data, torch.distributed.ReduceOp.AVG)
            torch.cuda.synchronize()
            rounds.append(5 * data.nbytes * 2 * (world - 1) / world / (time.monotonic() - begin) / 1e9)
        return f"{sorted(rounds)[4]:.1f}"

    return step


def prepare(name, rank, world, path):
    """The step, and whether it was the last one: all ranks must come to the same."""
    if name == "plain":
        return plain(rank, path)
    import torch
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=world, device_id=device)
    torch.manual_seed(1)
    step = globals()[name](torch, rank, world, device)
    ending = torch.zeros(1, device=device)

    def is_over():
        ending.fill_(os.path.exists(f"{path}.stop"))
        torch.distributed.broadcast(ending, 0)
        return bool(ending.item())

    return step, is_over


def main():
    name, rank, world, port, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
    steps = int(sys.argv[6]) if len(sys.argv) > 6 else None
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    step, is_over = prepare(name, rank, world, path)
    with open(f"{path}.{rank}", "w", encoding="utf-8") as file:
        number = 0
        while number != steps:
            print(step(number), file=file, flush=True)
            if number == 0:
                print("ready", flush=True)
            number += 1
            if steps is None and number % LOOK_EVERY == 0 and is_over():
                break
    print("ended", number, flush=True)
    if name != "plain":
        import torch
        del step  # with its graph: NCCL's end waits for graphs that have its collectives
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
