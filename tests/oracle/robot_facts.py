"""Hold a robot's scene to the facts recorded about it.

Usage: robot_facts.py SCENE.xml FACTS.json

Compiles the scene with MuJoCo's own Python package, compares it with the
facts, prints every number that differs and exits with 1 if any does.

The facts were written with ten decimals (depths with six, sensor readings
with eight), and values that the file states directly are compared without any
tolerance. The inverse weights are recorded in full. They depend on every mass,
inertia, axis and offset of the robot, so they also hold the digits that the
rounding left out.
"""

import json
import sys

import mujoco
import numpy as np

EXACT = 0.0
TEN_DECIMALS = 6e-11
EIGHT_DECIMALS = 6e-9
SIX_DECIMALS = 6e-7
INVERSE_WEIGHT_RELATIVE = 1e-12


class Report:
    """Collects what differs."""

    def __init__(self):
        self.compared = 0
        self.mismatches = []

    def same(self, what, got, want):
        """Names, counts and flags: equal or not."""
        self.compared += 1
        if got != want:
            self.mismatches.append(f"{what}: {got!r}, expected {want!r}")

    def close(self, what, got, want, tolerance):
        """Numbers, to an absolute tolerance; a NaN is never close."""
        self.compared += 1
        got, want = np.atleast_1d(np.asarray(got, float)), np.atleast_1d(np.asarray(want, float))
        if got.shape != want.shape or not np.all(np.abs(got - want) <= tolerance):
            self.mismatches.append(f"{what}: {got.tolist()}, expected {want.tolist()}")

    def quat(self, what, got, want):
        """Quaternions, which stand for the same rotation under either sign."""
        got = np.asarray(got, float)
        self.close(what, got if np.dot(got, want) >= 0 else -got, want, TEN_DECIMALS)


def kind(enum, value):
    """`kind(mujoco.mjtJoint, 3)` is `hinge`."""
    return enum(int(value)).name.split("_", 1)[1].lower()


def name(model, objtype, index):
    return mujoco.mj_id2name(model, objtype, index)


def names(model, objtype, count):
    return [name(model, objtype, i) for i in range(count)]


def find(accessor, key):
    """The object of that name, or None: the lists of names are compared first, and tell which is missing."""
    try:
        return accessor(key)
    except KeyError:
        return None


def option(model, facts, report):
    opt, want = model.opt, facts["option"]
    enums = {
        "integrator": mujoco.mjtIntegrator,
        "solver": mujoco.mjtSolver,
        "cone": mujoco.mjtCone,
        "jacobian": mujoco.mjtJacobian,
    }
    for key, value in want.items():
        got = getattr(opt, key)
        if key in enums:
            report.same(f"option {key}", kind(enums[key], got), value.lower())
        else:
            report.close(f"option {key}", got, value, EXACT)


def sizes(model, facts, report):
    for key, value in facts["sizes"].items():
        report.same(f"size {key}", getattr(model, key), value)
    report.close("total mass", model.body_mass.sum(), facts["total_mass"], 1e-12)


def bodies(model, facts, report):
    report.same(
        "bodies",
        names(model, mujoco.mjtObj.mjOBJ_BODY, model.nbody),
        [body["name"] for body in facts["bodies"]],
    )
    for want in facts["bodies"]:
        body = find(model.body, want["name"])
        if body is None:
            continue
        what = f"body {want['name']}"
        parent = None if body.id == 0 else model.body(body.parentid[0]).name
        report.same(f"{what} parent", parent, want["parent"])
        report.close(f"{what} pos", body.pos, want["pos"], EXACT)
        report.quat(f"{what} quat", body.quat, want["quat_wxyz"])
        report.close(f"{what} mass", body.mass, want["mass"], EXACT)
        report.close(f"{what} centre of mass", body.ipos, want["com_pos"], TEN_DECIMALS)
        report.close(f"{what} inertia", body.inertia, want["inertia_diag"], EXACT)
        report.quat(f"{what} inertia quat", body.iquat, want["inertia_quat_wxyz"])
        report.same(f"{what} joint count", body.jntnum[0], 1 if "joint" in want else 0)
        if "joint" in want and body.jntnum[0] == 1:
            hinge = want["joint"].get("type") != "free"
            defaults = facts["hinge_defaults"] if hinge else {}
            joint(model, body.jntadr[0], {**defaults, **want["joint"]}, report)


def joint(model, index, want, report):
    got = model.joint(index)
    dof = got.dofadr[0]
    what = f"joint {want['name']}"
    report.same(f"{what} name", name(model, mujoco.mjtObj.mjOBJ_JOINT, index), want["name"])
    report.same(f"{what} type", kind(mujoco.mjtJoint, got.type[0]), want["type"])
    report.same(f"{what} qpos address", got.qposadr[0], want["qpos_adr"])
    report.same(f"{what} dof address", dof, want["dof_adr"])
    for key, field in (
        ("armature", model.dof_armature),
        ("damping", model.dof_damping),
        ("frictionloss", model.dof_frictionloss),
    ):
        dofs = field[dof : dof + (6 if want["type"] == "free" else 1)]
        report.close(f"{what} {key}", dofs, np.full(len(dofs), want[key]), EXACT)
    if want["type"] == "free":
        return
    report.same(f"{what} limited", bool(got.limited[0]), want["limited"])
    report.same(f"{what} force limited", bool(model.jnt_actfrclimited[index]), want["actuatorfrc_limited"])
    for key, value in (
        ("axis", got.axis),
        ("pos", got.pos),
        ("range", got.range),
        ("stiffness", got.stiffness[:1]),
        ("ref", model.qpos0[got.qposadr[0]]),
        ("margin", got.margin),
        ("solref_limit", model.jnt_solref[index]),
        ("solimp_limit", model.jnt_solimp[index]),
        ("solref_friction", model.dof_solref[dof]),
        ("solimp_friction", model.dof_solimp[dof]),
        ("actuatorfrc_range", model.jnt_actfrcrange[index]),
    ):
        report.close(f"{what} {key}", value, want[key], EXACT)
    tolerance = INVERSE_WEIGHT_RELATIVE * want["dof_invweight0"]
    report.close(f"{what} invweight0", model.dof_invweight0[dof], want["dof_invweight0"], tolerance)


def geoms(model, facts, report):
    """Every geom that can touch something is listed; the others are looks only."""
    colliding = [i for i in range(model.ngeom) if model.geom_contype[i] or model.geom_conaffinity[i]]
    report.same(
        "geoms that collide",
        [name(model, mujoco.mjtObj.mjOBJ_GEOM, i) for i in colliding],
        [geom["name"] for geom in facts["collision_geoms"]],
    )
    for record in facts["collision_geoms"]:
        want = {**facts["geom_defaults"], **record}
        geom = find(model.geom, want["name"])
        if geom is None:
            continue
        what = f"geom {want['name']}"
        report.same(f"{what} body", model.body(geom.bodyid[0]).name, want["body"])
        report.same(f"{what} type", kind(mujoco.mjtGeom, geom.type[0]), want["type"])
        report.quat(f"{what} quat", geom.quat, want["quat_wxyz"])
        for key in ("size", "pos"):
            report.close(f"{what} {key}", getattr(geom, key), want[key], TEN_DECIMALS)
        for key in ("contype", "conaffinity", "condim", "priority"):
            report.same(f"{what} {key}", int(getattr(geom, key)[0]), want[key])
        for key in ("friction", "margin", "gap", "solmix", "solref", "solimp"):
            report.close(f"{what} {key}", getattr(geom, key), want[key], EXACT)


def sites(model, facts, report):
    report.same(
        "sites",
        names(model, mujoco.mjtObj.mjOBJ_SITE, model.nsite),
        [site["name"] for site in facts["sites"]],
    )
    for want in facts["sites"]:
        site = find(model.site, want["name"])
        if site is None:
            continue
        what = f"site {want['name']}"
        report.same(f"{what} body", model.body(site.bodyid[0]).name, want["body"])
        report.close(f"{what} pos", site.pos, want["pos"], EXACT)
        report.quat(f"{what} quat", site.quat, want["quat_wxyz"])


def excludes(model, facts, report):
    got = [
        sorted((model.body(int(signature) >> 16).name, model.body(int(signature) & 0xFFFF).name))
        for signature in model.exclude_signature
    ]
    want = [sorted(pair) for pair in facts["contact_excludes"]]
    report.same("contact excludes", sorted(got), sorted(want))


def actuators(model, facts, report):
    report.same(
        "actuators",
        names(model, mujoco.mjtObj.mjOBJ_ACTUATOR, model.nu),
        [actuator["name"] for actuator in facts["actuators"]],
    )
    for record in facts["actuators"]:
        want = {**facts["actuator_defaults"], **record}
        actuator = find(model.actuator, want["name"])
        if actuator is None:
            continue
        what = f"actuator {want['name']}"
        report.same(f"{what} transmission", kind(mujoco.mjtTrn, actuator.trntype[0]), "joint")
        report.same(f"{what} joint", model.joint(actuator.trnid[0]).name, want["joint"])
        report.same(f"{what} dynamics", kind(mujoco.mjtDyn, actuator.dyntype[0]), "none")
        report.same(f"{what} gain type", int(actuator.gaintype[0]), want["gaintype"])
        report.same(f"{what} bias type", int(actuator.biastype[0]), want["biastype"])
        report.close(f"{what} gear", actuator.gear, [want["gear0"], 0, 0, 0, 0, 0], EXACT)
        gain = np.zeros(len(actuator.gainprm))
        gain[0] = want["kp"]
        report.close(f"{what} gain", actuator.gainprm, gain, EXACT)
        bias = np.zeros(len(actuator.biasprm))
        bias[1], bias[2] = -want["bias_kp"], -want["kd"]
        report.close(f"{what} bias", actuator.biasprm, bias, EXACT)
        report.same(f"{what} ctrl limited", bool(actuator.ctrllimited[0]), want["ctrl_limited"])
        report.close(f"{what} ctrl range", actuator.ctrlrange, want["ctrlrange"], EXACT)
        report.same(f"{what} force limited", bool(actuator.forcelimited[0]), want["force_limited"])
        report.close(f"{what} force range", actuator.forcerange, want["forcerange"], EXACT)


def sensors(model, facts, report):
    report.same(
        "sensors",
        names(model, mujoco.mjtObj.mjOBJ_SENSOR, model.nsensor),
        [sensor["name"] for sensor in facts["sensors"]],
    )
    for record in facts["sensors"]:
        want = {**facts["sensor_defaults"], **record}
        sensor = find(model.sensor, want["name"])
        if sensor is None:
            continue
        what = f"sensor {want['name']}"
        report.same(f"{what} type", kind(mujoco.mjtSensor, sensor.type[0]), want["type"])
        report.same(f"{what} dim", int(sensor.dim[0]), want["dim"])
        report.same(f"{what} address", int(sensor.adr[0]), want["adr"])
        for side, type_field, id_field in (("obj", "objtype", "objid"), ("ref", "reftype", "refid")):
            objtype = getattr(sensor, type_field)[0]
            report.same(f"{what} {side}type", kind(mujoco.mjtObj, objtype), want[f"{side}type"])
            obj = name(model, int(objtype), int(getattr(sensor, id_field)[0]))
            report.same(f"{what} {side}name", obj, want[f"{side}name"])
        report.close(f"{what} cutoff", sensor.cutoff, want["cutoff"], EXACT)
        report.close(f"{what} noise", sensor.noise, want["noise"], EXACT)
        report.same(f"{what} intprm", model.sensor_intprm[sensor.id].tolist(), want["intprm"])


def keyframes(model, facts, report):
    for index, want in enumerate(facts["keyframes"][: model.nkey]):
        what = f"keyframe {want['name']}"
        report.same(f"{what} name", name(model, mujoco.mjtObj.mjOBJ_KEY, index), want["name"])
        report.close(f"{what} qpos", model.key_qpos[index], want["qpos"], EXACT)
        report.close(f"{what} qvel", model.key_qvel[index], want["qvel"], EXACT)
        report.close(f"{what} ctrl", model.key_ctrl[index], want["ctrl"], EXACT)


def forward(model, facts, report):
    """The forward pass at the first keyframe, at the timestep that the facts were taken with."""
    want = facts["keyframe0_forward"]
    model.opt.timestep = want["timestep"]
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)

    report.close("forward pass, centre of mass", data.subtree_com[0], want["com"], TEN_DECIMALS)
    report.same("forward pass, contacts", data.ncon, want["ncon"])
    got = sorted((model.geom(c.geom1).name, model.geom(c.geom2).name, c.dist) for c in data.contact)
    expected = sorted(map(tuple, want["contacts"]))
    pairs = [contact[:2] for contact in got]
    report.same("forward pass, contact pairs", pairs, [contact[:2] for contact in expected])
    depths = [contact[2] for contact in got]
    report.close("forward pass, contact distances", depths, [c[2] for c in expected], SIX_DECIMALS)
    for sensor, value in want["sensordata"].items():
        reading = find(data.sensor, sensor)
        if reading is not None:
            report.close(f"forward pass, sensor {sensor}", reading.data, value, EIGHT_DECIMALS)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model = mujoco.MjModel.from_xml_path(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        facts = json.load(file)

    report = Report()
    for check in (option, sizes, bodies, geoms, sites, excludes, actuators, sensors, keyframes, forward):
        check(model, facts, report)
    for mismatch in report.mismatches:
        print(mismatch)
    print(f"{len(report.mismatches)} of {report.compared} comparisons differ (MuJoCo {mujoco.__version__})")
    sys.exit(1 if report.mismatches else 0)


if __name__ == "__main__":
    main()
