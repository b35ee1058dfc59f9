"""What `g1_walk_flat` should observe, reward and end, from MuJoCo's own kinematics and formulas of its own.

Usage: g1_walk_flat.py DIRECTORY. The directory holds `<name>.f64` files of what the rows did; the expected values are
written next to them. Sensors are not read: their quantities are worked out from poses and velocities of objects.
"""

import sys
from pathlib import Path

import mujoco
import numpy as np

directory = Path(sys.argv[1])
model = mujoco.MjModel.from_xml_path(str(Path(__file__).parents[2] / "assets/robots/g1/scene_flat.xml"))
data = mujoco.MjData(model)


def read(name, width):
    return np.fromfile(directory / f"{name}.f64").reshape(-1, width)


def write(name, values):
    np.asarray(values, dtype=np.float64).tofile(directory / f"{name}.f64")


def velocity(site, local):
    """Angular and linear velocity of a site, in its own frame or the world's."""
    result = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_SITE, model.site(site).id, result, local)
    return result[:3], result[3:]


def foot_height(phase):
    """Height of a foot, m: two cubic Bézier curves, up and down."""

    def bezier(t):
        return t**3 + 3 * t**2 * (1 - t)

    wrapped = np.fmod(phase + np.pi, 2 * np.pi) - np.pi
    x = (wrapped + np.pi) / (2 * np.pi)
    return 0.09 * (bezier(2 * x) if x <= 0.5 else 1 - bezier(2 * x - 1))


flashsac = bool(read("flashsac", 1)[0, 0])
qpos, qvel = read("qpos", model.nq), read("qvel", model.nv)
action, previous = read("action", model.nu), read("previous", model.nu)
command, phase = read("command", 3), read("phase", 2)

stand = model.key("stand").qpos[7:]
leg = [0.01, 2.0 if flashsac else 1.0, 5, 0.01, 5, 5]
pose_weights = np.array(leg + leg + [50] * 17)
# The penalties' common factor at the start.
scale = 0.125

policy, critic, rewards, ends = [], [], [], []
for row in range(len(qpos)):
    data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_comVel(model, data)
    gyro, _ = velocity("imu_in_torso", True)
    _, linear = velocity("imu_in_pelvis", True)
    up = data.site("imu_in_torso").xmat.reshape(3, 3)[:, 2]
    phases = np.fmod(phase[row] + 2 * np.pi * 1.5 * 0.02, 2 * np.pi)
    feet = [data.site(f"{side}_foot") for side in ("left", "right")]

    observation = np.concatenate(
        [
            0.25 * gyro,
            -up,
            qpos[row, 7:] - stand,
            0.05 * qvel[row, 6:],
            action[row],
            command[row],
            phases,
        ]
    )
    policy.append(observation)
    critic.append(np.concatenate([observation, 2.0 * linear]))

    feet_tilt = 0.0
    height_error = 0.0
    for foot, foot_phase in zip(feet, phases):
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, foot.xmat)
        feet_tilt += quat[1] ** 2 + quat[2] ** 2
        height_error += (foot.xpos[2] - foot_height(foot_phase)) ** 2
    rewards.append(
        [
            2.0 * np.exp(-np.sum((command[row, :2] - linear[:2]) ** 2) / 0.25),
            1.5 * np.exp(-((command[row, 2] - gyro[2]) ** 2) / 0.25),
            -1.0 * scale * np.sum(gyro[:2] ** 2),
            -10.0 * scale * np.sum(up[:2] ** 2),
            (-5.0 if flashsac else -4.0) * scale * np.sum((action[row] - previous[row]) ** 2),
            -0.5 * scale * np.sum(pose_weights * (qpos[row, 7:] - stand) ** 2),
            (-25.0 if flashsac else -20.0) * scale * feet_tilt,
            5.0 * np.exp(-height_error / (0.005 if flashsac else 0.04)),
            10.0,
        ]
    )
    tilted = np.degrees(np.arccos(np.clip(up[2], -1, 1))) > 65
    ends.append([False, tilted, qpos[row, 2] < 0.3])

write("policy", policy)
write("critic", critic)
write("rewards", rewards)
write("ends", ends)
