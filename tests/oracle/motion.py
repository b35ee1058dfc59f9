"""Compares the bodies of a motion file with MuJoCo's own kinematics: motion.py MODEL.xml MOTION.npz"""

import sys

import mujoco
import numpy as np

model = mujoco.MjModel.from_xml_path(sys.argv[1])
model.geom_margin[:] = 1e-4  # lists contacts that are almost touching
data = mujoco.MjData(model)
motion = np.load(sys.argv[2])
frames, bodies = motion["body_pos_w"].shape[:2]
assert motion["joint_pos"].shape == (frames, model.nq - 7), motion["joint_pos"].shape
assert bodies == model.nbody - 1, bodies

worst = dict.fromkeys(["position", "orientation", "linear velocity", "angular velocity", "penetration"], 0.0)
touching = 0
for frame in range(frames):
    data.qpos[:3] = motion["body_pos_w"][frame, 0]
    data.qpos[3:7] = motion["body_quat_w"][frame, 0]
    data.qpos[7:] = motion["joint_pos"][frame]
    root_to_world = np.zeros(9)
    mujoco.mju_quat2Mat(root_to_world, data.qpos[3:7] / np.linalg.norm(data.qpos[3:7]))
    data.qvel[:3] = motion["body_lin_vel_w"][frame, 0]
    data.qvel[3:6] = root_to_world.reshape(3, 3).T @ motion["body_ang_vel_w"][frame, 0]
    data.qvel[6:] = motion["joint_vel"][frame]
    mujoco.mj_forward(model, data)

    for body in range(1, model.nbody):
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
        expected = {
            "position": (motion["body_pos_w"], data.xpos[body]),
            "orientation": (motion["body_quat_w"], data.xquat[body]),
            "linear velocity": (motion["body_lin_vel_w"], velocity[3:]),
            "angular velocity": (motion["body_ang_vel_w"], velocity[:3]),
        }
        for quantity, (stored, value) in expected.items():
            worst[quantity] = max(worst[quantity], np.abs(stored[frame, body - 1] - value).max())
    worst["penetration"] = max([worst["penetration"]] + [-contact.dist for contact in data.contact])
    touching += any(contact.dist < 1e-5 for contact in data.contact)

print(worst)
for quantity, error in worst.items():
    assert error < 2e-6, f"{quantity}: {error}"
# The robot stands in every frame.
assert touching == frames, f"the robot floats in {frames - touching} frames"
