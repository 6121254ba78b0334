//! A machine that a test invents: kernel files in a temporary directory.

use crate::platform::kernel_files::KernelFiles;
use std::path::Path;

/// Kernel files that vanish with the test.
pub struct Machine {
    pub files: KernelFiles,
    directory: tempfile::TempDir,
}

impl Machine {
    /// A machine that shows these files and no others.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let machine = Self { files: KernelFiles::under(directory.path()), directory };
        files.iter().for_each(|(name, text)| machine.write(name, text));
        machine
    }

    /// Adds or replaces a file.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory made");
        std::fs::write(path, text).expect("a file written");
    }

    /// Takes a file or directory away, if it is there.
    pub fn remove(&self, name: &str) {
        let path = self.directory.path().join(name);
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
}
