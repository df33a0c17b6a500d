"""uniform.py FILE: bounds of Inputs/uniform.weft's parameters, read without Weft."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "numpy"))
from reference import read_safetensors

values = read_safetensors(sys.argv[1])
bound = 32**-0.5 / 2
embed, shift = values["embed"], values["shift"]
# 2,048 values: each end is reached within 1 percent but for a chance of 1e-4.
assert -bound <= embed.min() < -0.99 * bound and 0.99 * bound < embed.max() <= bound, (embed.min(), embed.max())
assert abs(embed.mean()) < 5 * bound / np.sqrt(3 * embed.size), embed.mean()
assert 0 <= shift.min() < 0.3 and 0.7 < shift.max() < 1, (shift.min(), shift.max())
