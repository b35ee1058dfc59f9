//! The whole state of an environment as bytes, from which it continues bit for bit.
//!
//! The state is made of named parts: components, one after the other in row order, and resources. The runtime registers its
//! own; a task or a host that keeps state of its own in the world registers that with [`SnapshotParts`], and it is saved
//! and restored with the rest. What is fixed when the environment is built (terms, sizes, options) is not part of it:
//! whoever restores makes sure that the environment is built the same way.

mod parts;
mod values;

use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;

pub(crate) use parts::register;
pub use values::{Reader, Value, Writer};

use crate::backend::BackendError;
use crate::step::RowEntities;

/// Why a state cannot be restored. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The state has a part that the environment lacks, or the other way round.
    #[error("part {index} of the state is {found}, but the environment has {expected} there")]
    Part {
        /// Position among the parts.
        index: usize,
        /// The name in the state.
        found: String,
        /// The name in the environment.
        expected: String,
    },
    /// A part holds more or less than the environment's.
    #[error("the state's part `{part}` has another size than the environment's: the rows or terms differ")]
    Size {
        /// The part's name.
        part: String,
    },
    /// A value that cannot be.
    #[error("the state's part `{part}` holds {message}")]
    Value {
        /// The part's name.
        part: String,
        /// What is wrong.
        message: &'static str,
    },
    /// The bytes end too early, or go on after the last part.
    #[error("the state is cut off, or not one")]
    Cut,
    /// The physics engine does not take its part.
    #[error("the state does not fit the physics engine: {0}")]
    Backend(#[from] BackendError),
}

/// What can be saved and put back.
pub trait Saved {
    /// Appends the state. As much for every value of the same environment, as far as possible: a size that differs is how
    /// a state is found not to fit.
    fn save(&self, to: &mut Writer);

    /// Takes back what [`save`](Self::save) appended. On failure, whatever was changed is put back by the caller.
    ///
    /// # Errors
    /// The state does not fit.
    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError>;
}

type Save = fn(&World, &mut Writer);
type Load = fn(&mut World, &mut Reader<'_>) -> Result<(), SnapshotError>;

struct Part {
    name: &'static str,
    save: Save,
    load: Load,
}

/// The parts that make up the state, in order.
#[derive(Resource, Default)]
pub struct SnapshotParts(Vec<Part>);

impl SnapshotParts {
    /// Makes a component of the rows part of the state.
    pub fn component<C: Component<Mutability = Mutable> + Saved>(&mut self, name: &'static str) -> &mut Self {
        self.part(
            name,
            |world, to| {
                for &entity in &world.resource::<RowEntities>().0 {
                    if let Some(component) = world.get::<C>(entity) {
                        component.save(to);
                    }
                }
            },
            |world, from| {
                world.resource_scope(|world, entities: Mut<RowEntities>| {
                    let present = entities.0.iter();
                    present.copied().try_for_each(|entity| match world.get_mut::<C>(entity) {
                        Some(mut component) => component.load(from),
                        None => Ok(()),
                    })
                })
            },
        )
    }

    /// Makes a resource part of the state.
    pub fn resource<R: Resource<Mutability = Mutable> + Saved>(&mut self, name: &'static str) -> &mut Self {
        self.part(name, |world, to| world.resource::<R>().save(to), |world, from| world.resource_mut::<R>().load(from))
    }

    fn part(&mut self, name: &'static str, save: Save, load: Load) -> &mut Self {
        self.0.push(Part { name, save, load });
        self
    }
}

/// The state of the environment in `world`.
#[must_use]
pub fn save(world: &World) -> Vec<u8> {
    let mut to = Writer::default();
    for part in &world.resource::<SnapshotParts>().0 {
        let start = to.begin(part.name);
        (part.save)(world, &mut to);
        to.end(start);
    }
    to.into_bytes()
}

/// Gives the environment in `world` a state that [`save`] made of an environment that was built the same way.
///
/// # Errors
/// The state does not fit; nothing is changed then.
pub fn load(world: &mut World, state: &[u8]) -> Result<(), SnapshotError> {
    let before = save(world);
    world.resource_scope(|world, parts: Mut<SnapshotParts>| {
        load_parts(world, &parts.0, state).inspect_err(|_| {
            let undone = load_parts(world, &parts.0, &before);
            debug_assert!(undone.is_ok(), "an environment takes its own state: {undone:?}");
        })
    })
}

fn load_parts(world: &mut World, parts: &[Part], state: &[u8]) -> Result<(), SnapshotError> {
    let mut rest = Reader::new(state);
    let mut found = Vec::with_capacity(parts.len());
    while !rest.is_empty() {
        found.push(rest.part()?);
    }
    for index in 0..found.len().max(parts.len()) {
        let name = found.get(index).map(|(name, _)| *name);
        let expected = parts.get(index).map(|part| part.name);
        if name != expected {
            let quoted = |name: Option<&str>| name.map_or("none".to_owned(), |name| format!("`{name}`"));
            return Err(SnapshotError::Part { index, found: quoted(name), expected: quoted(expected) });
        }
    }
    for (part, (_, mut from)) in parts.iter().zip(found) {
        (part.load)(world, &mut from)?;
        if !from.is_empty() {
            return Err(SnapshotError::Size { part: part.name.to_owned() });
        }
    }
    Ok(())
}
