"""Describes model.mjb as MuJoCo's Python package sees it, in description.json."""

import json
import pathlib
import sys

import mujoco
import numpy as np

directory = pathlib.Path(sys.argv[1])
model = mujoco.MjModel.from_binary_path(str(directory / "model.mjb"))


def option(name):
    value = getattr(model.opt, name)
    return value.tolist() if isinstance(value, np.ndarray) else value


# The fields in mjOption's order: arrays among the numbers, as in the structure.
options = [
    "timestep", "impratio", "tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance", "sleep_tolerance",
    "gravity", "wind", "magnetic", "density", "viscosity", "o_margin", "o_solref", "o_solimp", "o_friction",
    "integrator", "cone", "jacobian", "solver", "iterations", "ls_iterations", "noslip_iterations", "ccd_iterations",
    "disableflags", "enableflags", "disableactuator", "sdf_initpoints", "sdf_iterations",
]  # fmt: skip
public = {name for name in dir(model.opt) if not name.startswith("_")}
if public != set(options):
    sys.exit(f"mjOption has other fields: {sorted(public ^ set(options))}")

description = {
    "joints": [
        {
            "name": joint.name,
            "kind": int(joint.type[0]),
            "body": int(joint.bodyid[0]),
            "qpos": int(joint.qposadr[0]),
            "dof": int(joint.dofadr[0]),
            "range": joint.range.tolist() if joint.limited[0] else None,
        }
        for joint in map(model.joint, range(model.njnt))
    ],
    "actuators": [
        {
            "name": actuator.name,
            "joint": int(actuator.trnid[0]),
            "gain": float(actuator.gainprm[0]),
            "bias": actuator.biasprm[:3].tolist(),
            "force_range": actuator.forcerange.tolist() if actuator.forcelimited[0] else None,
        }
        for actuator in map(model.actuator, range(model.nactuator))
    ],
    "bodies": [
        {
            "name": body.name,
            "parent": int(body.parentid[0]),
            "mass": float(body.mass[0]),
            "com": body.ipos.tolist(),
            "inertia": body.inertia.tolist(),
        }
        for body in map(model.body, range(model.nbody))
    ],
    "sensors": [
        {
            "name": sensor.name,
            "first": int(sensor.adr[0]),
            "dim": int(sensor.dim[0]),
            "stage": int(model.sensor_needstage[sensor.id]),
        }
        for sensor in map(model.sensor, range(model.nsensor))
    ],
    "keyframes": [
        {"name": key.name, "qpos": key.qpos.tolist(), "qvel": key.qvel.tolist()}
        for key in map(model.key, range(model.nkey))
    ],
    "geoms": [model.geom(geom).name for geom in range(model.ngeom)],
    "sites": [model.site(site).name for site in range(model.nsite)],
    "geom_friction": model.geom_friction.tolist(),
    "dof_armature": model.dof_armature.tolist(),
    "dof_damping": model.dof_damping.tolist(),
    "dof_frictionloss": model.dof_frictionloss.tolist(),
    "qpos0": model.qpos0.tolist(),
    "options": [[name, option(name)] for name in options],
}
(directory / "description.json").write_text(json.dumps(description))
