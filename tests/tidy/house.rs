//! A tree of files, read from disk or invented.

use crate::code::{code, has_word_then, shipped};
use crate::syntax::Crate;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// The files of a repository: path from the root, and text. Files that are not text are left out.
#[derive(Clone, Default)]
pub struct House {
    files: BTreeMap<String, String>,
    /// The shipped code of each file, which several rules use, computed once.
    shipped: Rc<OnceCell<BTreeMap<String, String>>>,
    syntax: Rc<OnceCell<Crate>>,
}

/// The path of a file in the `src` of a package.
pub struct Source<'a> {
    /// The directory of the package below `crates`; `None` for the root package.
    pub package: Option<&'a str>,
    /// The path below `src`.
    pub inner: &'a str,
}

impl<'a> Source<'a> {
    /// `None` if the file lies below no package's `src`.
    pub fn from_path(path: &'a str) -> Option<Self> {
        if let Some(inner) = path.strip_prefix("src/") {
            return Some(Self { package: None, inner });
        }
        let (package, inner) = path.strip_prefix("crates/")?.split_once("/src/")?;
        Some(Self { package: Some(package), inner })
    }
}

/// Hidden directories that belong to the repository. All others belong to tools of a developer.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".github"];

impl House {
    /// Reads the tree under `root`, without build outputs and hidden files.
    pub fn read(root: &Path) -> Self {
        let mut house = Self::default();
        house.collect(root, "");
        house
    }

    fn collect(&mut self, directory: &Path, prefix: &str) {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let kind = entry.file_type().unwrap();
            let path = format!("{prefix}{name}");
            if kind.is_dir() && name != "target" && (!name.starts_with('.') || HIDDEN.contains(&&*name)) {
                self.collect(&entry.path(), &format!("{path}/"));
            } else if kind.is_file() && name != ".git" {
                self.files.extend(std::fs::read_to_string(entry.path()).ok().map(|text| (path, text)));
            }
        }
    }

    /// Writes the tree under `root`.
    pub fn write(&self, root: &Path) {
        for (path, text) in &self.files {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
    }

    /// The same house with one more file, or with another text in its place.
    pub fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        Self { files: self.files, ..Self::default() }
    }

    /// The same house without this file.
    pub fn without(mut self, path: &str) -> Self {
        self.files.remove(path);
        Self { files: self.files, ..Self::default() }
    }

    /// The same house with `before` replaced in one file. A test that replaces nothing would prove nothing.
    pub fn replacing(self, path: &str, before: &str, after: &str) -> Self {
        let text = self.text(path);
        assert!(text.contains(before), "{path} does not hold {before}");
        let text = text.replace(before, after);
        self.with(path, &text)
    }

    /// The text of this file; a missing one is empty.
    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    /// Whether there is such a file.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// All files, path and text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every Rust file, with its text.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// Every file of a `src` that is compiled for a user, with its code alone: no comments, no tests.
    pub fn shipped(&self) -> impl Iterator<Item = (&str, String)> {
        let made = self.shipped.get_or_init(|| {
            let source =
                self.rust().filter(|(path, _)| Source::from_path(path).is_some() && !self.is_test(path));
            source.map(|(path, text)| (path.to_owned(), shipped(&code(text)))).collect()
        });
        made.iter().map(|(path, code)| (path.as_str(), code.clone()))
    }

    /// The shipped code, parsed.
    pub fn syntax(&self) -> &Crate {
        self.syntax.get_or_init(|| Crate::parse(self))
    }

    /// Whether the file is a module that its parent declares under `#[cfg(test)]`, or below one.
    fn is_test(&self, path: &str) -> bool {
        let Some((directory, name)) = path.trim_end_matches(".rs").rsplit_once('/') else { return false };
        let is_top = directory == "src" || directory.ends_with("/src");
        let parent = if is_top { format!("{directory}/lib.rs") } else { format!("{directory}.rs") };
        if parent == path || !self.has(&parent) {
            return false;
        }
        let code = code(self.text(&parent));
        let declares = |text: &str| has_word_then(text, "mod", &format!("{name};"));
        (declares(&code) && !declares(&shipped(&code))) || self.is_test(&parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_tests_is_not_shipped_nor_is_what_lies_below_it() {
        let house = House::default()
            .with("src/lib.rs", "mod a;")
            .with("src/a.rs", "mod b;\n#[cfg(test)]\nmod tests;")
            .with("src/a/b.rs", "")
            .with("src/a/tests.rs", "mod far;")
            .with("src/a/tests/far.rs", "");
        let shipped: Vec<_> = house.shipped().map(|(path, _)| path).collect();
        assert_eq!(shipped, ["src/a.rs", "src/a/b.rs", "src/lib.rs"]);
    }

    #[test]
    fn a_house_written_is_the_house_read() {
        let house = House::default().with("a/b", "1").with(".ci/run", "2");
        let directory = tempfile::tempdir().unwrap();
        house.write(directory.path());
        std::fs::create_dir(directory.path().join("target")).unwrap();
        std::fs::write(directory.path().join("target/c"), "3").unwrap();
        assert_eq!(House::read(directory.path()).files, house.files);
    }
}
