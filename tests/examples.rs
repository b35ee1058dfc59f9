//! The examples run, and what they assert holds.

use std::path::Path;
use std::process::Command;

fn run(example: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_manege")).with_file_name("examples").join(example);
    let output = Command::new(&program).output().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
}

#[test]
fn cart_pole_runs() {
    run("cart_pole");
}

#[test]
fn host_application_runs() {
    run("host_application");
}

#[test]
fn custom_terms_runs() {
    run("custom_terms");
}
