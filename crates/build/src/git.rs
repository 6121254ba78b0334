//! Starts git; no other module does. It reads the user's repository, and writes nothing to it.
//!
//! A git hook, `git -c …`, an alias and some shells set variables (`GIT_DIR`, `GIT_INDEX_FILE`, `GIT_OBJECT_DIRECTORY` …) that
//! name the repository. [`Repository`] keeps these variables when it finds and reads the user's repository. A command in a
//! [borrowed tree](super::borrowed_tree) starts without them ([`forget_repository`]), or git would write the user's index.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use syscost_platform::error::{Error, Result};
use syscost_platform::process::tool;

/// Prefixes of the variables that stay, because cargo may need them to fetch. They say how git reaches other machines, and
/// where git and its configuration are. Every other variable of git is about one repository or about its messages.
const TRANSPORT: [&str; 11] = [
    "GIT_SSH",
    "GIT_SSL_",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_ASKPASS",
    "GIT_TERMINAL_PROMPT",
    "GIT_ALLOW_PROTOCOL",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];
/// Prefixes of the keys that may stay in `GIT_CONFIG_KEY_N`, for the same reason. `core.worktree` and `core.hooksPath` may not.
const TRANSPORT_KEYS: [&str; 7] =
    ["url.", "http.", "credential.", "protocol.", "safe.", "core.sshcommand", "core.askpass"];

/// The user's repository.
#[derive(Debug)]
pub(super) struct Repository {
    directory: PathBuf,
    /// The top directory of the working tree; a bare repository has none.
    top: Option<PathBuf>,
    /// The current directory, relative to the top.
    pub(super) inside: PathBuf,
    /// Whether the environment names the repository, or agrees with the current directory.
    is_of_environment: bool,
}

impl Repository {
    /// The repository that git's environment names, else the one around the current directory.
    ///
    /// # Errors
    /// There is no repository, or git refuses to read it; the error quotes git's message.
    pub(super) fn find() -> Result<Self> {
        match (Self::query_git(true), Self::query_git(false)) {
            // A hook sets GIT_DIR alone; git then takes the current directory for the top, whichever it is.
            (Ok(named), Ok(around)) if named.directory == around.directory => {
                Ok(Self { is_of_environment: true, ..around })
            }
            (Ok(named), _) => Ok(named),
            (Err(_), Ok(around)) => Ok(around),
            (Err(error), Err(_)) => Err(error),
        }
    }

    fn query_git(is_of_environment: bool) -> Result<Self> {
        let ask = |word: &str| {
            let mut git = read_only_git(is_of_environment);
            parse_path(git_output(git.args(["rev-parse", word]))?)
        };
        let directory = ask("--absolute-git-dir")?;
        let top = ask("--show-toplevel").ok().filter(|top| !top.as_os_str().is_empty());
        let inside = ask("--show-prefix").unwrap_or_default();
        Ok(Self { directory, top, inside, is_of_environment })
    }

    /// The path by which messages name the repository.
    pub(super) fn display_path(&self) -> &Path {
        self.top.as_deref().unwrap_or(&self.directory)
    }

    /// The top directory of the working tree; `None` for a bare repository.
    pub(super) fn top_directory(&self) -> Option<&Path> {
        self.top.as_deref()
    }

    /// A command that reads this repository.
    fn git_command(&self) -> Command {
        let mut git = read_only_git(self.is_of_environment);
        git.arg("--git-dir").arg(&self.directory);
        git
    }

    /// The standard output of a git command that only reads the repository.
    ///
    /// # Errors
    /// git fails; the error quotes its message.
    pub(super) fn read(&self, words: &[&str]) -> Result<Vec<u8>> {
        git_output(self.git_command().args(words))
    }

    /// The path of a file of the repository by `git rev-parse --git-path`, which follows the environment.
    ///
    /// # Errors
    /// git fails.
    pub(super) fn file_path(&self, name: &str) -> Result<PathBuf> {
        let file = parse_path(self.read(&["rev-parse", "--git-path", name])?)?;
        std::path::absolute(&file).map_err(|e| Error::file(file, "naming", e))
    }

    /// The object directories of the repository. A quarantine directory of a push that git has not accepted yet comes first.
    ///
    /// # Errors
    /// git fails.
    pub(super) fn object_directories(&self) -> Result<Vec<PathBuf>> {
        let own = self.file_path("objects")?;
        let borrowed =
            std::env::var_os("GIT_ALTERNATE_OBJECT_DIRECTORIES").filter(|_| self.is_of_environment);
        let borrowed =
            borrowed.iter().flat_map(std::env::split_paths).filter(|path| !path.as_os_str().is_empty());
        let all = [own].into_iter().chain(borrowed);
        all.map(|path| std::path::absolute(&path).map_err(|e| Error::file(path, "naming", e))).collect()
    }

    /// The commit hash of a revision.
    ///
    /// # Errors
    /// There is no such revision. The error quotes git, and says whether the history is shallow.
    pub(super) fn resolve_commit(&self, rev: &str) -> Result<String> {
        let name = format!("{rev}^{{commit}}");
        let mut git = self.git_command();
        let output = run_git(git.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]))?;
        if output.status.success() {
            return Ok(trimmed_output(&output.stdout));
        }
        let why = match trimmed_output(&output.stderr) {
            said if said.is_empty() => String::new(),
            said => format!(": {said}"),
        };
        let is_shallow = self
            .read(&["rev-parse", "--is-shallow-repository"])
            .is_ok_and(|said| trimmed_output(&said) == "true");
        let cut = if is_shallow {
            "; its history was cut off when it was cloned: `git fetch --unshallow` gets the rest"
        } else {
            ""
        };
        Err(Error::Usage(format!(
            "{rev} is no revision of the git repository {}{why}{cut}",
            self.display_path().display()
        )))
    }
}

/// A git command for the user's repository that takes no lock, fetches no missing objects, and asks for no password.
fn read_only_git(is_of_environment: bool) -> Command {
    let mut git = tool::command("git");
    if !is_of_environment {
        forget_repository(&mut git);
    }
    git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1").env("GIT_TERMINAL_PROMPT", "0");
    git
}

/// A git command without the variables that name a repository: it uses the repository of its current directory.
pub(super) fn git_without_repository() -> Command {
    let mut git = tool::command("git");
    forget_repository(&mut git);
    git
}

/// Removes the variables that name a repository from the environment of a command.
pub(super) fn forget_repository(command: &mut Command) {
    for (name, value) in environment_changes(std::env::vars_os().collect()) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// The variables to change in this environment: `None` to remove a variable, else its new value.
fn environment_changes(environment: Vec<(OsString, OsString)>) -> Vec<(OsString, Option<OsString>)> {
    let begins = |name: &OsStr, beginnings: &[&str]| {
        let name = name.as_bytes().to_ascii_lowercase();
        beginnings.iter().any(|start| name.starts_with(start.to_ascii_lowercase().as_bytes()))
    };
    let of_git = environment.iter().filter(|(name, _)| name.as_bytes().starts_with(b"GIT_"));
    let mut changes: Vec<_> =
        of_git.filter(|(name, _)| !begins(name, &TRANSPORT)).map(|(name, _)| (name.clone(), None)).collect();
    let value =
        |name: String| environment.iter().find(|(key, _)| *key == *name).map(|(_, value)| value.clone());
    let kept = (0..).map_while(|at| {
        Some((value(format!("GIT_CONFIG_KEY_{at}"))?, value(format!("GIT_CONFIG_VALUE_{at}"))?))
    });
    let kept: Vec<_> = kept.filter(|(key, _)| begins(key, &TRANSPORT_KEYS)).collect();
    for (at, (key, value)) in kept.iter().enumerate() {
        changes.push((format!("GIT_CONFIG_KEY_{at}").into(), Some(key.clone())));
        changes.push((format!("GIT_CONFIG_VALUE_{at}").into(), Some(value.clone())));
    }
    if !kept.is_empty() {
        changes.push(("GIT_CONFIG_COUNT".into(), Some(kept.len().to_string().into())));
    }
    changes
}

/// The standard output of a git command.
///
/// # Errors
/// git cannot be started, or fails; the error quotes its message, or its exit status if it printed none.
pub(super) fn git_output(git: &mut Command) -> Result<Vec<u8>> {
    let output = run_git(git)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words: Vec<_> = git.get_args().map(|word| word.to_string_lossy()).collect();
    let said = match trimmed_output(&output.stderr) {
        said if said.is_empty() => tool::failure_message(&output),
        said => format!("({}): {said}", output.status),
    };
    Err(Error::Usage(format!("`git {}` failed {said}", words.join(" "))))
}

fn run_git(git: &mut Command) -> Result<Output> {
    git.output().map_err(|e| Error::file("git", "starting", e))
}

/// The output of git as text, without blanks around it.
pub(super) fn trimmed_output(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// A path that git printed in a line of its own.
fn parse_path(mut bytes: Vec<u8>) -> Result<PathBuf> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(variables: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let utf8 = |word: OsString| word.into_string().unwrap();
        environment_changes(environment)
            .into_iter()
            .map(|(name, value)| (utf8(name), value.map(utf8)))
            .collect()
    }

    #[test]
    fn only_variables_that_name_a_repository_are_removed() {
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_COMMON_DIR",
            "GIT_QUARANTINE_PATH",
            "GIT_CONFIG_PARAMETERS",
            "GIT_CONFIG",
            "GIT_NAMESPACE",
            "GIT_PREFIX",
            "GIT_TRACE",
            "GIT_TEMPLATE_DIR",
            "GIT_EXTERNAL_DIFF",
            "GIT_NOT_YET_INVENTED",
        ] {
            assert_eq!(changed(&[(name, "x")]), [(name.to_owned(), None)], "{name}");
        }
        for name in ["RUSTFLAGS", "LD_PRELOAD", "CARGO", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GITHUB_SHA"]
        {
            assert_eq!(changed(&[(name, "x")]), [], "{name}");
        }
    }

    #[test]
    fn a_token_for_cargo_stays_in_the_configuration_and_a_work_tree_does_not() {
        let changed = changed(&[
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "core.worktree"),
            ("GIT_CONFIG_VALUE_0", "/"),
            ("GIT_CONFIG_KEY_1", "url.https://token@host/.insteadOf"),
            ("GIT_CONFIG_VALUE_1", "https://host/"),
        ]);
        let last =
            |name: &str| changed.iter().rfind(|(key, _)| key == name).and_then(|(_, value)| value.as_deref());
        assert_eq!(last("GIT_CONFIG_COUNT"), Some("1"));
        assert_eq!(last("GIT_CONFIG_KEY_0"), Some("url.https://token@host/.insteadOf"));
        assert_eq!(last("GIT_CONFIG_VALUE_0"), Some("https://host/"));
        assert_eq!((last("GIT_CONFIG_KEY_1"), last("GIT_CONFIG_VALUE_1")), (None, None));
    }
}
