//! Tells this package's executables where the MuJoCo library is: link arguments do not reach dependent packages.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DEP_MANEGE_MUJOCO_LIB_DIR");
    let directory = std::env::var("DEP_MANEGE_MUJOCO_LIB_DIR").expect("manege-mujoco is a direct dependency");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{directory}");
}
