//! Authentication by challenge and response: HMAC-SHA-256 with the token as its key.
//!
//! Each end generates a nonce for the conversation and proves over both nonces that it has the token. The two ends use
//! different prefixes, so that a proof cannot be reflected; different nonces prevent a replay. The version is included,
//! which prevents a downgrade. Proofs are compared in constant time.

use super::control_protocol::VERSION;
use super::secret::{parse_hex, random_bytes, to_hex};
use super::token::Token;
use crate::error::Result;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
