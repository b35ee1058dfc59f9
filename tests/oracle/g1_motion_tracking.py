"""What `g1_motion_tracking` should observe, reward, measure and end, from MuJoCo's own kinematics and formulas of its own.

Usage: g1_motion_tracking.py DIRECTORY. The directory holds `<name>.f64` files of what the rows did; the expected values are
written next to them. The motion is read from its file. Sensors are not read: their quantities are worked out from poses and
velocities of objects.
"""

import sys
from pathlib import Path

import mujoco
import numpy as np

ROOT = Path(__file__).parents[2]
BODIES = """pelvis left_hip_roll_link left_knee_link left_ankle_roll_link right_hip_roll_link right_knee_link
right_ankle_roll_link torso_link left_shoulder_roll_link left_elbow_link left_wrist_yaw_link right_shoulder_roll_link
right_elbow_link right_wrist_yaw_link""".split()
ANCHOR = BODIES.index("torso_link")
ENDS = [BODIES.index(f"{side}_{name}_link") for name in ("ankle_roll", "wrist_yaw") for side in ("left", "right")]
LOW = [BODIES.index(name) for name in BODIES if "ankle" not in name and "wrist" not in name]

directory = Path(sys.argv[1])
model = mujoco.MjModel.from_xml_path(str(ROOT / "assets/robots/g1/scene_flat.xml"))
data = mujoco.MjData(model)
ids = [model.body(name).id for name in BODIES]
motion = {name: np.float64(value) for name, value in np.load(ROOT / "assets/motions/g1_synthetic.npz").items()}
# The file does not count the world.
kept = [i - 1 for i in ids]
FRAMES = len(motion["joint_pos"])


def read(name, width):
    return np.fromfile(directory / f"{name}.f64").reshape(-1, width)


def write(name, values):
    np.asarray(values, dtype=np.float64).tofile(directory / f"{name}.f64")


def matrix(quat):
    result = np.zeros(9)
    mujoco.mju_quat2Mat(result, quat / np.linalg.norm(quat))
    return result.reshape(3, 3)


def velocity(kind, index, local):
    """Angular and linear velocity of an object, in its own frame or the world's."""
    result = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, kind, index, result, local)
    return result[:3], result[3:]


def pose(qpos, qvel):
    """Positions, rotation matrices, linear and angular velocities of the tracked bodies in the world."""
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_comVel(model, data)
    speeds = [velocity(mujoco.mjtObj.mjOBJ_XBODY, i, False) for i in ids]
    return (
        data.xpos[ids].copy(),
        data.xmat[ids].reshape(-1, 3, 3).copy(),
        np.array([linear for _, linear in speeds]),
        np.array([angular for angular, _ in speeds]),
    )


def reference(frame):
    return (
        motion["body_pos_w"][frame, kept],
        np.array([matrix(quat) for quat in motion["body_quat_w"][frame, kept]]),
        motion["body_lin_vel_w"][frame, kept],
        motion["body_ang_vel_w"][frame, kept],
    )


def alignment(robot, wanted):
    """The turn about the vertical that takes the motion's anchor to the robot's, and where that one is."""
    m = robot[1][ANCHOR] @ wanted[1][ANCHOR].T
    yaw = np.arctan2(m[1, 0], m[0, 0])
    return np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]]), robot[0][ANCHOR]


def relative(wanted, aligned):
    turn, anchor = aligned
    base = np.array([anchor[0], anchor[1], wanted[0][ANCHOR, 2]])
    positions = (wanted[0] - wanted[0][ANCHOR]) @ turn.T + base
    return positions, np.array([turn @ m for m in wanted[1]])


def angle(a, b):
    """Angle between two rotation matrices, accurate for small ones too."""
    difference = a.T @ b
    skew = np.array(
        [difference[2, 1] - difference[1, 2], difference[0, 2] - difference[2, 0], difference[1, 0] - difference[0, 1]]
    )
    return np.arctan2(np.linalg.norm(skew), np.trace(difference) - 1)


def six(m):
    return m[:, :2].reshape(-1)


def closeness(square, std):
    return np.exp(-square / std**2)


def mean_square(differences):
    return np.mean(np.sum(differences**2, axis=1))


before, after = read("before", model.nq + model.nv), read("after", model.nq + model.nv)
frames = read("frame", 1)[:, 0].astype(int)
action, previous = read("action", model.nu), read("previous", model.nu)
stand = model.key("stand").qpos[7:]
low, high = model.jnt_range[1:].T

policy, critic, rewards, ends, metrics, commands = [], [], [], [], [], []
for row, frame in enumerate(frames):
    wanted = reference(frame)
    aligned = alignment(pose(before[row, : model.nq], before[row, model.nq :]), wanted)
    q, v = after[row, : model.nq], after[row, model.nq :]
    robot = pose(q, v)
    gyro, _ = velocity(mujoco.mjtObj.mjOBJ_SITE, model.site("imu_in_torso").id, True)
    _, linear = velocity(mujoco.mjtObj.mjOBJ_SITE, model.site("imu_in_pelvis").id, True)

    goal, goal_turn = relative(wanted, aligned)
    angles = np.array([angle(a, b) for a, b in zip(goal_turn, robot[1])])
    excess = np.maximum(low - q[7:], 0) + np.maximum(q[7:] - high, 0)
    rewards.append(
        [
            closeness(np.sum((wanted[0][ANCHOR] - robot[0][ANCHOR]) ** 2), 0.3),
            0.5 * closeness(angle(wanted[1][ANCHOR], robot[1][ANCHOR]) ** 2, 0.4),
            2.0 * closeness(mean_square(goal - robot[0]), 0.3),
            closeness(np.mean(angles**2), 0.4),
            closeness(mean_square(wanted[2] - robot[2]), 1.0),
            closeness(mean_square(wanted[3] - robot[3]), 3.14),
            0.3 * closeness(np.mean((motion["joint_pos"][frame] - q[7:]) ** 2), 0.2),
            0.7 * closeness(np.mean((motion["joint_vel"][frame] - v[6:]) ** 2), 1.0),
            -0.1 * np.sum((action[row] - previous[row]) ** 2),
            -2.0 * np.sum(excess**2),
            -0.1 * np.sum(robot[0][LOW, 2] < 0.05),
        ]
    )
    # The z component of gravity's direction in a frame is minus that of the frame's z axis in the world.
    tilts = [-m[ANCHOR][2, 2] for m in (wanted[1], robot[1])]
    end = [
        False,
        frame >= FRAMES - 1,
        abs(wanted[0][ANCHOR, 2] - robot[0][ANCHOR, 2]) > 0.5,
        abs(tilts[0] - tilts[1]) > 0.8,
        np.any(np.abs(goal[ENDS, 2] - robot[0][ENDS, 2]) > 0.5),
    ]
    ends.append(end)

    if not any(end):
        frame += 1
    wanted = reference(frame)
    anchor, into = robot[0][ANCHOR], robot[1][ANCHOR].T
    command = np.concatenate([motion["joint_pos"][frame], motion["joint_vel"][frame]])
    commands.append(command)
    observation = np.concatenate(
        [
            command,
            into @ (wanted[0][ANCHOR] - anchor),
            six(into @ wanted[1][ANCHOR]),
            linear,
            gyro,
            q[7:] - stand,
            v[6:],
            action[row],
        ]
    )
    policy.append(observation)
    positions = np.concatenate([into @ (p - anchor) for p in robot[0]])
    turns = np.concatenate([six(into @ m) for m in robot[1]])
    critic.append(np.concatenate([observation, positions, turns, linear]))

    goal, goal_turn = relative(wanted, alignment(robot, wanted))
    metrics.append(
        [
            np.linalg.norm(wanted[0][ANCHOR] - robot[0][ANCHOR]),
            angle(wanted[1][ANCHOR], robot[1][ANCHOR]),
            np.linalg.norm(wanted[2][ANCHOR] - robot[2][ANCHOR]),
            np.linalg.norm(wanted[3][ANCHOR] - robot[3][ANCHOR]),
            np.mean(np.linalg.norm(goal - robot[0], axis=1)),
            np.mean([angle(a, b) for a, b in zip(goal_turn, robot[1])]),
            np.mean(np.linalg.norm(wanted[2] - robot[2], axis=1)),
            np.mean(np.linalg.norm(wanted[3] - robot[3], axis=1)),
            np.linalg.norm(motion["joint_pos"][frame] - q[7:]),
            np.linalg.norm(motion["joint_vel"][frame] - v[6:]),
        ]
    )

write("policy", policy)
write("critic", critic)
write("command", commands)
write("rewards", rewards)
write("ends", ends)
write("metrics", metrics)
