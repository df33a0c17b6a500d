#!/usr/bin/env python3
"""weft import and weft export beside Hugging Face's transformers.

    transformers_weights.py WEFT [DEVICE...]     (exit code 77: transformers is not installed)

Small GPT-2 and Qwen3 models of random weights are saved by `save_pretrained`, whole
and in shards; `weft prefill` after `weft import` must give the logits that
transformers gives, in float32 (on `cuda` within bf16's rounding). What `weft export` writes is loaded by
`from_pretrained` and must give them again, with the same parameters bit by bit.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as error:
    print(f"transformers_weights: unsupported: {error}")
    sys.exit(77)

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")


def weft(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"weft {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def read_logits(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry, body = json.loads(file.read(length))["logits"], file.read()
    start, end = entry["data_offsets"]
    values = torch.frombuffer(bytearray(body[start:end]), dtype=torch.float32)
    return values.reshape(-1, entry["shape"][-1])


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float()


def worst(found, expected):
    return ((found - expected).norm() / expected.norm()).item()


def disturb(model):
    """Gains of one hide where they are applied."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))


BOUNDS = {"cpu": 2e-5, "cuda": 5e-2}


def compare(program, name, model, folder, devices):
    disturb(model)
    model = model.float().eval()
    torch.manual_seed(2)
    ids = torch.randint(0, model.config.vocab_size, (40,)).tolist()
    with open(os.path.join(folder, "ids"), "w") as file:
        file.write(" ".join(map(str, ids)))
    expected = logits_of(model, ids)
    for form, size in (("whole", "1GB"), ("shards", "40KB")):
        saved, run = os.path.join(folder, name + form), os.path.join(folder, name + form + "-run")
        model.save_pretrained(saved, max_shard_size=size, safe_serialization=True)
        print("  " + weft(program, "import", os.path.join(MODELS, name + ".weft"), saved, "--out", run).strip())
        out = os.path.join(folder, "logits.safetensors")
        for device in devices:
            weft(program, "prefill", run, "--tokens", os.path.join(folder, "ids"), "--device", device, "--out", out)
            error = worst(read_logits(out), expected)
            print(f"{name} {form}, {device}: {len(os.listdir(saved))} files, relative error of logits {error:.1e}")
            assert error < BOUNDS[device], error
    exported = os.path.join(folder, name + "-out")
    weft(program, "export", run, "--out", exported)
    back = transformers.AutoModelForCausalLM.from_pretrained(exported).float().eval()
    assert type(back) is type(model), type(back)
    error = worst(logits_of(back, ids), expected)
    ours, theirs = dict(back.named_parameters()), dict(model.named_parameters())
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    print(f"{name} exported: {len(ours)} equal parameters, relative error of logits {error:.1e}")
    assert error < 1e-6, error


def main():
    program, devices = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["cpu"]
    print("transformers", transformers.__version__, "torch", torch.__version__)
    gpt2 = transformers.GPT2Config(vocab_size=211, n_positions=64, n_embd=48, n_layer=3, n_head=4)
    qwen3 = transformers.Qwen3Config(
        vocab_size=211, hidden_size=40, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
        intermediate_size=72, tie_word_embeddings=True, rope_theta=1e6, max_position_embeddings=128,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        compare(program, "gpt2", transformers.GPT2LMHeadModel(gpt2), folder, devices)
        compare(program, "qwen3", transformers.Qwen3ForCausalLM(qwen3), folder, devices)


main()
