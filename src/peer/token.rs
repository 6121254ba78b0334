//! The token: a secret that both ends share.

use super::secret::{random_bytes, to_hex};
use crate::error::{Error, Result};
use crate::platform::plain_file;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A shorter token could be found by trying against a recorded proof.
const SHORTEST: usize = 16;
/// A longer file is probably not a token.
const LONGEST: u64 = 4096;

/// The key of every proof. It has no `Debug`, so that no message can show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// The empty token of a server without authentication.
    pub fn empty() -> Self {
        Self(Vec::new())
    }

    /// A token from its text.
    pub fn from_text(text: &str) -> Self {
        Self(text.trim().as_bytes().to_vec())
    }

    /// A random token and its text.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn generate() -> Result<(Self, String)> {
        let text = to_hex(&random_bytes::<32>()?);
        Ok((Self::from_text(&text), text))
    }

    /// Reads a token from a file that only its owner may read.
    ///
    /// # Errors
    /// The file cannot be read, other users can read it, or its length is no token's.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |cause| Error::file(path, "reading the token", cause);
        let file = plain_file::open(path)?;
        let about = file.metadata().map_err(failed)?;
        let wrong = |expected: &str, found: String, remedy: String| Error::Content {
            path: path.to_path_buf(),
            field: "the token".into(),
            expected: expected.into(),
            found,
            remedy,
        };
        let (mode, owner, own) = (about.mode() & 0o777, about.uid(), nix::unistd::geteuid().as_raw());
        if mode & 0o077 != 0 || ![0, own].contains(&owner) {
            let found = format!("mode {mode:03o}, owner {owner}");
            let remedy =
                format!("`chmod 600 {}`, and make a new token: others may know this one", path.display());
            return Err(wrong("a file of yours that no other user can read", found, remedy));
        }
        let mut text = String::new();
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
        let length = text.trim().len();
        if length < SHORTEST || text.len() as u64 > LONGEST {
            let remedy = "`head -c 32 /dev/urandom | base64` makes one".into();
            return Err(wrong(&format!("{SHORTEST} to {LONGEST} characters"), format!("{length}"), remedy));
        }
        Ok(Self::from_text(&text))
    }

    /// Its bytes, as a key.
    pub fn key(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    fn refusal(text: &str, mode: u32) -> String {
        Token::read(file(text, mode).path()).err().expect("refused").to_string()
    }

    #[test]
    fn a_token_is_what_its_file_holds() {
        let (token, text) = Token::generate().unwrap();
        assert!(token == Token::read(file(&(text + "\n"), 0o600).path()).unwrap());
        assert!(token != Token::generate().unwrap().0);
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        for mode in [0o644, 0o640, 0o604, 0o620] {
            assert!(refusal("0123456789abcdef", mode).contains("no other user can read"), "{mode:o}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        assert!(refusal("short", 0o600).contains("16 to 4096 characters"));
        assert!(refusal(&"x".repeat(5000), 0o600).contains("16 to 4096 characters"));
        assert!(refusal("                    ", 0o600).contains("found 0"));
        assert!(Token::read(Path::new("/")).is_err(), "a directory");
        assert!(Token::read(Path::new("/dev/null")).is_err(), "a device");
    }
}
