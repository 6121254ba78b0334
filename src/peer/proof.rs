//! Authentication by challenge and response: HMAC-SHA-256 with the [`Token`] as its key, a secret that both ends share.
//!
//! Each end generates a nonce for the conversation and proves over both nonces that it has the token. The two ends use
//! different prefixes, so that a proof cannot be reflected; different nonces prevent a replay. The version is included,
//! which prevents a downgrade. Proofs and secrets are compared in constant time.

use super::control_protocol::{SECRET_BYTES, VERSION};
use crate::error::{Error, Result};
use crate::platform::plain_file;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Size of a nonce.
const NONCE_BYTES: usize = 32;

/// A fresh nonce, in hexadecimal digits.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn generate_nonce() -> Result<String> {
    random_bytes::<NONCE_BYTES>().map(|bytes| to_hex(&bytes))
}

/// The end that makes a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that measures.
    Client,
    /// The one that serves.
    Server,
}

/// The two nonces of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonces {
    /// As bytes, the client's and the server's.
    drawn: [[u8; NONCE_BYTES]; 2],
}

impl Nonces {
    /// Parses both; `None` if one is invalid.
    pub fn read(clients: &str, servers: &str) -> Option<Self> {
        Some(Self { drawn: [parse_hex(clients)?, parse_hex(servers)?] })
    }

    /// The proof of one end, in hexadecimal digits.
    pub fn compute_proof(&self, end: End, token: &Token) -> String {
        to_hex(&self.authentication_code(end, token).finalize().into_bytes())
    }

    /// Whether `proof` is the proof of that end. An invalid one takes as long as a wrong one.
    pub fn is_valid_proof(&self, end: End, token: &Token, proof: &str) -> bool {
        let (told, is_one) = match parse_hex::<32>(proof) {
            Some(told) => (told, true),
            None => ([0; 32], false),
        };
        self.authentication_code(end, token).verify_slice(&told).is_ok() & is_one
    }

    fn authentication_code(&self, end: End, token: &Token) -> Hmac<Sha256> {
        let mut code =
            Hmac::<Sha256>::new_from_slice(token.key()).expect("a key of HMAC may have any length");
        let word = match end {
            End::Client => b"syscost peer client\0",
            End::Server => b"syscost peer server\0",
        };
        code.update(word);
        code.update(&VERSION.to_be_bytes());
        self.drawn.iter().for_each(|nonce| code.update(nonce));
        code
    }
}

/// An identifier of a text that does not reveal it: sixteen hexadecimal digits.
pub fn pseudonym(text: &str) -> String {
    let mut code =
        Hmac::<Sha256>::new_from_slice(text.as_bytes()).expect("a key of HMAC may have any length");
    code.update(b"syscost peer identity");
    to_hex(&code.finalize().into_bytes()[..8])
}

/// What every data stream and every datagram begins with.
pub type Secret = [u8; SECRET_BYTES];

/// `N` random bytes.
///
/// # Errors
/// The kernel gives none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(cause) => Err(Error::Kernel {
            call: "getrandom, for a nonce".into(),
            cause: std::io::Error::other(cause.to_string()),
        }),
    }
}

/// Whether two secrets are equal, in a time that does not depend on where they differ.
pub fn is_same_secret(a: Secret, b: Secret) -> bool {
    std::hint::black_box(u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)) == 0
}

/// Bytes as hexadecimal digits, two for each byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of `2 * N` digits; `None` for any other text.
pub fn parse_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

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

    fn nonces() -> Nonces {
        Nonces::read(&generate_nonce().unwrap(), &generate_nonce().unwrap()).unwrap()
    }

    #[test]
    fn a_proof_is_of_its_end_its_token_and_its_conversation() {
        let (token, other) =
            (Token::from_text("a token of some length"), Token::from_text("another token of it"));
        let (nonces, later) = (nonces(), nonces());
        let proof = nonces.compute_proof(End::Client, &token);
        assert!(nonces.is_valid_proof(End::Client, &token, &proof));
        assert!(!nonces.is_valid_proof(End::Server, &token, &proof), "sent back to the end that made it");
        assert!(!nonces.is_valid_proof(End::Client, &other, &proof), "another token");
        assert!(!nonces.is_valid_proof(End::Client, &Token::empty(), &proof), "no token");
        assert!(!later.is_valid_proof(End::Client, &token, &proof), "a replay");
    }

    #[test]
    fn what_is_no_proof_proves_nothing() {
        let (token, nonces) = (Token::from_text("a token of some length"), nonces());
        let proof = nonces.compute_proof(End::Client, &token);
        let zeros = "0".repeat(64);
        for wrong in ["", "zz", &proof[..62], &(proof.clone() + "00"), &zeros, "é"] {
            assert!(!nonces.is_valid_proof(End::Client, &token, wrong), "{wrong:?}");
        }
        assert!(nonces.is_valid_proof(End::Client, &token, &proof.to_uppercase()), "the same number");
    }

    #[test]
    fn a_proof_is_the_standards() {
        // HMAC-SHA-256 of the standard (RFC 4231, case 2): key "Jefe".
        let mut code = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        code.update(b"what do ya want for nothing?");
        let standard = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(to_hex(&code.finalize().into_bytes()), standard);
    }

    #[test]
    fn two_nonces_are_never_the_same() {
        assert_ne!(generate_nonce().unwrap(), generate_nonce().unwrap());
    }

    #[test]
    fn secrets_are_the_same_or_not() {
        let secret: Secret = random_bytes().unwrap();
        assert!(is_same_secret(secret, secret));
        for at in 0..SECRET_BYTES {
            let mut other = secret;
            other[at] ^= 1;
            assert!(!is_same_secret(secret, other), "byte {at}");
        }
    }

    #[test]
    fn digits_are_read_back() {
        assert_eq!(parse_hex::<3>(&to_hex(&[0, 0xab, 0xff])), Some([0, 0xab, 0xff]));
        assert_eq!((parse_hex::<1>("0"), parse_hex::<1>("+1"), parse_hex::<1>("0g")), (None, None, None));
    }

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
