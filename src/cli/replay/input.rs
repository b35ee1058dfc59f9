//! What a replay reads.

use std::path::Path;

use anyhow::anyhow;
use manege::Environment;
use manege::environment::{InitialState, Spec, TermColumns};
use manege::npz::{Extent, NpzReader};
use manege_systems::config::nearest;

use crate::cli::{Failure, usage};

pub(super) fn open(path: &Path) -> Result<NpzReader, Failure> {
    NpzReader::open(path).map_err(usage)
}

/// Number of rows that the actions are for.
pub(super) fn rows(file: &mut NpzReader) -> Result<usize, Failure> {
    let shape = file.shape("actions").map_err(usage)?;
    match shape[..] {
        [_, rows, _] if rows > 0 => Ok(rows),
        _ => Err(usage(anyhow!(
            "{}: `actions` has shape {shape:?}, not (control steps, rows, action width)",
            file.path().display()
        ))),
    }
}

/// The actions of all control steps. Whether they are finite is checked step by step.
pub(super) fn actions(file: &mut NpzReader, environment: &Environment) -> Result<Vec<f32>, Failure> {
    let shape =
        [Extent::Any("steps"), Extent::Exactly(environment.rows()), Extent::Exactly(environment.action_width())];
    Ok(file.read::<f32>("actions", &shape).map_err(usage)?.values)
}

/// States, commands and task state by name.
pub(super) fn initial(path: &Path, spec: &Spec, rows: usize) -> Result<InitialState, Failure> {
    let mut file = open(path)?;
    let names: Vec<String> = file.names().map(str::to_owned).collect();
    let mut initial = InitialState::default();
    let known: Vec<&str> = ["qpos", "qvel"]
        .into_iter()
        .chain(spec.commands.iter().chain(&spec.task_state).map(|columns| columns.name.as_str()))
        .collect();
    for name in names {
        let find = |list: &[TermColumns]| {
            list.iter().find(|columns| columns.name == name).map(|columns| columns.columns.len())
        };
        match (name.as_str(), find(&spec.commands), find(&spec.task_state)) {
            ("qpos", ..) => initial.qpos = Some(matrix(&mut file, &name, rows, spec.nq)?),
            ("qvel", ..) => initial.qvel = Some(matrix(&mut file, &name, rows, spec.nv)?),
            (_, Some(width), _) => {
                let values = matrix(&mut file, &name, rows, width)?;
                initial.commands.push((name, values));
            }
            (_, None, Some(width)) => {
                let values = matrix(&mut file, &name, rows, width)?;
                initial.task_state.push((name, values));
            }
            _ => {
                let hint = nearest(&name, known.iter().copied());
                let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                let (path, known) = (path.display(), known.join(", "));
                return Err(usage(anyhow!("{path}: nothing is called `{name}`{hint}; known: {known}")));
            }
        }
    }
    Ok(initial)
}

/// An array of shape (rows, width); (rows,) will do for a width of 1.
fn matrix<T: manege::npz::Number>(
    file: &mut NpzReader,
    name: &str,
    rows: usize,
    width: usize,
) -> Result<Vec<T>, Failure> {
    let flat = width == 1 && file.shape(name).map_err(usage)?.len() == 1;
    let shape = [Extent::Exactly(rows), Extent::Exactly(width)];
    let shape = if flat { &shape[..1] } else { &shape[..] };
    Ok(file.read_finite(name, shape).map_err(usage)?.values)
}
