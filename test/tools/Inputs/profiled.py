"""Stands in for weft and for ncu, in a folder of the PATH: two kernels of attention and another, whose counts a plan changes."""
import json
import os
import sys

words = sys.argv[1:]
planned = "--plan" in words
if os.path.basename(sys.argv[0]) == "ncu":
    with open(words[words.index("--data") + 1]) as file:
        given = json.load(file)
    print(f"==PROF== {len(given['tokens'])} x {len(given['tokens'][0])}\nloss")
    print('"ID","Kernel Name","sm__ops_path_tensor_src_bf16_dst_fp32.sum","sm__inst_executed_pipe_tensor_op_hmma.sum"\n"","","inst","inst"')
    print(f'"0","attend_1","{400 if planned else "1,000"}","5"\n"1","attend_grad_query_1","{1600 if planned else 4000}","5"')
    if "--kernel-name" not in words:
        print('"2","nvjet","5,000","5"')
elif words[0] == "bench":
    short = {"acr": 0.25, "pair_ratio": 0.38, "executed_ratio": 0.42} if planned else {}
    print(json.dumps({**short, "calls": 99 if "drops" in str(words) else 100}))
elif words[0] == "train":
    os.makedirs(words[words.index("--out") + 1])
