"""Recomputes a rollout of go2_joystick_flat with MuJoCo's Python package, from the task's definition alone.

The directory given holds model.mjb, plan.json (preset, rows, steps), and, as little-endian f64: the rows' first state
(qpos, qvel: rows x n), commands (rows x 3), gait phases before the first step (phases: rows), actions
(steps x rows x 12), and the controls that were applied (controls: steps x rows x 12, drive the physics so that rounding
of the controls does not add up). Where rows have models of their own, also kp, kd (rows x 12), mass (rows x nbody), com
(rows x nbody x 3) and gravity (rows x 3).

Writes expected_*.f64, each steps x rows x width: controls, qpos, qvel, policy, critic, terms (value x weight), rewards,
terminated. The observations policy and critic have one more at their start: that of the first state. Everything is
NaN after the step in which a row's episode ended.

Neither sensors nor the engine's body velocities are read: velocities come from qvel, contacts from the contact list,
so that a wrong sensor in the model would be found out.
"""

import copy
import json
import pathlib
import sys

import mujoco
import numpy as np

LEGS = ("FL", "FR", "RL", "RR")
JOINTS = [f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "thigh", "calf")]
HOME = np.array([0, 0.8, -1.5, 0, 0.8, -1.5, 0, 1.0, -1.5, 0, 1.0, -1.5])
OFFSETS = np.array([0, 0.5, 0.5, 0])
DT, SUBSTEPS, FREQUENCY = 0.02, 2, 2.0

# tracking_lin_vel, tracking_ang_vel, lin_vel_z, ang_vel_xy, base_height, action_rate, similar_to_default, contact,
# swing_feet_z
PRESETS = {
    "base": {
        "scale": 0.25,
        "variance": 0.5**2,
        "weights": [1.0, 0.2, -5, -0.1, -100, -0.005, -0.1, 0.24, 4.0],
    },
    "flashsac": {
        "scale": 0.4,
        "variance": 0.4,
        "weights": [1.0, 0.2, -5, -0.1, -20, -0.02, -0.4, 1.5, 4.0],
    },
}

directory = pathlib.Path(sys.argv[1])
plan = json.loads((directory / "plan.json").read_text())
rows, steps, preset = plan["rows"], plan["steps"], PRESETS[plan["preset"]]
model = mujoco.MjModel.from_binary_path(str(directory / "model.mjb"))
assert model.opt.timestep == DT / SUBSTEPS


def read(name, *shape):
    return np.fromfile(directory / f"{name}.f64", "<f8").reshape(shape)


def rotation(quaternion):
    """The matrix of a unit quaternion w, x, y, z: body to world."""
    w, v = quaternion[0], np.asarray(quaternion[1:])
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return (w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * cross


def row_model(row):
    """The model with the row's own numbers."""
    own = copy.deepcopy(model)
    names = [name for name in ("kp", "kd", "mass", "com", "gravity") if (directory / f"{name}.f64").exists()]
    given = {name: read(name, rows, -1)[row] for name in names}
    if "kp" in given:
        own.actuator_gainprm[:, 0] = given["kp"]
        own.actuator_biasprm[:, 1] = -given["kp"]
        own.actuator_biasprm[:, 2] = -given["kd"]
    if "gravity" in given:
        own.opt.gravity[:] = given["gravity"]
    if "mass" in given:
        own.body_mass[:] = given["mass"]
        own.body_ipos[:] = given["com"].reshape(-1, 3)
        mujoco.mj_setConst(own, mujoco.MjData(own))
    return own


qpos, qvel = read("qpos", rows, model.nq), read("qvel", rows, model.nv)
commands, phases = read("commands", rows, 3), read("phases", rows)
actions, controls = read("actions", steps, rows, 12), read("controls", steps, rows, 12)

joint_ids = [model.joint(name).id for name in JOINTS]
joint_qpos, joint_dof = model.jnt_qposadr[joint_ids], model.jnt_dofadr[joint_ids]
actuator_of = {int(model.actuator_trnid[i, 0]): i for i in range(model.nu)}
ctrl_index = [actuator_of[joint] for joint in joint_ids]
imu = model.site("imu").id
floor = model.geom("floor").id
feet = [model.geom(leg).id for leg in LEGS]


def expect(data, command, phase, action, previous):
    """Observations, reward terms and termination in a state whose kinematics and contacts are up to date."""
    root = rotation(data.qpos[3:7])
    linear, angular = data.qvel[:3], data.qvel[3:6]  # world frame, body frame
    q, dq = data.qpos[joint_qpos], data.qvel[joint_dof]
    foot_phase = np.mod(phase + OFFSETS, 1.0)

    site = data.site_xmat[imu].reshape(3, 3)
    angular_world = root @ angular
    site_velocity = linear + np.cross(angular_world, data.site_xpos[imu] - data.qpos[:3])
    policy = [site.T @ angular_world, -site[:, 2], q - HOME, dq, action, command, foot_phase]
    critic = [*policy, site.T @ site_velocity]

    body_velocity = root.T @ linear
    touching = {frozenset((int(contact.geom1), int(contact.geom2))) for contact in data.contact}
    found = np.array([frozenset((floor, foot)) in touching for foot in feet])
    height = data.geom_xpos[feet, 2]
    stance = foot_phase < 0.6
    values = [
        np.exp(-np.sum((command[:2] - body_velocity[:2]) ** 2) / preset["variance"]),
        np.exp(-((command[2] - angular[2]) ** 2) / preset["variance"]),
        body_velocity[2] ** 2,
        angular[0] ** 2 + angular[1] ** 2,
        (data.qpos[2] - 0.3) ** 2,
        np.sum((action - previous) ** 2),
        np.sum(np.abs(q - HOME)),
        np.mean(found == stance),
        np.mean(np.where(stance, 0.0, np.exp(-((height - 0.1) ** 2) / 0.01))),
    ]
    terms = np.multiply(values, preset["weights"])
    # The angle between the root's z axis and the vertical.
    terminated = np.arccos(np.clip(root[2, 2], -1, 1)) > np.radians(60)
    return {
        "policy": np.concatenate(policy),
        "critic": np.concatenate(critic),
        "terms": terms,
        "rewards": [terms.sum() * DT],
        "terminated": [float(terminated)],
    }


widths = {"controls": 12, "qpos": model.nq, "qvel": model.nv, "policy": 49, "critic": 52}
widths |= {"terms": 9, "rewards": 1, "terminated": 1}
expected = {name: np.full((steps, rows, width), np.nan, "<f8") for name, width in widths.items()}
for name in ("policy", "critic"):
    expected[name] = np.full((steps + 1, rows, widths[name]), np.nan, "<f8")
for row in range(rows):
    own = row_model(row)
    data, fresh = mujoco.MjData(own), mujoco.MjData(own)
    data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
    previous, phase = np.zeros(12), phases[row]
    mujoco.mj_copyData(fresh, own, data)
    mujoco.mj_forward(own, fresh)
    first = expect(fresh, commands[row], phase, previous, previous)
    for name in ("policy", "critic"):
        expected[name][0, row] = first[name]
    for step in range(steps):
        action = actions[step, row]
        target = np.zeros(12)
        target[ctrl_index] = action * preset["scale"] + HOME
        data.ctrl[:] = controls[step, row]
        for _ in range(SUBSTEPS):
            mujoco.mj_step(own, data)
        mujoco.mj_copyData(fresh, own, data)
        mujoco.mj_forward(own, fresh)
        phase = np.mod(phase + FREQUENCY * DT, 1.0)

        found = expect(fresh, commands[row], phase, action, previous)
        found |= {"controls": target, "qpos": data.qpos, "qvel": data.qvel}
        for name, value in found.items():
            expected[name][step + (name in ("policy", "critic")), row] = value
        previous = action
        if found["terminated"][0]:
            break
    if any(warning.number for warning in data.warning):
        sys.exit(f"row {row} is unstable: a poor test")

for name, value in expected.items():
    value.tofile(directory / f"expected_{name}.f64")
