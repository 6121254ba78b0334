//! Ends a connection at once, from another thread than the one that waits in it.
//!
//! # Invariants
//!
//! * **BORROWED**: the descriptor is open for as long as it is borrowed, and the call touches no memory of ours.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

/// Who waits on this socket, or comes to it, is told that it has ended. A socket without a far end is left alone.
pub fn shut_down(socket: &impl AsFd) {
    // SAFETY: BORROWED.
    let _ = unsafe { libc::shutdown(socket.as_fd().as_raw_fd(), libc::SHUT_RDWR) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn who_waits_for_a_datagram_is_told_that_none_will_come() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        let waiting = socket.try_clone().unwrap();
        let waits = std::thread::spawn(move || waiting.recv(&mut [0; 8]));
        std::thread::sleep(std::time::Duration::from_millis(20));
        shut_down(&socket);
        assert_eq!(waits.join().unwrap().unwrap(), 0);
    }
}
