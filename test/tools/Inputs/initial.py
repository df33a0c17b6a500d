"""initial.py F64 F32: two dumps of nano's initial values under different seeds."""

import json
import struct
import sys

import numpy as np


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    types = {"F64": np.float64, "F32": np.float32}
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


wide, narrow = read(sys.argv[1]), read(sys.argv[2])
assert len(wide) == 18 and sum(tensor.size for tensor in wide.values()) == 24736
assert all(tensor.dtype == np.float64 for tensor in wide.values())
assert all(tensor.dtype == np.float32 for tensor in narrow.values())
assert wide["block.1.attn.wq"].shape == (32, 2, 16)
assert (wide["final_gain"] == 1).all()
# Standard deviations within four standard errors of what the model says.
for name, spread in [("embed", 0.02), ("block.0.attn.wq", 32**-0.5), ("block.1.ffn.down", 64**-0.5 / 2)]:
    tensor = wide[name]
    assert abs(tensor.std() / spread - 1) < 4 / (2 * tensor.size) ** 0.5, (name, tensor.std(), spread)
    assert abs(tensor.mean()) < 4 * spread / tensor.size**0.5, name
assert not np.array_equal(wide["block.0.attn.wq"], wide["block.1.attn.wq"])  # a stream a name
assert not np.allclose(wide["embed"], narrow["embed"])  # another seed
