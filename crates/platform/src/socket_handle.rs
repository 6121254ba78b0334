//! Operations on sockets that the standard library lacks: holding a name that only one process has, and shutting down a
//! socket of any kind.
//!
//! # Invariants
//!
//! * **BORROWED**: the descriptor is open for as long as it is borrowed, and the call touches no memory of ours.
#![allow(unsafe_code)]

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Takes a name for as long as the value, or a duplicate of its descriptor, lives.
///
/// The name is an abstract socket address. It exists once in a network namespace (so that containers do not see each
/// other's), is no file, and is released by the kernel when the last process that holds it ends.
///
/// # Errors
/// Another process holds the name ([`is_name_taken`]), or sockets are forbidden here.
pub fn take_name(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Whether [`take_name`] failed because another process holds the name. False if sockets are forbidden: then it is unknown.
pub fn is_name_taken(taken: &io::Result<UnixListener>) -> bool {
    taken.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

/// Ends a connection in both directions. A thread that waits in this socket wakes and sees the end of the connection. A
/// socket that is not connected is left alone.
pub fn shut_down(socket: &impl AsFd) {
    // SAFETY: BORROWED.
    let _ = unsafe { libc::shutdown(socket.as_fd().as_raw_fd(), libc::SHUT_RDWR) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;
    use std::net::UdpSocket;

    #[test]
    fn a_name_is_held_once_until_its_last_descriptor_is_closed() {
        let name = format!("syscost-test-{}", std::process::id());
        let Ok(first) = take_name(&name) else {
            print_skipped("abstract sockets are not allowed here");
            return;
        };
        let duplicate = first.try_clone().expect("duplicated");
        drop(first);
        assert!(is_name_taken(&take_name(&name)));
        drop(duplicate);
        assert!(take_name(&name).is_ok());
    }

    #[test]
    fn a_thread_that_waits_for_a_datagram_wakes() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        let waiting = socket.try_clone().unwrap();
        let waits = std::thread::spawn(move || waiting.recv(&mut [0; 8]));
        std::thread::sleep(std::time::Duration::from_millis(20));
        shut_down(&socket);
        assert_eq!(waits.join().unwrap().unwrap(), 0);
    }
}
