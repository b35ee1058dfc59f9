"""Steps variants of a model that are compiled from its XML with other values.

plan.json holds the XML file, a list of variants, each a map from `kind/name/attribute` to a value, and the number of
steps. Reads qpos.f64, qvel.f64 (variants x n) and ctrl.f64 (steps x variants x nu). Writes out_qpos.f64 and
out_qvel.f64 (steps x variants x n), and for each variant the constants that MuJoCo derives (constants.f64).
"""

import json
import pathlib
import sys

import mujoco
import numpy as np

directory = pathlib.Path(sys.argv[1])
plan = json.loads((directory / "plan.json").read_text())
variants, steps = plan["variants"], plan["steps"]


def compile_variant(variant):
    spec = mujoco.MjSpec.from_file(plan["xml"])
    for path, value in variant.items():
        kind, name, attribute = path.split("/")
        target = spec.option if kind == "option" else getattr(spec, kind)(name)
        old = getattr(target, attribute)
        if isinstance(old, np.ndarray):
            old[: len(value)] = value
        else:
            setattr(target, attribute, value)
    return spec.compile()


models = [compile_variant(variant) for variant in variants]
nq, nv, nu = models[0].nq, models[0].nv, models[0].nu
qpos = np.fromfile(directory / "qpos.f64", "<f8").reshape(-1, nq)
qvel = np.fromfile(directory / "qvel.f64", "<f8").reshape(-1, nv)
ctrl = np.fromfile(directory / "ctrl.f64", "<f8").reshape(steps, len(models), nu)

datas = []
for i, model in enumerate(models):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos[i], qvel[i]
    datas.append(data)

out_qpos, out_qvel = [], []
for step in range(steps):
    for i, (model, data) in enumerate(zip(models, datas, strict=True)):
        data.ctrl[:] = ctrl[step, i]
        mujoco.mj_step(model, data)
        out_qpos.append(data.qpos.copy())
        out_qvel.append(data.qvel.copy())
np.array(out_qpos, "<f8").tofile(directory / "out_qpos.f64")
np.array(out_qvel, "<f8").tofile(directory / "out_qvel.f64")

names = ("body_subtreemass", "body_invweight0", "dof_M0", "dof_invweight0", "tendon_invweight0", "actuator_acc0")
constants = [np.concatenate([getattr(model, name).ravel() for name in names]) for model in models]
np.array(constants, "<f8").tofile(directory / "constants.f64")
