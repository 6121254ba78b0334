//! The secret with which every data stream and every datagram begins.

use super::control_protocol::SECRET_BYTES;
use crate::error::{Error, Result};

/// Random bytes that the server makes for each service.
pub type Secret = [u8; SECRET_BYTES];

/// Makes a secret.
///
/// # Errors
/// The kernel gives no random bytes.
pub(super) fn generate_secret() -> Result<Secret> {
    let mut secret = Secret::default();
    let refused = |cause: getrandom::Error| Error::Kernel {
        call: "getrandom, for a secret".into(),
        cause: std::io::Error::other(cause.to_string()),
    };
    getrandom::fill(&mut secret).map_err(refused)?;
    Ok(secret)
}

/// Whether two secrets are equal, in a time that does not depend on where they differ.
pub(super) fn is_same_secret(a: Secret, b: Secret) -> bool {
    std::hint::black_box(u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_the_same_or_not() {
        let secret = generate_secret().unwrap();
        assert!(is_same_secret(secret, secret));
        for at in 0..SECRET_BYTES {
            let mut other = secret;
            other[at] ^= 1;
            assert!(!is_same_secret(secret, other), "byte {at}");
        }
        assert_ne!(secret, generate_secret().unwrap());
    }
}
