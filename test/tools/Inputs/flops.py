"""flops.py JSON: nano's counts against arithmetic (see flops.test)."""

import json
import sys

counted = json.load(open(sys.argv[1]))
groups = {group["name"]: group for group in counted["groups"]}
tokens, weights, head = 4 * 64, 4 * 32 * 32 + 2 * 32 * 64, 256 * 32
pairs = 4 * 2 * (64 * 65 // 2)
layer = 2 * tokens * weights + 2 * pairs * (16 + 16)
assert groups["block[0]"]["forward"]["product_flops"] == layer, groups["block[0]"]
assert groups["block[1]"]["forward"]["product_flops"] == layer
assert counted["forward"]["product_flops"] == 2 * layer + 2 * tokens * head
# A step: products three times; attention's backward makes the scores twice again: 2 + 3 + 4 products.
step = 3 * 2 * tokens * weights + 2 * pairs * 16 * (2 + 3 + 4)
assert groups["block[0]"]["step"]["product_flops"] == step, (groups["block[0]"], step)
assert counted["step"]["product_flops"] == 2 * step + 3 * 2 * tokens * head
assert groups["update"]["forward"]["other_flops"] == 0 and groups["update"]["step"]["other_flops"] > 16 * 24736
