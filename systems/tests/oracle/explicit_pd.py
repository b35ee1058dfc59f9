"""Steps a machine with torques of a proportional-derivative law, in a loop of its own.

Usage: explicit_pd.py DIRECTORY. The directory holds `model.xml`, `qpos`, `qvel` (one row's state) and `targets` (a row for each
control step, in joint order) as `<name>.f64`, and the law's numbers as `law.f64`: stiffness, damping and limit of each joint.
`states.f64` receives qpos and qvel after every control step.
"""

import sys
from pathlib import Path

import mujoco
import numpy as np

SUBSTEPS = 4

directory = Path(sys.argv[1])
model = mujoco.MjModel.from_xml_path(str(directory / "model.xml"))
# As the runtime steps it.
model.opt.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE
data = mujoco.MjData(model)


def read(name, width):
    return np.fromfile(directory / f"{name}.f64").reshape(-1, width)


data.qpos[:] = read("qpos", model.nq)[0]
data.qvel[:] = read("qvel", model.nv)[0]
stiffness, damping, limit = read("law", model.njnt)
# Actuators are named after the joints that they drive, and in another order.
order = [model.actuator(model.joint(i).name).id for i in range(model.njnt)]
states = []
for target in read("targets", model.njnt):
    for _ in range(SUBSTEPS):
        torque = stiffness * (target - data.qpos) - damping * data.qvel
        data.ctrl[order] = np.clip(torque, -limit, limit)
        mujoco.mj_step(model, data)
    states.append(np.concatenate([data.qpos, data.qvel]))
np.array(states).tofile(directory / "states.f64")
