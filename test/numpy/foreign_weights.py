#!/usr/bin/python3
"""weft import and weft export beside NumPy's own GPT-2 and Qwen3.

    foreign_weights.py WEFT [CASE...]

Files of random weights are written in the layouts of Hugging Face's GPT-2 and
Qwen3, with no help of Weft. Their logits are computed here in float64 straight
from those files (GPT-2: Conv1D stores [in, out], c_attn holds q, k, v side by
side; Qwen3: Linear stores [out, in], query heads of one key head follow one
another, norms of q and k before the rotation, halves paired) and compared with
those of `weft prefill` after `weft import`. What `weft export` writes must be the
files again, bit by bit. Then every way to be wrong, each with its one line.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")


# ---------------------------------------------------------------- safetensors


def bf16_bits(value):
    """float32 to bfloat16, to nearest, ties to even."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def stored(value, dtype):
    """Bytes in the file, and the numbers that they are, as float64."""
    if dtype == "BF16":
        bits = bf16_bits(value)
        return bits.tobytes(), (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    kind = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I32": np.int32}[dtype]
    data = np.ascontiguousarray(value, kind)
    return data.tobytes(), data.astype(np.float64)


def write_file(path, tensors, types=None, dtype="F32"):
    """Writes `tensors`; returns what a reader finds."""
    header, body, found = {}, b"", {}
    for name, value in tensors.items():
        kind = (types or {}).get(name, dtype)
        data, found[name] = stored(value, kind)
        found[name] = found[name].reshape(value.shape)
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
    return found


def read_file(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, body = json.loads(file.read(length)), file.read()
    meta, tensors = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            value = (np.frombuffer(body[start:end], np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            value = np.frombuffer(body[start:end], {"F32": np.float32, "F64": np.float64}[entry["dtype"]])
        tensors[name] = value.reshape(entry["shape"])
    return tensors, meta


def write_folder(folder, config, tensors, types=None, dtype="F32", shards=0):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    if not shards:
        return write_file(os.path.join(folder, "model.safetensors"), tensors, types, dtype)
    found, where, names = {}, {}, list(tensors)
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[shard::shards]}
        found.update(write_file(os.path.join(folder, file), part, types, dtype))
        where.update({name: file for name in part})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": 1}, "weight_map": where}, file)
    return found


# ---------------------------------------------------------------- the two models


def softmax_rows(scores):
    length = scores.shape[-1]
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    power = np.exp(scores - scores.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


class Gpt2:
    weft = "gpt2"
    config = {
        "model_type": "gpt2", "vocab_size": 256, "n_positions": 24, "n_embd": 24, "n_layer": 2, "n_head": 3,
        "n_inner": None, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05, "attn_pdrop": 0.1,
    }  # fmt: skip

    @staticmethod
    def tensors(random, prefix="transformer."):
        c = Gpt2.config
        d, t = c["n_embd"], {}

        def draw(name, *shape, mean=0.0, std=0.3):
            t[prefix + name] = mean + std * random.standard_normal(shape)

        draw("wte.weight", c["vocab_size"], d)
        draw("wpe.weight", c["n_positions"], d)
        for i in range(c["n_layer"]):
            for norm in ("ln_1", "ln_2"):
                draw(f"h.{i}.{norm}.weight", d, mean=1.0)
                draw(f"h.{i}.{norm}.bias", d)
            for name, rows, columns in (
                ("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d),
            ):  # fmt: skip
                draw(f"h.{i}.{name}.weight", rows, columns)
                draw(f"h.{i}.{name}.bias", columns)
        draw("ln_f.weight", d, mean=1.0)
        draw("ln_f.bias", d)
        return t

    @staticmethod
    def logits(t, ids, prefix="transformer."):
        c = Gpt2.config
        d, heads = c["n_embd"], c["n_head"]
        t = {name.removeprefix(prefix): value for name, value in t.items()}

        def norm(x, name):
            x = x - x.mean(-1, keepdims=True)
            return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * t[name + ".weight"] + t[name + ".bias"]

        def conv(x, name):
            return x @ t[name + ".weight"] + t[name + ".bias"]

        x = t["wte.weight"][ids] + t["wpe.weight"][: len(ids)]
        for i in range(c["n_layer"]):
            q, k, v = np.split(conv(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn"), 3, axis=-1)
            mixed = []
            for h in range(heads):
                own = slice(h * d // heads, (h + 1) * d // heads)
                mixed.append(softmax_rows(q[:, own] @ k[:, own].T / np.sqrt(d // heads)) @ v[:, own])
            x = x + conv(np.concatenate(mixed, -1), f"h.{i}.attn.c_proj")
            u = conv(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
            u = 0.5 * u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3)))
            x = x + conv(u, f"h.{i}.mlp.c_proj")
        return norm(x, "ln_f") @ t["wte.weight"].T


class Qwen3:
    weft = "qwen3"
    config = {
        "model_type": "qwen3", "vocab_size": 89, "hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 28, "rms_norm_eps": 1e-06,
        "rope_theta": 1000000, "rope_scaling": None, "hidden_act": "silu", "tie_word_embeddings": True,
        "attention_bias": False, "use_sliding_window": False,
    }  # fmt: skip

    @staticmethod
    def tensors(random, prefix="model."):
        c = Qwen3.config
        d, size, t = c["hidden_size"], c["head_dim"], {}

        def draw(name, *shape, mean=0.0, std=0.3):
            t[prefix + name] = mean + std * random.standard_normal(shape)

        draw("embed_tokens.weight", c["vocab_size"], d)
        for i in range(c["num_hidden_layers"]):
            layer = f"layers.{i}."
            draw(layer + "input_layernorm.weight", d, mean=1.0)
            draw(layer + "post_attention_layernorm.weight", d, mean=1.0)
            draw(layer + "self_attn.q_proj.weight", c["num_attention_heads"] * size, d)
            draw(layer + "self_attn.k_proj.weight", c["num_key_value_heads"] * size, d)
            draw(layer + "self_attn.v_proj.weight", c["num_key_value_heads"] * size, d)
            draw(layer + "self_attn.o_proj.weight", d, c["num_attention_heads"] * size)
            draw(layer + "self_attn.q_norm.weight", size, mean=1.0)
            draw(layer + "self_attn.k_norm.weight", size, mean=1.0)
            draw(layer + "mlp.gate_proj.weight", c["intermediate_size"], d)
            draw(layer + "mlp.up_proj.weight", c["intermediate_size"], d)
            draw(layer + "mlp.down_proj.weight", d, c["intermediate_size"])
        draw("norm.weight", d, mean=1.0)
        return t

    @staticmethod
    def logits(t, ids, prefix="model."):
        c = Qwen3.config
        size, heads, group = c["head_dim"], c["num_attention_heads"], 3
        t = {name.removeprefix(prefix): value for name, value in t.items()}
        angle = np.arange(len(ids))[:, None] * 1e6 ** (-np.arange(0, size, 2) / size)
        cos, sin = np.cos(np.tile(angle, 2)), np.sin(np.tile(angle, 2))

        def norm(x, name):
            return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * t[name]

        def turn(x):
            low, high = np.split(x, 2, -1)
            return x * cos + np.concatenate([-high, low], -1) * sin

        x = t["embed_tokens.weight"][ids]
        for i in range(c["num_hidden_layers"]):
            layer = f"layers.{i}."
            u, mixed = norm(x, layer + "input_layernorm.weight"), []
            for h in range(heads):
                q = u @ t[layer + "self_attn.q_proj.weight"][h * size : (h + 1) * size].T
                own = slice(h // group * size, (h // group + 1) * size)
                k = u @ t[layer + "self_attn.k_proj.weight"][own].T
                v = u @ t[layer + "self_attn.v_proj.weight"][own].T
                q = turn(norm(q, layer + "self_attn.q_norm.weight"))
                k = turn(norm(k, layer + "self_attn.k_norm.weight"))
                mixed.append(softmax_rows(q @ k.T / np.sqrt(size)) @ v)
            x = x + np.concatenate(mixed, -1) @ t[layer + "self_attn.o_proj.weight"].T
            u = norm(x, layer + "post_attention_layernorm.weight")
            gate = u @ t[layer + "mlp.gate_proj.weight"].T
            up = u @ t[layer + "mlp.up_proj.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ t[layer + "mlp.down_proj.weight"].T
        return norm(x, "norm.weight") @ t["embed_tokens.weight"].T


# ---------------------------------------------------------------- what is asked of Weft


class Weft:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True)

    def ok(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        return done

    def refuses(self, *arguments, saying):
        """Exit code 1 and one line that has each of `saying`. GPT-2's recipe does not
        fit small models, which a note says before."""
        done = self.run(*arguments)
        assert done.returncode == 1, (arguments, done)
        line = done.stderr[done.stderr.rfind("weft: ") :].strip()
        assert line.startswith("weft: ") and "\n" not in line, line
        for text in saying:
            assert text in line, (text, line)
        return line

    def model(self, kind):
        return os.path.join(MODELS, kind.weft + ".weft")

    def logits(self, run, ids, device):
        with open(self.path("ids"), "w") as file:
            file.write(" ".join(str(i) for i in ids))
        out = self.path("logits.safetensors")
        self.ok("prefill", run, "--tokens", self.path("ids"), "--device", device, "--out", out)
        return read_file(out)[0]["logits"].reshape(len(ids), -1)


def same(found, expected, tolerance, what):
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert found.shape == expected.shape and error < tolerance, (what, error)


def round_trips(weft, kind, random):
    """Import, logits, export, import again. Catches: a transposed or untransposed
    matrix, q, k and v exchanged, query heads interleaved, rope pairs, a base of 1e4."""
    tensors = kind.tensors(random)
    ids = random.integers(0, kind.config["vocab_size"], 19)
    for dtype, shards in (("F32", 0), ("BF16", 3), ("F16", 0)):
        name = f"{kind.weft}-{dtype}"
        found = write_folder(weft.path(name), kind.config, tensors, dtype=dtype, shards=shards)
        done = weft.ok("import", weft.model(kind), weft.path(name), "--out", weft.path(name + "-run"))
        assert f"tensors of {dtype}; saved" in done.stdout, done.stdout
        expected = kind.logits(found, ids)
        if dtype == "F32":
            same(weft.logits(weft.path(name + "-run"), ids, "reference"), expected, 1e-6, name)
        same(weft.logits(weft.path(name + "-run"), ids, "cpu"), expected, 1e-5, name)
        out = weft.path(name + "-out")
        weft.ok("export", weft.path(name + "-run"), "--out", out)
        written, meta = read_file(os.path.join(out, "model.safetensors"))
        assert meta == {"format": "pt"} and set(written) == set(found), (meta, sorted(written))
        for key, value in found.items():
            assert np.array_equal(written[key].astype(np.float64), value), key
        with open(os.path.join(out, "config.json")) as file:
            config = json.load(file)
        for key, value in config.items():
            if key in kind.config:
                assert kind.config[key] == value or (key == "n_inner" and value == 96), (key, value)
        weft.ok("import", weft.model(kind), out, "--out", weft.path(name + "-again"))
        with open(weft.path(f"{name}-run/checkpoints/step-00000000/model.safetensors"), "rb") as one:
            with open(weft.path(f"{name}-again/checkpoints/step-00000000/model.safetensors"), "rb") as other:
                assert one.read() == other.read(), name
    # Rounded on the way out: to nearest, ties to even.
    weft.ok("export", weft.path(f"{kind.weft}-F32-run"), "--as", "bf16", "--out", weft.path(kind.weft + "-16"))
    written, _ = read_file(weft.path(kind.weft + "-16/model.safetensors"))
    for key, value in tensors.items():
        want = (bf16_bits(value).astype(np.uint32) << 16).view(np.float32).reshape(value.shape)
        assert np.array_equal(written[key], want), key


def case_gpt2(weft):
    round_trips(weft, Gpt2, np.random.default_rng(1))
    # Released files have no prefix, and masks beside the weights.
    random = np.random.default_rng(2)
    bare = Gpt2.tensors(random, "")
    bare["h.0.attn.bias"] = np.tril(np.ones((1, 1, 24, 24)))
    found = write_folder(weft.path("bare"), Gpt2.config, bare)
    weft.ok("import", weft.model(Gpt2), weft.path("bare"), "--out", weft.path("bare-run"))
    ids = random.integers(0, 256, 24)
    same(weft.logits(weft.path("bare-run"), ids, "cpu"), Gpt2.logits(found, ids, ""), 1e-5, "bare")
    # The run is one that training starts from, and that keeps its table.
    with open(weft.path("bare-run/run.weft")) as file:
        text = file.read()
    assert "weights huggingface for gpt2" in text and "n_positions" in text, text
    # Rows of 16 positions fit it: a recipe that training goes on with.
    recipe = weft.path("short.weft")
    with open(weft.model(Gpt2)) as file, open(recipe, "w") as out:
        model = file.read()
        out.write(model[: model.index("train pretrain")] + SHORT)
    with open(weft.path("text.txt"), "w") as out:
        out.write("the quick brown fox " * 40)
    weft.ok("import", recipe, weft.path("bare"), "--out", weft.path("short-run"))
    weft.ok("train", recipe, *SIZES, "--from", weft.path("short-run"), "--out", weft.path("tuned"), "--device", "cpu")
    weft.ok("export", weft.path("tuned"), "--out", weft.path("tuned-out"))
    written, _ = read_file(weft.path("tuned-out/model.safetensors"))
    same(weft.logits(weft.path("tuned"), ids, "cpu"), Gpt2.logits(to_float64(written), ids), 1e-5, "tuned")
    moved = [np.linalg.norm(written["transformer." + key] - value) / np.linalg.norm(value) for key, value in found.items() if "attn.bias" not in key]
    assert 0 < min(moved) and max(moved) < 0.2, moved
    # What the files have no place for is refused; windows are told.
    start = ["train", recipe, *SIZES, "--from", weft.path("short-run"), "--device", "cpu"]
    weft.ok(*start, "--plan", "near", "--out", weft.path("near"))
    done = weft.ok("export", weft.path("near"), "--out", weft.path("near-out"))
    assert "the windows of plan near are not part of the files" in done.stderr, done.stderr
    weft.ok(*start, "--plan", "short_of", "--out", weft.path("short-of"))
    weft.refuses("export", weft.path("short-of"), "--out", weft.path("no"), saying=["dropped block.1.ffn", "no place"])


def case_qwen3(weft):
    round_trips(weft, Qwen3, np.random.default_rng(3))


def case_ties(weft):
    """F4: a second copy that is one, that is none, and tensors on one side alone."""
    tensors = Qwen3.tensors(np.random.default_rng(4))
    embed = tensors["model.embed_tokens.weight"]
    run = ["import", weft.model(Qwen3)]
    write_folder(weft.path("tied"), Qwen3.config, {**tensors, "lm_head.weight": embed})
    weft.ok(*run, weft.path("tied"), "--out", weft.path("tied-run"))
    apart = embed.copy()
    apart[3, 4] += 0.5
    write_folder(weft.path("apart"), Qwen3.config, {**tensors, "lm_head.weight": apart})
    weft.refuses(*run, weft.path("apart"), "--out", weft.path("no"), saying=["lm_head.weight", "differs by up to 0.5"])
    write_folder(weft.path("untied"), {**Qwen3.config, "tie_word_embeddings": False}, tensors)
    weft.refuses(*run, weft.path("untied"), "--out", weft.path("no"), saying=["tie_word_embeddings", "found false"])
    write_folder(weft.path("more"), Qwen3.config, {**tensors, "model.layers.0.adapter": embed})
    weft.refuses(*run, weft.path("more"), "--out", weft.path("no"), saying=["does not know", "model.layers.0.adapter"])
    # A file beside the index that it does not name.
    write_folder(weft.path("stray"), Qwen3.config, tensors, shards=2)
    write_file(weft.path("stray/old.safetensors"), {"model.norm.weight": embed})
    done = weft.ok(*run, weft.path("stray"), "--out", weft.path("stray-run"))
    assert "old.safetensors lies beside the index" in done.stderr, done.stderr
    assert not os.path.exists(weft.path("no"))


def case_sizes(weft):
    """R3: the rotation's base and other sizes are never taken for granted."""
    tensors = Qwen3.tensors(np.random.default_rng(5))
    plain = {k: v for k, v in Qwen3.config.items() if k != "rope_theta"}

    def attempt(config, name):
        write_folder(weft.path(name), config, tensors)
        return ["import", weft.model(Qwen3), weft.path(name), "--out", weft.path(name + "-run")]

    for name, config in {
        "inside": {**plain, "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}},
        "top": {**plain, "rope_theta": 1e6},
        "both": {**plain, "rope_theta": 1e6, "rope_parameters": {"rope_theta": 1000000}},
    }.items():
        weft.ok(*attempt(config, name))
        with open(weft.path(name + "-run/run.weft")) as file:
            assert "theta = 1000000" in file.read(), name
    weft.refuses(
        *attempt({**plain, "rope_theta": 1e6, "rope_parameters": {"rope_theta": 5e5}}, "unlike"),
        saying=["rope_parameters.rope_theta is 500000", "rope_theta is 1000000"],
    )
    weft.refuses(*attempt(plain, "neither"), saying=["rope_parameters.rope_theta or rope_theta", "`theta`"])
    yarn = {**plain, "rope_theta": 1e6, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
    weft.refuses(*attempt(yarn, "yarn"), saying=["rope_scaling", "yarn"])
    yarn = {**plain, "rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn"}}
    weft.refuses(*attempt(yarn, "yarn2"), saying=["rope_parameters.rope_type", '"yarn"'])
    weft.refuses(*attempt({**Qwen3.config, "hidden_act": "gelu"}, "gelu"), saying=["hidden_act", '"gelu"'])
    weft.refuses(*attempt({**Qwen3.config, "head_dim": "8"}, "text"), saying=["head_dim", 'found "8"'])
    # The head's size is not hidden / heads: q_proj is heads * head_dim rows.
    weft.refuses(*attempt({**Qwen3.config, "head_dim": 16}, "wide"), saying=["[96, 20]", "[48, 20]"])


def case_faults(weft):
    """Files that are damaged, or not what they say."""
    tensors = Gpt2.tensors(np.random.default_rng(6))
    name = "transformer.h.1.mlp.c_fc.weight"

    def attempt(folder):
        return ["import", weft.model(Gpt2), weft.path(folder), "--out", weft.path("no")]

    few = {k: v for k, v in tensors.items() if k != name}
    write_folder(weft.path("missing"), Gpt2.config, few)
    weft.refuses(*attempt("missing"), saying=["it lacks 1 of 29 tensors", name])
    write_folder(weft.path("renamed"), Gpt2.config, {**few, name.replace("c_fc", "fc"): tensors[name]})
    weft.refuses(*attempt("renamed"), saying=[name, "it has transformer.h.1.mlp.fc.weight"])
    write_folder(weft.path("turned"), Gpt2.config, {**tensors, name: tensors[name].T})
    weft.refuses(*attempt("turned"), saying=[name, "expected [24, 96], found [96, 24]"])
    write_folder(weft.path("whole"), Gpt2.config, tensors, types={name: "I32"})
    weft.refuses(*attempt("whole"), saying=[name, "I32"])
    broken = tensors[name].copy()
    broken[1, 2] = np.nan
    write_folder(weft.path("nan"), Gpt2.config, {**tensors, name: broken})
    weft.refuses(*attempt("nan"), saying=[name, "not finite"])

    write_folder(weft.path("cut"), Gpt2.config, tensors)
    file = weft.path("cut/model.safetensors")
    os.truncate(file, os.path.getsize(file) - 5)
    weft.refuses(*attempt("cut"), saying=["model.safetensors", "cut short"])
    with open(file, "r+b") as out:
        out.write(struct.pack("<Q", 1 << 62))
    weft.refuses(*attempt("cut"), saying=["model.safetensors", "header of 4611686018427387904 bytes"])
    write_folder(weft.path("lies"), Gpt2.config, tensors)
    with open(weft.path("lies/model.safetensors"), "r+b") as out:
        text = out.read()
        out.seek(0)
        out.write(text.replace(b'"shape": [24, 96]', b'"shape": [24, 95]', 1))
    weft.refuses(*attempt("lies"), saying=["model.safetensors", "c_fc.weight", "bytes"])

    write_folder(weft.path("shards"), Gpt2.config, tensors, shards=3)
    os.remove(weft.path("shards/model-00002-of-00003.safetensors"))
    weft.refuses(*attempt("shards"), saying=["not there: model-00002-of-00003.safetensors"])
    write_folder(weft.path("headless"), Gpt2.config, tensors)
    os.remove(weft.path("headless/config.json"))
    weft.refuses(*attempt("headless"), saying=["headless/config.json"])
    with open(weft.path("headless/config.json"), "w") as out:
        out.write('{"vocab_size": 97,')
    weft.refuses(*attempt("headless"), saying=["headless/config.json"])
    weft.refuses(*attempt("nowhere"), saying=["nowhere"])
    assert not os.path.exists(weft.path("no"))
    # A run that is there already is not written over.
    write_folder(weft.path("good"), Gpt2.config, tensors)
    weft.ok("import", weft.model(Gpt2), weft.path("good"), "--out", weft.path("kept"))
    weft.refuses("import", weft.model(Gpt2), weft.path("good"), "--out", weft.path("kept"), saying=["already holds a run"])
    # A model without a table; a table that is not there.
    nano = os.path.join(MODELS, "nano.weft")
    done = weft.run("import", nano, weft.path("good"), "--out", weft.path("no"))
    assert done.returncode == 1 and "W0621" in done.stderr, done
    done = weft.run("export", weft.path("kept"), "--out", weft.path("no"), "--weights", "hugingface")
    assert done.returncode == 1 and "did you mean `huggingface`" in done.stderr, done


def case_export(weft):
    """A table of another file; plans that the files have no place for; training goes on."""
    tensors = Qwen3.tensors(np.random.default_rng(7))
    write_folder(weft.path("q"), Qwen3.config, tensors)
    weft.ok("import", weft.model(Qwen3), weft.path("q"), "--out", weft.path("q-run"))
    table = weft.path("table.weft")
    with open(weft.model(Qwen3)) as file:
        text = file.read()
    with open(table, "w") as out:
        out.write(text[text.index("weights huggingface") :].replace("huggingface", "other").replace('"norm.w', '"last.w'))
    weft.ok("export", weft.path("q-run"), "--weights", table + ":other", "--out", weft.path("q-out"))
    written, _ = read_file(weft.path("q-out/model.safetensors"))
    assert "model.last.weight" in written and "model.norm.weight" not in written, sorted(written)


SHORT = """
train short for gpt2 {
  data = "text.txt"
  held_out = none
  tokenizer = bytes
  documents = joined
  batch = 2 x 16
  steps = 2
  optimizer = adamw(lr = 1e-4)
}
plan near for gpt2 { windows 8 }
plan short_of for gpt2 { drop block[1].ffn }
"""
SIZES = [word for pair in ("vocab=256", "context=24", "dim=24", "depth=2", "heads=3") for word in ("--set", pair)]


def to_float64(tensors):
    return {name: value.astype(np.float64) for name, value in tensors.items()}


CASES = {name[5:]: value for name, value in list(globals().items()) if name.startswith("case_")}


def main():
    program, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(CASES)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            CASES[name](Weft(program, folder))
        print(f"{name}: fine", flush=True)


main()
