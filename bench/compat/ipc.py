# SPDX-License-Identifier: Apache-2.0
"""Legacy CUDA IPC: a tensor sent to another process. May be refused, but at once and clearly."""
import torch
import torch.multiprocessing as mp


def receive(queue, answers):
    tensor = queue.get()
    answers.put(float(tensor.sum()))


if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue, answers = mp.Queue(), mp.Queue()
    child = mp.Process(target=receive, args=(queue, answers), daemon=True)
    child.start()
    tensor = torch.ones(1 << 22, device="cuda")
    try:
        torch.cuda.synchronize()
        tensor.untyped_storage()._share_cuda_()  # what putting it into the queue does, in this thread
    except RuntimeError as error:
        print(f"legacy IPC: refused: {str(error).splitlines()[0]}", flush=True)
        child.terminate()
    else:
        queue.put(tensor)
        print(f"legacy IPC: {'ok' if answers.get(timeout=60) == 1 << 22 else 'BAD'}", flush=True)
        child.join()
