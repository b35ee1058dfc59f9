"""Steps models with other values than they were compiled with.

Reads model.mjb; for each row the fields by name (`name.f64`, rows x width), qpos.f64 and qvel.f64; and steps.f64, the numbers
of control steps and of physics steps in each. Writes the positions and velocities after every control step (rows x steps x
(nq + nv)): expected.f64 with the constants derived from the row's values, stale.f64 with those of the compiled model.
"""

import pathlib
import sys

import mujoco
import numpy as np

directory = pathlib.Path(sys.argv[1])


def read(name, width):
    return np.fromfile(directory / f"{name}.f64", "<f8").reshape(-1, width)


compiled = mujoco.MjModel.from_binary_path(str(directory / "model.mjb"))
steps, substeps = np.fromfile(directory / "steps.f64", "<f8").astype(int)
fields = ("body_mass", "body_ipos", "body_inertia", "geom_friction", "dof_armature", "dof_damping", "dof_frictionloss")
values = {name: read(name, getattr(compiled, name).size) for name in fields}
kp, kd, gravity = read("kp", compiled.nu), read("kd", compiled.nu), read("gravity", 3)
qpos, qvel = read("qpos", compiled.nq), read("qvel", compiled.nv)


def roll_out(row, set_const):
    model = mujoco.MjModel.from_binary_path(str(directory / "model.mjb"))
    for name in fields:
        field = getattr(model, name)
        field[:] = values[name][row].reshape(field.shape)
    model.actuator_gainprm[:, 0] = kp[row]
    model.actuator_biasprm[:, 1] = -kp[row]
    model.actuator_biasprm[:, 2] = -kd[row]
    model.opt.gravity[:] = gravity[row]
    data = mujoco.MjData(model)
    if set_const:
        mujoco.mj_setConst(model, data)
        mujoco.mj_resetData(model, data)
    data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
    out = []
    for _ in range(steps):
        for _ in range(substeps):
            mujoco.mj_step(model, data)
        out.append(np.concatenate([data.qpos, data.qvel]))
    return out


for name, set_const in (("expected", True), ("stale", False)):
    out = [roll_out(row, set_const) for row in range(len(qpos))]
    np.array(out, "<f8").tofile(directory / f"{name}.f64")
