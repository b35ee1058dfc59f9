"""Steps each row of a recorded rollout on its own mjData, with MuJoCo's Python package alone.

Reads model.mjb, plan.json (rows, steps, substeps), qpos.f64 and qvel.f64 (rows x n), ctrl.f64 (steps x rows x nu).
Writes, for each control step and row, the state (out_qpos.f64, out_qvel.f64, out_warmstart.f64), the sensors as the
last mj_step left them (out_sensors.f64), and, from a copy on which mj_forward was called, the sensors and body,
geom and site kinematics of the new state (fresh_*.f64). fresh_velocity.f64 is mj_objectVelocity of each body's frame
in world orientation, angular part first.
"""

import json
import pathlib
import sys

import mujoco
import numpy as np

directory = pathlib.Path(sys.argv[1])
plan = json.loads((directory / "plan.json").read_text())
rows, steps, substeps = plan["rows"], plan["steps"], plan["substeps"]
model = mujoco.MjModel.from_binary_path(str(directory / "model.mjb"))


def read(name, *shape):
    return np.fromfile(directory / f"{name}.f64", "<f8").reshape(shape)


qpos, qvel = read("qpos", rows, model.nq), read("qvel", rows, model.nv)
ctrl = read("ctrl", steps, rows, model.nu)
written = {}


def record(name, value):
    written.setdefault(name, []).append(np.array(value, "<f8").ravel())


simulations = []
for row in range(rows):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
    simulations.append(data)
copy = mujoco.MjData(model)
velocity = np.zeros((model.nbody, 6))

for step in range(steps):
    for row, data in enumerate(simulations):
        data.ctrl[:] = ctrl[step, row]
        for _ in range(substeps):
            mujoco.mj_step(model, data)
        record("out_qpos", data.qpos)
        record("out_qvel", data.qvel)
        record("out_warmstart", data.qacc_warmstart)
        record("out_sensors", data.sensordata)
        record("out_contacts", data.ncon)

        mujoco.mj_copyData(copy, model, data)
        mujoco.mj_forward(model, copy)
        for body in range(model.nbody):
            mujoco.mj_objectVelocity(model, copy, mujoco.mjtObj.mjOBJ_XBODY, body, velocity[body], 0)
        record("fresh_sensors", copy.sensordata)
        record("fresh_xpos", copy.xpos)
        record("fresh_xquat", copy.xquat)
        record("fresh_geom_xpos", copy.geom_xpos)
        record("fresh_site_xpos", copy.site_xpos)
        record("fresh_velocity", velocity)
        if any(warning.number for warning in data.warning):
            sys.exit(f"row {row} is unstable in step {step}: a poor test")

for name, values in written.items():
    np.concatenate(values).tofile(directory / f"{name}.f64")
