//! What the command line asks for, and the help texts.

use std::ffi::OsString;

use thiserror::Error;

/// One reading of the words after `cargo x`.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Print a help text; nothing is fetched or built.
    Help(Topic),
    /// Put MuJoCo in place and do nothing else.
    Setup,
    /// Run the tests, with these arguments for `cargo test`.
    Test(Vec<OsString>),
    /// Run the benches, with these arguments for `cargo bench`.
    Bench(Vec<OsString>),
    /// Build the benchmark's direct side, and run `manege cases` with these arguments.
    Cases(Vec<OsString>),
    /// Run the `manege` command with these arguments.
    Manege(Vec<OsString>),
}

/// The whole command line.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// Cargo features to build with, as `--features` takes them.
    pub features: Option<OsString>,
    /// What is asked for.
    pub request: Request,
}

/// What a help text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Overview,
    Setup,
    Test,
    Bench,
}

/// A command line that none of the commands understands.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UsageError {
    /// `setup` was given a word.
    #[error("`cargo x setup` takes no arguments, and was given `{0}`; see `cargo x setup --help`")]
    SetupArgument(String),
    /// `--features` ended the line.
    #[error("`--features` needs names of cargo features, such as `cargo x --features onnx,tracy <COMMAND>`")]
    NoFeatures,
    /// Features were asked for where nothing is built.
    #[error(
        "`--features` has no use here: it comes before a command that is built, as in `cargo x --features onnx test`"
    )]
    UnusedFeatures,
}

impl CommandLine {
    /// Reads the words that follow `cargo x`: features for the build, if any, and then the request.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, UsageError> {
        let mut words = words.into_iter().peekable();
        let first = words.peek().and_then(|word| word.to_str());
        let features = match first.and_then(|word| word.strip_prefix("--features")) {
            Some("") => Some(words.nth(1).ok_or(UsageError::NoFeatures)?),
            Some(list) if list.starts_with('=') => {
                let list = OsString::from(&list[1..]);
                words.next();
                Some(list)
            }
            _ => None,
        };
        if features.as_ref().is_some_and(|list| list.is_empty()) {
            return Err(UsageError::NoFeatures);
        }
        let request = Request::parse(words)?;
        if features.is_some() && matches!(request, Request::Help(_) | Request::Setup) {
            return Err(UsageError::UnusedFeatures);
        }
        Ok(Self { features, request })
    }
}

impl Request {
    /// Reads the words that follow `cargo x`.
    ///
    /// A first word that is no command of this program belongs to `manege`, `--help` and misspelt ones included: that
    /// command knows its own names and suggests the nearest.
    fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, UsageError> {
        let mut words = words.into_iter();
        let Some(first) = words.next() else {
            return Ok(Self::Help(Topic::Overview));
        };
        let rest: Vec<_> = words.collect();
        let help = rest.first().is_some_and(|word| word == "--help" || word == "-h");
        Ok(match first.to_str() {
            Some("setup") if help => Self::Help(Topic::Setup),
            Some("test") if help => Self::Help(Topic::Test),
            Some("bench") if help => Self::Help(Topic::Bench),
            // Its help is `manege`'s, and needs nothing else built.
            Some("cases") if !help => Self::Cases(rest),
            Some("setup") => match rest.first() {
                None => Self::Setup,
                Some(word) => {
                    return Err(UsageError::SetupArgument(word.to_string_lossy().into_owned()));
                }
            },
            Some("test") => Self::Test(rest),
            Some("bench") => Self::Bench(rest),
            // A bench with options of its own, `--help` among them.
            Some("scaling") => {
                Self::Bench(["--bench", "scaling", "--"].into_iter().map(OsString::from).chain(rest).collect())
            }
            _ => Self::Manege(std::iter::once(first).chain(rest).collect()),
        })
    }
}

impl Topic {
    /// The help text, ready to print.
    pub fn text(self) -> &'static str {
        match self {
            Self::Overview => OVERVIEW,
            Self::Setup => SETUP,
            Self::Test => TEST,
            Self::Bench => BENCH,
        }
    }
}

const OVERVIEW: &str = "\
Puts MuJoCo in place on first use, then runs a command in release mode.

Usage: cargo x [--features LIST] <COMMAND> [ARGUMENTS]

Commands of this program:
  setup   Put MuJoCo in place under third_party/mujoco, and do nothing else
  test    Run every test of the workspace, those against MuJoCo's Python package included
  bench   Run the benches
  scaling Measure how throughput and memory grow with threads and rows; see `cargo x scaling --help`
  cases   Build the benchmark's direct side too, and run `manege cases` with the rest of the line

Any other command is run by `manege`, with the rest of the line unchanged:
  cargo x --help            what `manege` can do
  cargo x <COMMAND> --help  about one of its commands

Options, before the command:
  --features LIST   build with these cargo features, separated by commas: onnx (policies in ONNX format), tracy (zones
                    for the Tracy profiler), bevy (the plugin for bevy_app; the tests always have it)

Environment:
  MUJOCO_DYNAMIC_LINK_DIR   a folder with a libmujoco.so of your own (absolute path); nothing is fetched then
  MANEGE_ORACLE_PYTHON      a Python of your own with the mujoco package and numpy, for `cargo x test`

Examples:
  cargo x test
  cargo x --features onnx collect go2_joystick_flat --policy policy.onnx
";

const SETUP: &str = "\
Puts MuJoCo in place under third_party/mujoco, fetching it with pip if it is not there.

Usage: cargo x setup

Does nothing if the library is there and whole. If MUJOCO_DYNAMIC_LINK_DIR names a folder of your own, checks that it
holds the library and fetches nothing.

Example: cargo x setup && cargo clippy --workspace
";

const TEST: &str = "\
Runs every test of the workspace in release mode, documentation examples included.

Usage: cargo x test [ARGUMENTS OF cargo test]

Results are compared with MuJoCo's own Python package, which is installed into a virtual environment at target/venv
on first use. Where that is impossible, one line says why and those tests are skipped. MANEGE_ORACLE_PYTHON names an
interpreter of your own instead. `--package NAME` narrows the run to one package; see also `cargo test --help`.

Example: cargo x test --package manege-systems reward
";

const BENCH: &str = "\
Runs the benches.

Usage: cargo x bench [ARGUMENTS OF cargo bench]

Example: cargo x bench -- --save-baseline before
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request, UsageError> {
        Request::parse(line.split_whitespace().map(OsString::from))
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn no_words_ask_for_the_overview() {
        assert_eq!(parse(""), Ok(Request::Help(Topic::Overview)));
    }

    #[test]
    fn own_commands_take_the_words_after_them() {
        assert_eq!(parse("setup"), Ok(Request::Setup));
        assert_eq!(parse("test"), Ok(Request::Test(vec![])));
        assert_eq!(
            parse("test -p manege-systems -- --nocapture"),
            Ok(Request::Test(words("-p manege-systems -- --nocapture")))
        );
        assert_eq!(parse("bench -- step"), Ok(Request::Bench(words("-- step"))));
        assert_eq!(parse("scaling --rows 64"), Ok(Request::Bench(words("--bench scaling -- --rows 64"))));
        assert_eq!(parse("scaling --help"), Ok(Request::Bench(words("--bench scaling -- --help"))));
        assert_eq!(parse("cases --envs 8 --json"), Ok(Request::Cases(words("--envs 8 --json"))));
    }

    #[test]
    fn help_of_own_commands_is_printed_here() {
        assert_eq!(parse("setup --help"), Ok(Request::Help(Topic::Setup)));
        assert_eq!(parse("test -h"), Ok(Request::Help(Topic::Test)));
        assert_eq!(parse("bench --help"), Ok(Request::Help(Topic::Bench)));
        // After `--` the word is for the test runner.
        assert_eq!(parse("test -- --help"), Ok(Request::Test(words("-- --help"))));
    }

    #[test]
    fn every_other_line_reaches_manege_unchanged() {
        for line in ["collect --help", "--help", "collekt", "tasks setup", "-- test", "cases --help"] {
            assert_eq!(parse(line), Ok(Request::Manege(words(line))), "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn words_that_are_not_text_reach_manege_unchanged() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        assert_eq!(Request::parse([odd.clone()]), Ok(Request::Manege(vec![odd])));
    }

    #[test]
    fn features_come_before_the_command() {
        let line = |line: &str| CommandLine::parse(words(line));
        for given in ["--features onnx,tracy collect --envs 8", "--features=onnx,tracy collect --envs 8"] {
            let request = Request::Manege(words("collect --envs 8"));
            assert_eq!(line(given), Ok(CommandLine { features: Some("onnx,tracy".into()), request }), "{given}");
        }
        // Behind the command they belong to it.
        let request = Request::Test(words("--features onnx"));
        assert_eq!(line("test --features onnx"), Ok(CommandLine { features: None, request }));
        let request = Request::Manege(words("--featureless"));
        assert_eq!(line("--featureless"), Ok(CommandLine { features: None, request }));
    }

    #[test]
    fn features_need_names_and_something_to_build() {
        for given in ["--features", "--features="] {
            assert_eq!(CommandLine::parse(words(given)), Err(UsageError::NoFeatures), "{given}");
        }
        for given in ["--features onnx", "--features onnx setup", "--features onnx test --help"] {
            assert_eq!(CommandLine::parse(words(given)), Err(UsageError::UnusedFeatures), "{given}");
        }
    }

    #[test]
    fn setup_refuses_a_word() {
        assert_eq!(parse("setup now"), Err(UsageError::SetupArgument("now".to_owned())));
    }
}
