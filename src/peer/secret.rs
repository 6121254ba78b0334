//! Random bytes, their text in hexadecimal digits, and their comparison.

use super::control_protocol::SECRET_BYTES;
use crate::error::{Error, Result};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
