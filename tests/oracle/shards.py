"""Checks a folder of shards: shards.py FOLDER CHECKSUM."""

import json
import pathlib
import sys

import numpy as np


def fnv1a(data, value=0xCBF29CE484222325):
    """64-bit FNV-1a, continued from `value`."""
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


folder, checksum = pathlib.Path(sys.argv[1]), sys.argv[2]
meta = json.loads((folder / "meta.json").read_text())
assert meta["complete"] and meta["rows"] == 5 and meta["steps"] == 12, meta
assert [shard["first_step"] for shard in meta["shards"]][0] == 0

parts = []
for shard in meta["shards"]:
    with np.load(folder / shard["file"]) as arrays:  # without pickle, which is numpy's default
        assert list(arrays) == list(meta["keys"]), list(arrays)
        for key, described in meta["keys"].items():
            shape = [{"T": shard["steps"], "N": meta["rows"]}.get(n, n) for n in described["shape"]]
            assert list(arrays[key].shape) == shape, (key, arrays[key].shape)
            assert arrays[key].dtype == described["dtype"], (key, arrays[key].dtype)
        parts.append({key: arrays[key] for key in arrays})
data = {key: np.concatenate([part[key] for part in parts]) for key in meta["keys"]}

assert not data["terminated"].any() and not data["truncated"].any()
assert np.abs(data["actions"]).max() <= 1 and np.abs(data["actions"]).std() > 0.2
value = fnv1a(b"")
for group in meta["observation_dims"]:
    assert (data[f"obs/{group}"][1:] == data[f"next_obs/{group}"][:-1]).all(), group
for step in range(meta["steps"]):
    for key in [f"next_obs/{group}" for group in meta["observation_dims"]] + ["rewards", "terminated", "truncated"]:
        value = fnv1a(data[key][step].tobytes(), value)
assert f"{value:016x}" == checksum, (f"{value:016x}", checksum)
