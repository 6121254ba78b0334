//! What is declared of a command: how it is run, prepared and checked.

use crate::error::{Error, Result};
use crate::platform::inert::neutralize_line;
use serde::de::{Error as _, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in which commands are declared, beside the sources of a program.
pub const FILE: &str = "syscost.toml";

/// The longest title of a command, characters.
const LONGEST_TITLE: usize = 60;

/// A command, and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSpec {
    /// Its name in the id `command/NAME`: lower-case letters, digits and hyphens.
    #[serde(default)]
    pub name: String,
    /// What is executed.
    pub run: Run,
    /// Shell line that runs before each execution, untimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// Shell line that runs after each execution, untimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<String>,
    /// The file that is its standard input; without one, `/dev/null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PathBuf>,
    /// Where it runs; without one, where syscost was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Variables that are added to its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// What is expected of each execution.
    #[serde(default)]
    pub expect: Expect,
    /// The longest time of an execution, s.
    #[serde(default = "default_timeout")]
    pub timeout: f64,
}

/// What is expected of each execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The exit code.
    #[serde(default)]
    pub exit: i32,
    /// The standard output.
    #[serde(default)]
    pub output: ExpectedOutput,
}

/// What is expected of the standard output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedOutput {
    /// Nothing was said: an output that differs leaves the case unwitnessed.
    #[default]
    Unknown,
    /// It is the same in each execution; another one disproves the case.
    Same,
    /// It may differ.
    Any,
}

/// How a command is started.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Run {
    /// A line for `sh -c`; it is started directly if a shell would only split it at its spaces.
    Line(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

fn default_timeout() -> f64 {
    600.0
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct EitherForm;
        impl<'de> Visitor<'de> for EitherForm {
            type Value = Run;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("a shell line, or a list of a program and its arguments")
            }

            fn visit_str<E: serde::de::Error>(self, line: &str) -> std::result::Result<Run, E> {
                let is_empty = line.trim().is_empty();
                if is_empty { Err(E::custom("it is empty")) } else { Ok(Run::Line(line.to_owned())) }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> std::result::Result<Run, A::Error> {
                let words = Vec::<String>::deserialize(SeqAccessDeserializer::new(words))?;
                if words.is_empty() { Err(A::Error::custom("it is empty")) } else { Ok(Run::Words(words)) }
            }
        }
        deserializer.deserialize_any(EitherForm)
    }
}

impl Run {
    /// The program and its arguments.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Words(words) => words.clone(),
            Self::Line(line) if is_plain(line) => line.split_ascii_whitespace().map(str::to_owned).collect(),
            Self::Line(line) => ["sh", "-c", line].map(str::to_owned).into(),
        }
    }
}

/// Whether a shell would only split this line at its spaces: no character of it is special, and no word sets a variable. Words that a
/// shell has built in are programs as well.
fn is_plain(line: &str) -> bool {
    let is_plain_character = |c: char| c.is_ascii_alphanumeric() || "-_./:,+@%= ".contains(c);
    let program = line.split_ascii_whitespace().next();
    line.chars().all(is_plain_character) && program.is_some_and(|word| !word.contains('='))
}

impl Display for Run {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Line(line) => line.clone(),
            Self::Words(words) => words.join(" "),
        };
        f.write_str(&neutralize_line(&text, LONGEST_TITLE))
    }
}

/// A file of commands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    command: BTreeMap<String, CommandSpec>,
}

impl CommandSpec {
    /// A command of which only its name and line are known.
    pub fn new(name: &str, run: Run) -> Self {
        Self {
            name: name.to_owned(),
            run,
            prepare: None,
            clean: None,
            input: None,
            directory: None,
            environment: BTreeMap::new(),
            expect: Expect::default(),
            timeout: default_timeout(),
        }
    }

    /// The command of a shell line, named after its words.
    pub fn from_line(line: &str) -> Self {
        Self::new(&name_from(line), Run::Line(line.to_owned()))
    }

    /// The longest time of an execution.
    pub fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }

    /// The commands of two sides that are compared, each in a list for its side and under the same name; one command is that of both
    /// sides.
    pub fn for_sides(lines: &[String]) -> Option<[Self; 2]> {
        let named = |name: &str, line: &String| Self::new(name, Run::Line(line.clone()));
        match lines {
            [] => None,
            [line] => Some([(); 2].map(|()| Self::from_line(line))),
            [a, b, ..] => Some([named("ab", a), named("ab", b)]),
        }
    }

    /// Commands as JSON, for [`crate::VARIABLE`].
    pub fn list_to_json(list: &[Self]) -> String {
        serde_json::to_string(list).unwrap_or_default()
    }

    /// The commands of [`crate::VARIABLE`].
    ///
    /// # Errors
    /// It is not what [`Self::list_to_json`] wrote.
    pub fn list_from_json(json: &str) -> Result<Vec<Self>> {
        serde_json::from_str(json).map_err(|error| {
            Error::Usage(format!("{}: {error}; syscost sets this variable itself: unset it", crate::VARIABLE))
        })
    }

    /// The commands of a file, by name; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or a field of it is wrong: the sentence has its line.
    pub fn list_from_file(path: &Path) -> Result<Vec<Self>> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::list_from_toml(path, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::file(path, "reading", error)),
        }
    }

    fn list_from_toml(path: &Path, text: &str) -> Result<Vec<Self>> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            wrong(path, format!("line {line}"), error.message())
        })?;
        let named = |(name, spec): (String, Self)| {
            let spec = Self { name: name.clone(), ..spec };
            spec.check().map(|()| spec).map_err(|why| wrong(path, format!("[command.{name}]"), &why))
        };
        file.command.into_iter().map(named).collect()
    }

    /// What is wrong with a value, beyond its form.
    fn check(&self) -> std::result::Result<(), String> {
        if self.name != name_from(&self.name) {
            return Err("a name has lower-case letters, digits and single hyphens".into());
        }
        let is_time = self.timeout > 0.0 && self.timeout <= 86_400.0;
        if is_time { Ok(()) } else { Err("timeout is from more than 0 to 86400 seconds".into()) }
    }
}

fn wrong(path: &Path, field: String, found: &str) -> Error {
    Error::Content {
        path: path.to_owned(),
        field,
        expected: "the fields that `syscost help commands` lists".into(),
        found: neutralize_line(&found.replace('\n', " "), 300),
        remedy: "mend it, or rename the file to measure without it".into(),
    }
}

/// A name for a command: its letters and digits, and single hyphens in place of all else.
fn name_from(text: &str) -> String {
    const LONGEST: usize = 32;
    let lower = text.to_lowercase();
    let parts = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("-");
    let name: String = joined.chars().take(LONGEST).collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() { "it".into() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<CommandSpec>> {
        CommandSpec::list_from_toml("syscost.toml".as_ref(), text)
    }

    #[test]
    fn a_file_declares_commands_in_either_form() {
        let text = "[command.sort-all]\nrun = 'sort <a | uniq'\ntimeout = 5\nexpect = { exit = 1, output = 'same' }\n\
                    [command.zip]\nrun = ['gzip', '-1', 'a b']\nprepare = 'rm -f x'\nenvironment = { LANG = 'C' }\n";
        let specs = parsed(text).expect("right");
        assert_eq!(specs[0].run.words(), ["sh", "-c", "sort <a | uniq"]);
        assert_eq!((specs[0].expect.exit, &specs[0].expect.output), (1, &ExpectedOutput::Same));
        assert_eq!((specs[1].name.as_str(), specs[1].run.words()[2].as_str()), ("zip", "a b"));
        let again =
            CommandSpec::list_from_json(&CommandSpec::list_to_json(&specs)).expect("as it was written");
        assert_eq!(again, specs);
    }

    #[test]
    fn a_wrong_field_is_named_with_its_line_and_what_was_expected() {
        for (text, words) in [
            ("[command.a]\nrun = 'x'\nrum = 1\n", ["line 3", "rum"]),
            ("[command.a]\nrun = 3\n", ["line 2", "a shell line, or a list"]),
            ("[command.a]\nrun = []\n", ["line 2", "empty"]),
            ("[command.a]\nprepare = 'x'\n", ["line 1", "run"]),
            ("[command.A_b]\nrun = 'x'\n", ["[command.A_b]", "hyphens"]),
            ("[command.a]\nrun = 'x'\ntimeout = -1\n", ["[command.a]", "timeout"]),
            ("[comand.a]\nrun = 'x'\n", ["line 1", "comand"]),
            ("[command.a]\nrun = 'x'\nexpect = { output = 'alike' }\n", ["line 3", "alike"]),
        ] {
            let sentence = parsed(text).expect_err(text).to_string();
            assert!(words.iter().all(|word| sentence.contains(word)), "{text}: {sentence}");
            assert!(
                sentence.starts_with("syscost.toml: ") && sentence.contains("help commands"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn only_a_line_that_needs_a_shell_gets_one() {
        let words = |line: &str| Run::Line(line.into()).words();
        assert_eq!(words("gzip -1 --keep=yes a.txt"), ["gzip", "-1", "--keep=yes", "a.txt"]);
        for line in ["a <b", "a | b", "A=1 b", "a 'b c'", "a $B", "a *", "a; b", "a ~/b", "a\nb", "a # b"] {
            assert_eq!(words(line), ["sh", "-c", line]);
        }
    }

    #[test]
    fn a_command_is_named_after_its_words() {
        let name = |line: &str| CommandSpec::from_line(line).name;
        assert_eq!(name("gzip -1 <file.txt"), "gzip-1-file-txt");
        assert_eq!(name("Ünïcode | \u{1b}[31m"), "n-code-31m");
        assert_eq!(name("| |"), "it");
        assert!(name(&"long ".repeat(20)).len() <= 32);
    }
}
