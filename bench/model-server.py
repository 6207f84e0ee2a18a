# SPDX-License-Identifier: Apache-2.0
"""A model server for bench/model-servers: answers requests on standard input.

usage: model-server.py GIB SEED [--plain]

Prints "loaded" when its libraries are there, and waits for a line. Then it makes its model, prints "ready", and for each
line "NUMBER TOKENS" of standard input one JSON line when the first token is there and one when all are: {"first": TOKEN},
{"tokens": [...]}. The model is a decoder of transformers with random weights of GIB GiB
in bfloat16. --plain needs neither PyTorch nor a real GPU: the "model" is memory of GIB MiB, and tokens are read from it.
"""
import ctypes
import json
import random
import sys

VOCABULARY = 32000
PROMPT = 128  # tokens


class Transformer:
    """A model of the kind that people serve."""

    HIDDEN = 6144

    def __init__(self, gib, seed):
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        self.torch = torch
        # Attention 4 h^2, feed-forward 3 * 2.67 h^2: 12 h^2 a layer, two bytes each.
        layers = max(1, round(gib * 2**30 / (12 * self.HIDDEN**2 * 2)))
        config = LlamaConfig(hidden_size=self.HIDDEN, intermediate_size=self.HIDDEN * 8 // 3, num_hidden_layers=layers,
                             num_attention_heads=48, num_key_value_heads=48, vocab_size=VOCABULARY, use_cache=True)
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("meta"):
            model = LlamaForCausalLM(config)
        model = model.to_empty(device="cuda")
        generator = torch.Generator(device="cuda").manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, 0.02, generator=generator)
            for name, value in model.named_buffers():
                if name.endswith("inv_freq"):  # no parameter: to_empty() leaves it without a value
                    size = self.HIDDEN // 48
                    value.copy_(1.0 / (10000.0 ** (torch.arange(0, size, 2, device="cuda", dtype=torch.float32) / size)))
        self.model = model.eval()

    def tokens(self, number, count):
        torch = self.torch
        generator = torch.Generator().manual_seed(number)
        ids = torch.randint(0, VOCABULARY, (1, PROMPT), generator=generator).cuda()
        past = None
        with torch.inference_mode():
            for _ in range(count):
                out = self.model(input_ids=ids, past_key_values=past, use_cache=True)
                past, ids = out.past_key_values, out.logits[:, -1:].argmax(-1)
                yield int(ids)


class Plain:
    """Memory with a pattern, read through the driver's calls."""

    PIECE = 2 << 20  # what the driver gives at least

    def __init__(self, mib, seed):
        self.cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.check(self.cuda.cuCtxSetCurrent(context))
        self.pieces = []
        for i in range(int(mib) // 2):
            address = ctypes.c_uint64()
            self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(self.PIECE)))
            value = random.Random(seed * 100000 + i).randrange(1, 1 << 32)
            self.check(self.cuda.cuMemsetD32_v2(address, ctypes.c_uint(value), ctypes.c_size_t(self.PIECE // 4)))
            self.pieces.append(address)

    @staticmethod
    def check(result):
        if result != 0:
            raise RuntimeError(f"the driver says {result}")

    def tokens(self, number, count):
        choice = random.Random(number)
        for _ in range(count):
            word = ctypes.c_uint32()
            address = ctypes.c_uint64(choice.choice(self.pieces).value + 4 * choice.randrange(self.PIECE // 4))
            self.check(self.cuda.cuMemcpyDtoH_v2(ctypes.byref(word), address, ctypes.c_size_t(4)))
            yield word.value % VOCABULARY


def main():
    gib, seed = float(sys.argv[1]), int(sys.argv[2])
    kind = Plain if "--plain" in sys.argv else Transformer
    if kind is Transformer:
        import transformers
        transformers.LlamaForCausalLM  # what is imported only when it is used
    print("loaded", flush=True)
    sys.stdin.readline()
    model = kind(gib, seed)
    list(model.tokens(0, 2))  # loads kernels, as the first request of any server does
    print("ready", flush=True)
    for line in sys.stdin:
        number, count = map(int, line.split())
        said = []
        for token in model.tokens(number, count):
            if not said:
                print(json.dumps({"first": token}), flush=True)
            said.append(token)
        print(json.dumps({"tokens": said}), flush=True)


main()
