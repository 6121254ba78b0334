//! Calls on sockets, descriptors and processes, a row each.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the call reads or writes only the array that it is given, whose length it is given, too.
//! * **NO-MEMORY**: an operation of the queue that uses no memory.
#![allow(unsafe_code)]

use crate::kit::contract::*;
use crate::kit::kernel_call::io_uring_refusal;
use crate::kit::kernel_call::{errno_of, time_calls};
use crate::kit::operation_table::{Row, answer_of, entered, is_true, operation_rows, repeated};
use crate::platform::process::Pidfd;
use io_uring::{IoUring, opcode};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::EventFd;
use nix::unistd::{Pid, chdir};
use std::fs::File;
use std::io::IsTerminal;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// The cases that a default run measures; a full run measures all.
pub(super) const BY_DEFAULT: [&str; 2] = ["epoll-ctl", "uring-nop"];

const FIELD: &str = "entry and exit, a socket found and locked, a field of it";

pub(super) const ROWS: &[Row] = operation_rows! {
    "chdir", "chdir to the working directory by its path", entered![SYS_chdir], 100.0, 1_200.0, "a walk over the path", |_, _| {
        let path = std::env::current_dir().map_err(|e| Error::Missing(format!("the working directory is gone: {e}")))?;
        repeated("chdir", move || chdir(&path))
    };
    "isatty", "isatty of a pseudo-terminal", entered![SYS_ioctl], 100.0, 300.0, "entry and exit, the terminal's lock, a structure of 60 bytes", |_, _| {
        let path = "/dev/ptmx";
        let terminal = File::open(path).map_err(|e| Error::Missing(format!("{path} cannot be opened ({e}): mount devpts")))?;
        repeated("isatty", move || is_true(terminal.is_terminal()))
    };
    "setsockopt", "setsockopt of a UDP socket", entered![SYS_setsockopt], 100.0, 300.0, FIELD, |_, _| {
        let socket = connected_socket()?;
        repeated("setsockopt", move || socket.set_broadcast(true).map_err(errno_of))
    };
    "getsockname", "getsockname of a UDP socket", entered![SYS_getsockname], 100.0, 300.0, FIELD, |_, _| {
        let socket = connected_socket()?;
        repeated("getsockname", move || socket.local_addr().map_err(errno_of).and_then(|own| is_true(own.port() != 0)))
    };
    "getpeername", "getpeername of a UDP socket", entered![SYS_getpeername], 100.0, 300.0, FIELD, |_, _| {
        let socket = connected_socket()?;
        repeated("getpeername", move || socket.peer_addr().map_err(errno_of).and_then(|peer| is_true(peer.port() != 0)))
    };
    "epoll-ctl", "an eventfd registered with epoll, and removed", entered![SYS_epoll_ctl, SYS_epoll_ctl], 200.0, 1_200.0, "an entry of a tree allocated, linked to the file, and freed", |_, _| register_and_remove();
    "pidfd-open", "a descriptor of this process opened (pidfd_open) and closed", entered![SYS_pidfd_open, SYS_close], 200.0, 1_500.0, "a file structure allocated and freed", |_, _| {
        let own = Pid::this().as_raw();
        Pidfd::open(own).map_err(|e| Error::from_case_errno("pidfd_open", e))?;
        repeated("pidfd_open", move || Pidfd::open(own).map(drop))
    };
    "pidfd-signal", "signal 0 to a process by its descriptor (pidfd_send_signal)", entered![SYS_pidfd_send_signal], 100.0, 400.0, "a descriptor and a task found, permission checked", |_, _| {
        let process = Pidfd::open(Pid::this().as_raw()).map_err(|e| Error::from_case_errno("pidfd_open", e))?;
        repeated("pidfd_send_signal", move || process.send_no_signal())
    };
    "xattr-set", "an extended attribute of 16 bytes set", entered![SYS_fsetxattr], 200.0, 5_000.0, "the attribute found and rewritten, a journal begun and ended", |place, _| {
        let file = file_with_attribute(place)?;
        repeated("fsetxattr", move || set_attribute(&file))
    };
    "xattr-get", "an extended attribute of 16 bytes read", entered![SYS_fgetxattr], 100.0, 800.0, "the attribute found and copied", |place, _| {
        let (file, mut value) = (file_with_attribute(place)?, [0u8; 16]);
        // SAFETY: OWN-BUFFER.
        repeated("fgetxattr", move || answered(unsafe {
            libc::fgetxattr(file.as_raw_fd(), ATTRIBUTE.as_ptr(), value.as_mut_ptr().cast(), value.len())
        } as i64).and_then(|length| is_true(length == 16)))
    };
    "uring-nop", "an operation of io_uring that does nothing, submitted and completed", entered![SYS_io_uring_enter], 150.0, 500.0, "entry and exit, a request taken, an answer written", |_, _| do_nothing(1);
    "uring-nop-32", "32 such operations, submitted and completed together", entered![SYS_io_uring_enter], 500.0, 3_500.0, "one entry and exit; 32 requests taken, 32 answers written", |_, _| do_nothing(32);
};

/// Turns the return value of a raw call into a result.
fn answered(answer: i64) -> nix::Result<i64> {
    Errno::result(answer)
}

/// A UDP socket that is connected to itself.
fn connected_socket() -> Result<UdpSocket> {
    let make = || {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(socket.local_addr()?).map(|()| socket)
    };
    make()
        .map_err(|e: std::io::Error| Error::Missing(format!("no UDP socket can be bound to 127.0.0.1: {e}")))
}

/// Registers a descriptor with epoll and removes it. Each batch has its own instance, in case a witness is killed between the
/// two calls.
fn register_and_remove() -> Result<Box<dyn Subject>> {
    let open = || {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| Error::from_case_errno("epoll_create1", e))
    };
    open()?;
    let event = EventFd::new().map_err(|e| Error::from_case_errno("eventfd2", e))?;
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let epoll = open()?;
        let once =
            || epoll.add(&event, EpollEvent::new(EpollFlags::EPOLLIN, 1)).and_then(|()| epoll.delete(&event));
        time_calls("epoll_ctl", n, clock, || answer_of(once()))
    }))
}

const ATTRIBUTE: &std::ffi::CStr = c"user.syscost";

fn set_attribute(file: &File) -> nix::Result<()> {
    let value = [1u8; 16];
    // SAFETY: OWN-BUFFER.
    let answer = unsafe {
        libc::fsetxattr(file.as_raw_fd(), ATTRIBUTE.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    answered(answer.into()).map(drop)
}

fn file_with_attribute(place: &Place) -> Result<File> {
    let path = place.scratch.join("attributes");
    let file = File::create(&path).map_err(|e| Error::file(&path, "creating", e))?;
    let refused = |e: Errno| {
        let directory = place.scratch.display();
        Error::Missing(format!(
            "the file system of {directory} keeps no extended attributes of users ({e}): set TMPDIR"
        ))
    };
    set_attribute(&file).map_err(refused)?;
    Ok(file)
}

/// Submits `count` operations that do nothing, by one call that also waits for them. Each batch has its own queue, since a witness
/// that is killed may leave its queue half filled.
fn do_nothing(count: usize) -> Result<Box<dyn Subject>> {
    let open = move || IoUring::new(count as u32).map_err(|cause| Error::Missing(io_uring_refusal(&cause)));
    open()?;
    Ok(Box::new(move |n: u64, clock: &Clock| {
        let mut ring = open()?;
        let mut once = || {
            for _ in 0..count {
                // SAFETY: NO-MEMORY.
                unsafe { ring.submission().push(&opcode::Nop::new().build()) }.map_err(|_| Errno::EAGAIN)?;
            }
            ring.submit_and_wait(count).map_err(errno_of)?;
            is_true(ring.completion().filter(|done| done.result() == 0).count() == count)
        };
        time_calls("io_uring_enter", n, clock, || answer_of(once()))
    }))
}
