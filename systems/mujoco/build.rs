//! Finds MuJoCo's shared library and keeps a copy of it where Cargo and the dynamic loader look.
//!
//! The copy lives in `OUT_DIR`: Cargo puts search paths below `target` on the loader's path for `cargo run` and
//! `cargo test`. Link arguments do not reach the packages that depend on this one, so the directory is published
//! as `DEP_MANEGE_MUJOCO_LIB_DIR`, from which the build script of a package with binaries makes its rpath.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// The variable that names the directory of MuJoCo's library.
const DIRECTORY_VARIABLE: &str = "MUJOCO_DYNAMIC_LINK_DIR";
/// The name that the linker looks for.
const LINK_NAME: &str = "libmujoco.so";
/// The name that the dynamic loader looks for.
const LOAD_NAME: &str = "libmujoco.so.3.17.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={DIRECTORY_VARIABLE}");
    if let Err(message) = link() {
        eprintln!("error: {message}");
        process::exit(1);
    }
}

fn link() -> Result<(), String> {
    let target = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if target != "linux" {
        return Err(format!("manege-mujoco links MuJoCo on Linux only, not on {target}"));
    }
    let library = library()?;
    println!("cargo::rerun-if-changed={}", library.display());

    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set; build with Cargo")?);
    for name in [LOAD_NAME, LINK_NAME] {
        let copy = out.join(name);
        // A process may have the old copy mapped: give the new one an inode of its own.
        fs::remove_file(&copy).ok();
        fs::copy(&library, &copy)
            .map_err(|error| format!("cannot copy {} to {}: {error}", library.display(), copy.display()))?;
    }

    let out = out.display();
    println!("cargo::rustc-link-search=native={out}");
    println!("cargo::rustc-link-lib=dylib=mujoco");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{out}");
    println!("cargo::metadata=LIB_DIR={out}");
    Ok(())
}

/// The user's library, checked to be the version that the bindings describe.
fn library() -> Result<PathBuf, String> {
    let hint = format!(
        "run `cargo x setup` to fetch it, or set {DIRECTORY_VARIABLE} to a directory that holds {LINK_NAME} of MuJoCo 3.17.0"
    );
    let directory = env::var_os(DIRECTORY_VARIABLE)
        .filter(|directory| !directory.is_empty())
        .ok_or_else(|| format!("{DIRECTORY_VARIABLE} is not set: {hint}"))?;
    let directory = Path::new(&directory);
    let library = directory.join(LINK_NAME);
    let contents = fs::read(&library).map_err(|error| format!("cannot read {}: {error}; {hint}", library.display()))?;
    let name = format!("{LOAD_NAME}\0");
    if !contents.windows(name.len()).any(|window| window == name.as_bytes()) {
        return Err(format!("{} is not MuJoCo 3.17.0: {hint}", library.display()));
    }
    Ok(library)
}
