//! Model fields with values of their own for each row, and copies of data fields.

use std::ffi::{CString, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use mujoco_rs::mujoco_c::mjtGain;

use super::Batch;
use super::field_names::{DATA, ElementKind, MODEL, OPTIONS};
use crate::error::nearest;
use crate::model::{array, array_mut};
use crate::{BatchError, ObjectKind, ffi};

mod sealed {
    pub trait Sealed {
        const KIND: super::ElementKind;
    }
}

/// The types of a field's elements: `f64`, `i32` and `bool`.
pub trait Element: sealed::Sealed + Copy {
    /// The type's name in messages.
    #[doc(hidden)]
    const NAME: &'static str;
}

macro_rules! element {
    ($($element:ty => $kind:ident)*) => {$(
        impl sealed::Sealed for $element {
            const KIND: ElementKind = ElementKind::$kind;
        }
        impl Element for $element {
            const NAME: &'static str = stringify!($element);
        }
    )*};
}
element! { f64 => Number i32 => Integer bool => Flag }

/// A field of the model that rows have values of their own for.
#[derive(Debug, Clone, Copy)]
pub struct ModelField<T> {
    key: Key,
    element: PhantomData<T>,
}

/// A field of `mjData` that is copied out of every row.
#[derive(Debug, Clone, Copy)]
pub struct DataField<T> {
    key: Key,
    element: PhantomData<T>,
}

/// Where a batch keeps what it knows about a field, and what it should find there.
#[derive(Debug, Clone, Copy)]
struct Key {
    index: usize,
    name: &'static str,
}

/// A field's values.
pub(super) struct Storage {
    name: &'static str,
    structure: &'static str,
    kind: ElementKind,
    values: *mut c_void,
    width: usize,
}

const IN_MODEL: &str = "mjModel";
const IN_DATA: &str = "mjData";

impl Batch {
    /// Gives rows values of their own for a model field, starting from the model's. `name` is the field's name in
    /// `mjModel`, or `opt.` and its name in `mjOption`.
    ///
    /// # Errors
    /// [`BatchError::UnknownField`] if there is no field of this name and type that may differ between rows;
    /// [`BatchError::SharedField`] if this model uses it in a way that forbids it.
    pub fn expand<T: Element>(&mut self, name: &str) -> Result<ModelField<T>, BatchError> {
        if name == "actuator_gainprm" && !self.gains_are_numbers() {
            return Err(BatchError::SharedField {
                name: "actuator_gainprm",
                reason: "an actuator keeps addresses among its gain parameters",
            });
        }
        let names = MODEL.iter().chain(OPTIONS);
        let key = self.field::<T>(IN_MODEL, names, name, ffi::mjb_expand)?;
        Ok(ModelField { key, element: PhantomData })
    }

    /// Has a field of `mjData` copied out of every row by [`step_native`](Self::step_native) and
    /// [`forward`](Self::forward). Its values are zero until then.
    ///
    /// What the stages that were run do not compute is another row's, unless the batch is persistent.
    ///
    /// # Errors
    /// [`BatchError::UnknownField`] if there is no field of this name and type outside the state.
    pub fn bind<T: Element>(&mut self, name: &str) -> Result<DataField<T>, BatchError> {
        let key = self.field::<T>(IN_DATA, DATA.iter(), name, ffi::mjb_output)?;
        Ok(DataField { key, element: PhantomData })
    }

    /// The values that rows have for a model field, row after row.
    ///
    /// # Errors
    /// [`BatchError::ForeignField`] if another batch gave out the handle.
    pub fn model_field<T: Element>(&self, field: ModelField<T>) -> Result<&[T], BatchError> {
        let storage = self.storage::<T>(IN_MODEL, field.key)?;
        // SAFETY: MuJoCo keeps this many elements of this type while the batch lives, and writes them in calls only.
        Ok(unsafe { array(storage.values.cast(), self.rows * storage.width) })
    }

    /// The values that rows have for a model field, row after row, to be written. They take effect at the rows' next
    /// call; see [`set_const`](Self::set_const) for when that needs to be one.
    ///
    /// # Errors
    /// [`BatchError::ForeignField`] if another batch gave out the handle.
    pub fn model_field_mut<T: Element>(&mut self, field: ModelField<T>) -> Result<&mut [T], BatchError> {
        self.evaluated.fill(false);
        self.stored_mut(field)
    }

    fn stored_mut<T: Element>(&mut self, field: ModelField<T>) -> Result<&mut [T], BatchError> {
        let storage = self.storage::<T>(IN_MODEL, field.key)?;
        // SAFETY: as above; the mutable borrow of the batch keeps everybody else away.
        Ok(unsafe { array_mut(storage.values.cast(), self.rows * storage.width) })
    }

    /// The values that one row has for a model field.
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row; [`BatchError::ForeignField`] if another batch gave out the handle.
    pub fn model_field_row<T: Element>(&self, field: ModelField<T>, row: usize) -> Result<&[T], BatchError> {
        self.check_row(row)?;
        let width = self.storage::<T>(IN_MODEL, field.key)?.width;
        Ok(&self.model_field(field)?[row * width..][..width])
    }

    /// The values that one row has for a model field, to be written as by [`model_field_mut`](Self::model_field_mut).
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row; [`BatchError::ForeignField`] if another batch gave out the handle.
    pub fn model_field_row_mut<T: Element>(
        &mut self,
        field: ModelField<T>,
        row: usize,
    ) -> Result<&mut [T], BatchError> {
        self.check_row(row)?;
        self.evaluated[row] = false;
        let width = self.storage::<T>(IN_MODEL, field.key)?.width;
        Ok(&mut self.stored_mut(field)?[row * width..][..width])
    }

    /// The copies of a data field, row after row.
    ///
    /// # Errors
    /// [`BatchError::ForeignField`] if another batch gave out the handle.
    pub fn data_field<T: Element>(&self, field: DataField<T>) -> Result<&[T], BatchError> {
        let storage = self.storage::<T>(IN_DATA, field.key)?;
        // SAFETY: MuJoCo keeps this many elements of this type while the batch lives, and writes them in calls only.
        Ok(unsafe { array(storage.values.cast(), self.rows * storage.width) })
    }

    /// Finds a name in a table, obtains its storage from MuJoCo the first time, and remembers it.
    fn field<'a, T: Element>(
        &mut self,
        structure: &'static str,
        names: impl Iterator<Item = &'a (&'static str, ElementKind)> + Clone,
        name: &str,
        obtain: unsafe extern "C-unwind" fn(*mut ffi::mjBatch, *const i8, *mut c_int, *mut c_int) -> *mut c_void,
    ) -> Result<Key, BatchError> {
        let unknown = || BatchError::UnknownField {
            structure,
            name: name.to_owned(),
            element: T::NAME,
            nearest: nearest(name, names.clone().filter(|(_, kind)| *kind == T::KIND).map(|(name, _)| *name)),
        };
        let &(name, kind) =
            names.clone().find(|(known, kind)| *known == name && *kind == T::KIND).ok_or_else(unknown)?;
        if let Some(index) =
            self.fields.iter().position(|storage| storage.name == name && storage.structure == structure)
        {
            return Ok(Key { index, name });
        }
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let (mut width, mut element_size) = (0, 0);
        // SAFETY: the batch is valid, the name NUL-terminated, and no call is under way.
        let values = unsafe { obtain(self.raw.as_ptr(), c_name.as_ptr(), &mut width, &mut element_size) };
        let values = NonNull::new(values).ok_or_else(unknown)?.as_ptr();
        if usize::try_from(element_size) != Ok(size_of::<T>()) {
            return Err(unknown());
        }
        let width = usize::try_from(width).unwrap_or(0);
        self.fields.push(Storage { name, structure, kind, values, width });
        Ok(Key { index: self.fields.len() - 1, name })
    }

    fn storage<T: Element>(&self, structure: &'static str, key: Key) -> Result<&Storage, BatchError> {
        self.fields
            .get(key.index)
            .filter(|storage| storage.name == key.name && storage.structure == structure && storage.kind == T::KIND)
            .ok_or(BatchError::ForeignField { name: key.name })
    }

    /// Whether the gain parameters of all actuators are just that.
    fn gains_are_numbers(&self) -> bool {
        // SAFETY: an array of the model with one `int` for each actuator.
        let gains = unsafe { array(self.model.raw().actuator_gaintype, self.model.count(ObjectKind::Actuator)) };
        gains.iter().all(|&gain| gain == mjtGain::mjGAIN_FIXED as i32 || gain == mjtGain::mjGAIN_AFFINE as i32)
    }
}

/// A model field whose values differ, or may differ, between rows.
pub(super) struct Expanded {
    pub(super) kind: ElementKind,
    pub(super) values: *mut c_void,
    /// Values for each row.
    pub(super) width: usize,
}

/// All model fields that a batch can give rows values of their own for, in a fixed order.
pub(super) fn model_fields() -> impl Iterator<Item = &'static str> {
    MODEL.iter().chain(OPTIONS).map(|(name, _)| *name)
}

impl Batch {
    /// A model field's storage, if rows have values of their own for it: because somebody asked for it, or because
    /// [`set_const`](Self::set_const) computed values that differ.
    pub(super) fn expanded(&self, name: &str) -> Option<Expanded> {
        let &(name, kind) = MODEL.iter().chain(OPTIONS).find(|(known, _)| *known == name)?;
        let name = CString::new(name).ok()?;
        let mut width = 0;
        // SAFETY: the batch is valid, the name NUL-terminated, and no call is under way; nothing is changed.
        let values = unsafe { ffi::mjb_expanded(self.raw.as_ptr(), name.as_ptr(), &mut width, std::ptr::null_mut()) };
        (!values.is_null()).then(|| Expanded {
            kind,
            values: values.cast_mut(),
            width: usize::try_from(width).unwrap_or(0),
        })
    }

    /// As [`expand`](Self::expand), whatever the type of the field's elements.
    pub(super) fn expand_any(&mut self, name: &str) -> Result<(), BatchError> {
        match MODEL.iter().chain(OPTIONS).find(|(known, _)| *known == name).map(|(_, kind)| kind) {
            Some(ElementKind::Integer) => self.expand::<i32>(name).map(drop),
            Some(ElementKind::Flag) => self.expand::<bool>(name).map(drop),
            Some(ElementKind::Number) | None => self.expand::<f64>(name).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchOptions, Model};

    /// MuJoCo knows every field of the tables, with elements of the size that the tables say.
    #[test]
    fn every_field_of_the_tables_can_be_obtained() {
        let model = Model::from_xml_str("<mujoco/>").expect("a valid model");
        let mut batch = Batch::new(&model, &BatchOptions::default()).expect("valid options");
        for &(name, kind) in MODEL.iter().chain(OPTIONS) {
            let error = match kind {
                ElementKind::Number => batch.expand::<f64>(name).err(),
                ElementKind::Integer => batch.expand::<i32>(name).err(),
                ElementKind::Flag => batch.expand::<bool>(name).err(),
            };
            assert!(error.is_none(), "{name}: {error:?}");
        }
        for &(name, kind) in DATA {
            let error = match kind {
                ElementKind::Number => batch.bind::<f64>(name).err(),
                ElementKind::Integer => batch.bind::<i32>(name).err(),
                ElementKind::Flag => batch.bind::<bool>(name).err(),
            };
            assert!(error.is_none(), "{name}: {error:?}");
        }
    }
}
