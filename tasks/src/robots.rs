//! The robots' model files, carried inside the library.

/// A model: a main MJCF file and the files that it includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFiles {
    /// Name of the main file.
    pub main: &'static str,
    /// Names and texts of all files.
    pub files: &'static [(&'static str, &'static str)],
}

/// The Go2 quadruped on a flat floor.
pub const GO2_FLAT: ModelFiles = ModelFiles {
    main: "scene_flat.xml",
    files: &[
        ("scene_flat.xml", include_str!("../../assets/robots/go2/scene_flat.xml")),
        ("go2.xml", include_str!("../../assets/robots/go2/go2.xml")),
    ],
};

/// The G1 humanoid on a flat floor.
pub const G1_FLAT: ModelFiles = ModelFiles {
    main: "scene_flat.xml",
    files: &[
        ("scene_flat.xml", include_str!("../../assets/robots/g1/scene_flat.xml")),
        ("g1.xml", include_str!("../../assets/robots/g1/g1.xml")),
    ],
};
