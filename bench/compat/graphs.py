# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: capture a forward pass and replay it."""
import torch

from hold import hold

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
inputs = torch.randn(64, 1024, device="cuda")

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        expected = model(inputs)
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    outputs = model(inputs)


def check():
    outputs.zero_()
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    return torch.equal(outputs, expected)


hold("CUDA graphs", check)
