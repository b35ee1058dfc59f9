//! Where MuJoCo's messages go. Each test provokes some in a process of its own, in an empty working directory.

mod common;

use std::process::Output;

use common::{is_child, run_in_process};
use manege_mujoco::{Batch, BatchOptions, FaultReason, Model, Step};

/// Runs one of the ignored tests below, and checks that it has left no file.
fn run(child: &str) -> Output {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = run_in_process(child, directory.path());
    let files: Vec<_> = std::fs::read_dir(directory.path()).expect("the directory").collect();
    assert!(files.is_empty(), "{files:?}");
    output
}

/// Two rows, of which the second has a position that MuJoCo warns of.
fn warn() {
    let model =
        Model::from_xml_str("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
            .expect("a valid model");
    let mut batch = Batch::new(&model, &BatchOptions { rows: 2, ..BatchOptions::default() }).expect("valid options");
    batch.qpos_mut(1).expect("a row")[0] = f64::NAN;
    batch.step(&Step::default()).expect("a valid request");
    assert!(matches!(batch.faults()[0].reason, FaultReason::Unstable(_)));
}

#[test]
fn warnings_go_to_tracing_alone() {
    let output = run("warn_with_subscriber");
    assert!(output.status.success(), "{output:?}");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(stderr.contains("WARN mujoco: ") && stderr.contains("QPOS"), "{stderr}");
    assert!(!stdout.contains("QPOS") && !stdout.contains("WARNING"), "{stdout}");
}

#[test]
#[ignore = "run by `warnings_go_to_tracing_alone`"]
fn warn_with_subscriber() {
    if !is_child() {
        return;
    }
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    warn();
}

#[test]
fn nothing_is_printed_without_a_subscriber() {
    let output = run("warn_without_subscriber");
    assert!(output.status.success(), "{output:?}");
    for text in [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)) {
        assert!(!text.contains("QPOS") && !text.contains("WARNING"), "{text}");
    }
}

#[test]
#[ignore = "run by `nothing_is_printed_without_a_subscriber`"]
fn warn_without_subscriber() {
    if !is_child() {
        return;
    }
    warn();
}

/// A subscriber that panics must not unwind into MuJoCo.
#[test]
fn a_panicking_subscriber_is_contained() {
    let output = run("warn_with_panicking_subscriber");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no room for this"), "{output:?}");
}

#[test]
#[ignore = "run by `a_panicking_subscriber_is_contained`"]
fn warn_with_panicking_subscriber() {
    if !is_child() {
        return;
    }
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            panic!("no room for this");
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    tracing_subscriber::fmt().with_writer(|| Full).init();
    warn();
}

/// An error that is no row's cannot be handled: MuJoCo expects not to be returned to. That includes one raised by what a
/// control calls, which must not be mistaken for the row's own and unwound past the control's destructors.
#[test]
fn other_errors_abort() {
    use std::os::unix::process::ExitStatusExt;
    for child in ["error_outside_a_batch", "error_in_a_control"] {
        let output = run(child);
        assert_eq!(output.status.signal(), Some(6), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("MuJoCo: out of cheese"), "{stderr}");
        assert!(!stderr.contains("unwound"), "{stderr}");
    }
}

struct Tracer;
impl Drop for Tracer {
    fn drop(&mut self) {
        eprintln!("unwound");
    }
}

#[test]
#[ignore = "run by `other_errors_abort`"]
fn error_outside_a_batch() {
    if !is_child() {
        return;
    }
    manege_mujoco::install_log_handler();
    let _tracer = Tracer;
    mujoco_rs::wrappers::mj_logging::log_error("out of cheese");
}

#[test]
#[ignore = "run by `other_errors_abort`"]
fn error_in_a_control() {
    if !is_child() {
        return;
    }
    let model = Model::from_xml_str("<mujoco/>").expect("a valid model");
    let mut batch = Batch::new(&model, &BatchOptions { rows: 2, threads: 2, ..BatchOptions::default() }).unwrap();
    let control = |_: usize, _: u32, _: &[f64], _: &[f64], _: &mut [f64]| {
        let _tracer = Tracer;
        mujoco_rs::wrappers::mj_logging::log_error("out of cheese");
    };
    batch.step(&Step { control: Some(&control), ..Step::default() }).expect("a valid request");
}
