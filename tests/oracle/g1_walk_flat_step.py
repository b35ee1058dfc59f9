"""One control step of `g1_walk_flat` as three plain MuJoCo steps: g1_walk_flat_step.py DIRECTORY.

The directory holds the rows' state before the step, their actions and gains; the state after it is written there.
"""

import sys
from pathlib import Path

import mujoco
import numpy as np

directory = Path(sys.argv[1])
model = mujoco.MjModel.from_xml_path(str(Path(__file__).parents[2] / "assets/robots/g1/scene_flat.xml"))
model.opt.timestep = 1 / 150
stand = model.key("stand").qpos[7:]


def read(name, width):
    return np.fromfile(directory / f"{name}.f64").reshape(-1, width)


after = []
states = zip(read("qpos", model.nq), read("qvel", model.nv))
for (qpos, qvel), action, kp, kd in zip(states, *(read(name, model.nu) for name in ("action", "kp", "kd"))):
    model.actuator_gainprm[:, 0] = kp
    model.actuator_biasprm[:, 1] = -kp
    model.actuator_biasprm[:, 2] = -kd
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model, data)
    data.ctrl[:] = stand + action
    mujoco.mj_step(model, data, nstep=3)
    after.append(np.concatenate([data.qpos, data.qvel]))
np.array(after).tofile(directory / "after.f64")
