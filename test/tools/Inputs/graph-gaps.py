"""Reads the records of a file as tools/graph-gaps does and prints what each launch comes to."""
import importlib.machinery
import sys
import types

program = types.ModuleType("gaps")
program.__file__ = sys.argv[1]
importlib.machinery.SourceFileLoader("gaps", sys.argv[1]).exec_module(program)
with open(sys.argv[2]) as file:
    graphs = program.launches(file, 2)
print(f"graphs {len(graphs)}, launches {sum(map(len, graphs.values()))}")
for launch in [launch for found in graphs.values() for launch in found]:
    span, idle, overlap, gaps = program.idle_of(launch)
    print(f"span {span}, idle {idle}, side by side {overlap}, gaps {gaps}")
