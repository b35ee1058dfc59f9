//! Names resolved to places, once, at build.

use std::ops::Range;

macro_rules! slice_handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name {
            start: u32,
            len: u32,
        }

        impl $name {
            /// A handle on `len` values from `start`.
            #[must_use]
            pub const fn new(start: usize, len: usize) -> Self {
                Self { start: start as u32, len: len as u32 }
            }

            /// Where the values are.
            #[must_use]
            pub const fn range(self) -> Range<usize> {
                self.start as usize..(self.start + self.len) as usize
            }

            /// Number of values.
            #[must_use]
            pub const fn width(self) -> usize {
                self.len as usize
            }
        }
    };
}

slice_handle! {
    /// Where a physics output lies in [`RobotState`](manege_components::RobotState).
    StateSlice
}
slice_handle! {
    /// Where a command term's values lie in [`Command`](manege_components::Command).
    CommandSlice
}
slice_handle! {
    /// Where named values lie in [`TaskState`](manege_components::TaskState).
    TaskSlice
}

/// Names a reward term to a curriculum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RewardHandle(pub(crate) usize);

impl StateSlice {
    /// A part of this output.
    ///
    /// # Panics
    /// If the part reaches beyond the output.
    #[must_use]
    pub const fn part(self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len as usize, "part of a state slice out of range");
        Self::new(self.start as usize + start, len)
    }
}
