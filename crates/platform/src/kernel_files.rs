//! The files in which the kernel describes the machine, read below a root directory that a test can fake.
//!
//! A missing or unreadable file is `None`, never an error: kernels, architectures and containers differ in
//! what they show. What is not shown is recorded as unknown.

use std::path::{Path, PathBuf};

/// A tree with `proc` and `sys` below it: the machine's own, or a copy.
#[derive(Clone, Debug)]
pub struct KernelFiles {
    root: PathBuf,
}

impl KernelFiles {
    /// The running kernel's own files.
    pub fn live() -> Self {
        Self::under("/")
    }

    /// The files of a copied or faked machine.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The path of a file under the root. A leading slash is ignored, because joining it would leave the root.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file.trim_start_matches('/'))
    }

    /// A whole file. Bytes that are no UTF-8 are replaced: DMI strings of firmware may hold any.
    pub fn read_text(&self, file: &str) -> Option<String> {
        self.read_bytes(file).map(|b| String::from_utf8_lossy(&b).into_owned())
    }

    /// A whole file that is not text.
    pub fn read_bytes(&self, file: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(file)).ok()
    }

    /// The first line, trimmed; `None` when it is empty, because an empty line states nothing.
    pub fn read_first_line(&self, file: &str) -> Option<String> {
        let text = self.read_text(file)?;
        text.lines().next().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty())
    }

    /// The first line as a number.
    pub fn read_number<T: std::str::FromStr>(&self, file: &str) -> Option<T> {
        self.read_first_line(file)?.parse().ok()
    }

    /// The release of the kernel, `uname -r`. A `/proc` with processes only (subset=pid of proc(5)) lacks it, but uname(2) returns it.
    pub fn kernel_release(&self) -> Option<String> {
        self.read_first_line("proc/sys/kernel/osrelease").or_else(|| {
            let names = nix::sys::utsname::uname().ok().filter(|_| self.root == Path::new("/"))?;
            Some(names.release().to_str()?.to_owned())
        })
    }

    /// The names in a directory, sorted, so that two readings of a machine are the same text. Empty when
    /// there is no such directory.
    pub fn entry_names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(directory)) else { return Vec::new() };
        let mut names: Vec<_> =
            entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The name and the first line of each file in a directory. Subdirectories are skipped.
    pub fn first_lines_in(&self, directory: &str) -> impl Iterator<Item = (String, String)> {
        self.entry_names(directory).into_iter().filter_map(move |name| {
            let line = self.read_first_line(&join_path(directory, &name))?;
            Some((name, line))
        })
    }

    /// The distinct first lines of `directory/*/file`, such as the governors of all frequency policies.
    pub fn distinct_first_lines(&self, directory: &str, file: &str) -> Option<String> {
        let entries = self.entry_names(directory);
        join_distinct(
            entries.iter().filter_map(|e| self.read_first_line(&join_path(directory, &join_path(e, file)))),
        )
    }

    /// Whether there is such a file or directory.
    pub fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }
}

fn join_path(directory: &str, name: &str) -> String {
    format!("{directory}/{name}")
}

/// The values without repetition, in order of appearance, as one text; `None` when there are none. A
/// machine whose CPUs disagree shows every value, so that it never passes for a uniform one.
pub fn join_distinct(values: impl Iterator<Item = String>) -> Option<String> {
    let mut seen: Vec<String> = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    (!seen.is_empty()).then(|| seen.join(", "))
}

/// The value of the first `key: value` line with this key, as in `/proc/meminfo` or `/proc/self/status`.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    fields(text, key).next()
}

/// The values of all `key: value` lines with this key, as in `/proc/cpuinfo`.
pub fn fields<'a>(text: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(move |(k, _)| k.trim() == key)
        .map(|(_, v)| v.trim())
}

/// A field of `/proc/meminfo` in bytes. The file says `kB` and means KiB.
pub fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let kib: u64 = field(meminfo, key)?.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The choice in force, which the kernel writes in brackets: `always [madvise] never`.
pub fn bracketed_choice(choices: &str) -> Option<&str> {
    let (_, rest) = choices.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

/// Kernel files of a machine that a test makes up.
pub mod fixture {
    use super::KernelFiles;
    use std::path::Path;

    /// Kernel files in a temporary directory that is removed with this value.
    pub struct Machine {
        /// Its files.
        pub files: KernelFiles,
        directory: tempfile::TempDir,
    }

    impl Machine {
        /// A machine that shows these files and no others.
        pub fn with_files(files: &[(&str, &str)]) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let machine = Self { files: KernelFiles::under(directory.path()), directory };
            files.iter().for_each(|(name, text)| machine.write_file(name, text));
            machine
        }

        /// Adds or replaces a file.
        pub fn write_file(&self, name: &str, text: &str) {
            let path = self.directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory made");
            std::fs::write(path, text).expect("a file written");
        }

        /// Removes a file or directory, if it is there.
        pub fn remove_path(&self, name: &str) {
            let path = self.directory.path().join(name);
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::Machine;
    use super::*;

    const MEMINFO: &str = include_str!("../../../fixtures/captured/meminfo.txt");

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(meminfo_bytes(MEMINFO, "MemTotal"), Some(24_684_096 * 1024));
        assert_eq!(meminfo_bytes(MEMINFO, "SwapFree"), Some(0));
    }

    #[test]
    fn a_field_without_a_unit_or_without_a_line_is_unknown() {
        assert_eq!(meminfo_bytes(MEMINFO, "HugePages_Total"), None);
        assert_eq!(meminfo_bytes(MEMINFO, "Mem"), None);
    }

    #[test]
    fn the_bracketed_word_is_the_choice_in_force() {
        assert_eq!(bracketed_choice("always [madvise] never"), Some("madvise"));
        assert_eq!(bracketed_choice("always madvise never"), None);
    }

    #[test]
    fn cpus_that_disagree_show_every_value_once() {
        let values = ["powersave", "performance", "powersave"].map(String::from);
        assert_eq!(join_distinct(values.into_iter()).as_deref(), Some("powersave, performance"));
        assert_eq!(join_distinct(std::iter::empty()), None);
    }

    #[test]
    fn a_leading_slash_does_not_escape_the_root() {
        let files = KernelFiles::under("/faked");
        assert_eq!(files.path("/proc/stat"), PathBuf::from("/faked/proc/stat"));
    }

    #[test]
    fn an_absent_file_is_unknown_and_no_error() {
        let machine = Machine::with_files(&[]);
        assert_eq!(machine.files.read_first_line("proc/stat"), None);
        assert!(machine.files.entry_names("sys").is_empty());
        assert_eq!(machine.files.distinct_first_lines("sys", "x"), None);
    }

    #[test]
    fn an_empty_line_is_unknown() {
        assert_eq!(Machine::with_files(&[("empty", "\n")]).files.read_first_line("empty"), None);
    }
}
