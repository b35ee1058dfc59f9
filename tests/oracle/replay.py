"""Writes the inputs of a replay and checks its dump: replay.py prepare|check FOLDER."""

import json
import pathlib
import sys

import numpy as np

STEPS, ROWS = 6, 3
# Where the actuator of each joint is among the controls, the joints of every episode's start, and the action's scale:
# facts about the robot and the task.
CONTROLS = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
POSE = [0, 0.8, -1.5, 0, 0.8, -1.5, 0, 1.0, -1.5, 0, 1.0, -1.5]
SCALE = 0.25

rng = np.random.default_rng(1)
actions = rng.uniform(-1, 1, (STEPS, ROWS, 12))
qpos = np.concatenate([rng.uniform(-1, 1, (ROWS, 2)), np.full((ROWS, 1), 0.4), np.tile([1, 0, 0, 0], (ROWS, 1))], 1)
qpos = np.concatenate([qpos, np.array(POSE) + rng.uniform(-0.1, 0.1, (ROWS, 12))], 1)
twist = rng.uniform(-0.5, 0.5, (ROWS, 3))

folder = pathlib.Path(sys.argv[2])
if sys.argv[1] == "prepare":
    # Double precision, columns first, and compressed: as a user's own script may happen to write them.
    np.savez(folder / "actions.npz", actions=actions)
    np.savez_compressed(folder / "initial.npz", qpos=np.asfortranarray(qpos), qvel=np.zeros((ROWS, 18)), twist=twist)
else:
    with np.load(folder / "dump.npz") as dump:
        names = json.loads(str(dump["names"]))
        assert len(names["joints"]) == len(names["actuators"]) == 12
        np.testing.assert_array_equal(dump["qpos"][0], qpos)
        np.testing.assert_array_equal(dump["qvel"][0], np.zeros((ROWS, 18)))
        columns = {term: slice(*ends) for term, ends in names["observations"]["policy"].items()}
        policy = dump["obs/policy"]
        assert policy.shape == (STEPS + 1, ROWS, 49) and policy.dtype == np.float32
        np.testing.assert_array_equal(policy[0][:, columns["command"]], twist.astype(np.float32))
        np.testing.assert_array_equal(policy[1:][:, :, columns["actions"]], actions.astype(np.float32))
        np.testing.assert_array_equal(policy[0][:, columns["actions"]], 0)
        np.testing.assert_allclose(dump["ctrl"][:, :, CONTROLS], actions * SCALE + POSE, atol=1e-6)
        assert not (dump["terminated"] | dump["truncated"]).any()
        assert not dump["final_obs/policy"].any()
        terms = sum(dump[f"reward/{term}"] for term in names["rewards"])
        np.testing.assert_allclose(dump["reward"], 0.02 * terms, atol=1e-6)
