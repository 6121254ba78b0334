//! Names that one process of this machine holds at a time.
//!
//! A name is an abstract socket: it exists once in a network namespace (so containers do not see each other's),
//! belongs to no directory, and is given back by the kernel when the last who holds it dies.

use std::io::{ErrorKind, Result};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Takes a name. It is held as long as the value lives, or what is duplicated of its descriptor.
pub fn take(name: &str) -> Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Whether somebody else holds it. Where sockets are forbidden nobody can be told apart: then it is not taken.
pub fn is_taken(taken: &Result<UnixListener>) -> bool {
    taken.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_once_until_its_last_holder_has_gone() {
        let name = format!("syscost-test-{}", std::process::id());
        let Ok(first) = take(&name) else {
            println!("skipped: abstract sockets are not allowed here");
            return;
        };
        let duplicate = first.try_clone().expect("duplicated");
        drop(first);
        assert!(is_taken(&take(&name)));
        drop(duplicate);
        assert!(take(&name).is_ok());
    }
}
