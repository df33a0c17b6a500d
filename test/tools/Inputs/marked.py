"""Documents of a query, a trace and an answer, a file each; one of them is long.

usage: marked.py FOLDER
"""
import random
import sys

folder, draw = sys.argv[1], random.Random(1)
for index in range(40):
    a, b = draw.randrange(100), draw.randrange(100)
    trace = "add the ones, add the tens; " * (30 if index == 7 else 1)
    with open(f"{folder}/d{index:02}.txt", "w") as file:
        file.write(f"<|query|>{a} plus {b}?<|trace|>{trace}<|answer|>{a + b}.")
