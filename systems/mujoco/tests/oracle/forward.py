"""Calls mj_forward on new mjData with given states.

Reads model.mjb, qpos.f64, qvel.f64 and ctrl.f64 (states x n). Writes sensors.f64 and xpos.f64 (states x n).
"""

import pathlib
import sys

import mujoco
import numpy as np

directory = pathlib.Path(sys.argv[1])
model = mujoco.MjModel.from_binary_path(str(directory / "model.mjb"))


def read(name, width):
    return np.fromfile(directory / f"{name}.f64", "<f8").reshape(-1, width)


sensors, xpos = [], []
for qpos, qvel, ctrl in zip(read("qpos", model.nq), read("qvel", model.nv), read("ctrl", model.nu), strict=True):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, ctrl
    mujoco.mj_forward(model, data)
    sensors.append(data.sensordata.copy())
    xpos.append(data.xpos.copy())
np.array(sensors, "<f8").tofile(directory / "sensors.f64")
np.array(xpos, "<f8").tofile(directory / "xpos.f64")
