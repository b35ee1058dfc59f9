"""Recomputes every observation and reward of a Go2 replay from its states, with MuJoCo and the formulas of the task.

usage: go2_joystick_flat.py MODEL.mjb DUMP.npz INITIAL.npz ACTIONS.npz PRESET

Prints every mismatch, and exits with status 1 if there is one.
"""

import json
import sys

import mujoco
import numpy as np

MODEL, DUMP, INITIAL, ACTIONS, PRESET = sys.argv[1:]
FEET = ["FL", "FR", "RL", "RR"]
OFFSETS = np.array([0.0, 0.5, 0.5, 0.0])
HOME = np.array([0, 0.8, -1.5, 0, 0.8, -1.5, 0, 1.0, -1.5, 0, 1.0, -1.5])
TO_CTRL = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
FLASHSAC = PRESET == "flashsac"
ACTION_SCALE = 0.4 if FLASHSAC else 0.25
VARIANCE = 0.4 if FLASHSAC else 0.25
WEIGHTS = {
    "tracking_lin_vel": (1.0, 1.0),
    "tracking_ang_vel": (0.2, 0.2),
    "lin_vel_z": (-5.0, -5.0),
    "ang_vel_xy": (-0.1, -0.1),
    "base_height": (-100.0, -20.0),
    "action_rate": (-0.005, -0.02),
    "similar_to_default": (-0.1, -0.4),
    "contact": (0.24, 1.5),
    "swing_feet_z": (4.0, 4.0),
}

model = mujoco.MjModel.from_binary_path(MODEL)
dump = np.load(DUMP)
start = np.load(INITIAL)
actions = np.load(ACTIONS)["actions"]
names = json.loads(str(dump["names"]))
steps, rows = dump["reward"].shape
mismatches = 0


def check(what, actual, expected, tolerance):
    global mismatches
    error = np.max(np.abs(np.asarray(actual, float) - np.asarray(expected, float)) / (1 + np.abs(expected)))
    if not error <= tolerance:
        mismatches += 1
        print(f"{what}: off by {error:.3g}\n  is        {actual}\n  should be {expected}")


def exactly(what, actual, expected):
    global mismatches
    if not np.array_equal(actual, expected):
        mismatches += 1
        print(f"{what}: is {actual}, should be {expected}")


def state(qpos, qvel):
    """A fresh mjData at a state, with everything that depends on position and velocity."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    data.qvel[:] = qvel
    mujoco.mj_forward(model, data)
    return data


def body_frame(data):
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
    return rotation.reshape(3, 3)


def observe(data, action, command, phase):
    terms = {
        "base_ang_vel": data.sensor("gyro").data,
        "projected_gravity": -data.site("imu").xmat.reshape(3, 3)[:, 2],
        "joint_pos": data.qpos[7:] - HOME,
        "joint_vel": data.qvel[6:],
        "actions": action,
        "command": command,
        "gait_phase": np.mod(phase + OFFSETS, 1.0),
        "base_lin_vel": data.sensor("local_linvel").data,
    }
    return {name: np.array(value) for name, value in terms.items()}


def rewards(data, action, previous, command, phase):
    rotation = body_frame(data)
    velocity = rotation.T @ data.qvel[:3]
    angular = data.qvel[3:6]
    phases = np.mod(phase + OFFSETS, 1.0)
    floor = model.geom("floor").id
    touching = np.zeros(4)
    for contact in data.contact:
        for foot, name in enumerate(FEET):
            if set(contact.geom) == {floor, model.geom(name).id}:
                touching[foot] = 1
    heights = np.array([data.geom(name).xpos[2] for name in FEET])
    return {
        "tracking_lin_vel": np.exp(-np.sum((command[:2] - velocity[:2]) ** 2) / VARIANCE),
        "tracking_ang_vel": np.exp(-((command[2] - angular[2]) ** 2) / VARIANCE),
        "lin_vel_z": velocity[2] ** 2,
        "ang_vel_xy": angular[0] ** 2 + angular[1] ** 2,
        "base_height": (data.qpos[2] - 0.3) ** 2,
        "action_rate": np.sum((action - previous) ** 2),
        "similar_to_default": np.sum(np.abs(data.qpos[7:] - HOME)),
        "contact": np.mean((touching > 0.1) == (phases < 0.6)),
        "swing_feet_z": np.mean(np.exp(-((heights - 0.1) ** 2) / 0.01) * (phases >= 0.6)),
    }


exactly("rewards in order", list(names["rewards"]), list(WEIGHTS))
exactly("terminations in order", names["terminations"], ["time_out", "bad_orientation"])
exactly("first state", dump["qpos"][0], start["qpos"])

# Where no contact reading decides, both phases of a foot and every term occur: say so if the states do not cover them.
seen = {"touching": set(), "swing": set(), "fallen": set()}

for row in range(rows):
    command = start["twist"][row].astype(float)
    phase = float(start["gait_phase"][row, 0])
    previous = np.zeros(12)
    stepped = mujoco.MjData(model)
    stepped.qpos[:] = dump["qpos"][0, row]
    stepped.qvel[:] = dump["qvel"][0, row]
    for t in range(steps + 1):
        where = f"row {row}, t = {t}"
        if t > 0:
            action = actions[t - 1, row]
            phase = np.mod(phase + 0.04, 1.0)
            target = np.zeros(12)
            target[TO_CTRL] = action * np.float32(ACTION_SCALE) + HOME.astype(np.float32)
            check(f"ctrl, {where}", dump["ctrl"][t - 1, row], target, 1e-6)
            stepped.ctrl[:] = dump["ctrl"][t - 1, row]
            for _ in range(2):
                mujoco.mj_step(model, stepped)
        else:
            action = np.zeros(12)
        # Where an episode ended, the dump goes on with the next one; the last observation is kept apart.
        ended = t > 0 and dump["terminated"][t - 1, row]
        if not ended:
            exactly(f"qpos, {where}", dump["qpos"][t, row], stepped.qpos)
            exactly(f"qvel, {where}", dump["qvel"][t, row], stepped.qvel)
        data = state(stepped.qpos, stepped.qvel)
        terms = observe(data, action, command, phase)
        for group, size in [("policy", 49), ("critic", 52)]:
            observed = dump[f"final_obs/{group}"][t - 1, row] if ended else dump[f"obs/{group}"][t, row]
            exactly(f"size of {group}", observed.size, size)
            order = list(terms)[: 7 if group == "policy" else 8]
            exactly(f"terms of {group}", list(names["observations"][group]), order)
            for name, (first, last) in names["observations"][group].items():
                values, expected = observed[first:last], terms[name]
                if name == "gait_phase":
                    # A phase is a circle: just below 1 is just above 0.
                    values = expected + np.mod(values - expected + 0.5, 1.0) - 0.5
                check(f"{group}/{name}, {where}", values, expected, 2e-6)
        if t == 0:
            continue
        # Single precision decides on which side of a threshold a phase falls; leave the brink out.
        brink = np.abs(np.mod(phase + OFFSETS, 1.0)[:, None] - np.array([0.0, 0.6, 1.0])).min() < 1e-4
        values = rewards(data, action, previous, command, phase)
        total = 0.0
        for name, value in values.items():
            weighted = value * WEIGHTS[name][FLASHSAC]
            total += dump[f"reward/{name}"][t - 1, row] * 0.02
            if not (brink and name in ("contact", "swing_feet_z")):
                check(f"reward/{name}, {where}", dump[f"reward/{name}"][t - 1, row], weighted, 1e-5)
        check(f"reward, {where}", dump["reward"][t - 1, row], total, 1e-6)
        tilt = np.arccos(np.clip(body_frame(data)[2, 2], -1, 1))
        exactly(f"bad_orientation, {where}", bool(dump["termination/bad_orientation"][t - 1, row]), tilt > np.pi / 3)
        exactly(f"terminated, {where}", bool(dump["terminated"][t - 1, row]), tilt > np.pi / 3)
        exactly(f"truncated, {where}", bool(dump["truncated"][t - 1, row]), False)
        seen["touching"].add(bool(values["contact"] > 0.5))
        seen["swing"].add(bool(values["swing_feet_z"] > 0))
        seen["fallen"].add(bool(tilt > np.pi / 3))
        if ended:
            break
        previous = action

for what, values in seen.items():
    exactly(f"states cover {what}", sorted(values), [False, True])
sys.exit(1 if mismatches else 0)
