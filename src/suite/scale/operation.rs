//! The operations, one row each: a name, a title, the system calls, the core cycles that hardware and software are
//! expected to take, and the function that prepares it. A file for one task is `own`, a file that all tasks use is `shared`.
//!
//! # Invariants
//!
//! * **OWN-PAGE**: the page is part of an anonymous mapping that the closure owns, and no reference into it is held during the call.
//! * **OWN-FILE**: the file lies in the scratch directory of this run, and nothing shortens it.
#![allow(unsafe_code)]

use super::{Operation, Work, efficiency_curve, multiply};
use crate::kit::contract::*;
use crate::kit::kernel_call::{byte_lock, c_path, errno_of};
use crate::platform::futex::{self, Reach};
use crate::platform::shared::Words;
use crate::platform::syscall::{self, OPEN, POLL, RawCall};
use memmap2::MmapMut;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, fallocate, fcntl, openat};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use nix::sys::mman::{MmapAdvise, ProtFlags, madvise, mprotect};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::stat::Mode;
use nix::sys::uio::{pread, pwrite, writev};
use nix::unistd::{UnlinkatFlags, Whence, dup, ftruncate, linkat, lseek, pipe, read, unlinkat, write};
use std::fs::File;
use std::hint::black_box;
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::ptr::NonNull;

const PAGE: usize = 4096;
macro_rules! call {
    ($($name:ident),*) => { &[$((stringify!($name), libc::$name)),*] };
}

macro_rules! operations {
    ($($name:literal, $title:literal, $calls:expr, $hardware:literal + $software:literal, $make:expr $(, refused by $errno:expr)?;)*) => {
        pub(super) const OPERATIONS: &[Operation] = &[$(
            Operation {
                name: $name, title: $title, calls: $calls, refusal: 0 $(+ $errno)?, cycles: ($hardware, $software), make: $make
            }
        ),*];
        pub(super) const CURVES: &[Curve] = &[$(
            efficiency_curve(concat!("scale/", $name, "-processes/"), concat!($title, ", processes")),
            efficiency_curve(concat!("scale/", $name, "-threads/"), concat!($title, ", threads")),
        )*];
    };
}

operations! {
    "getppid", "getppid", call![SYS_getppid], 100.0 + 90.0, |_, _| Ok(Box::new(|n| RawCall::getppid().repeat(n).lowest));
    "known-work", "10 µs of multiplications, a job of known length", &[], 30_000.0 + 0.0, |_, _| Ok(Box::new(multiply));
    "pipe", "a byte through a pipe of one's own", call![SYS_write, SYS_read], 200.0 + 700.0, byte_through_pipe;
    "fresh-page", "a page mapped, touched and unmapped", call![SYS_mmap, SYS_munmap], 1_000.0 + 4_000.0, |_, _| {
        map_and_unmap(PAGE, true)
    };
    "open-close", "a file of one's own opened and closed", &[OPEN, ("close", libc::SYS_close)], 200.0 + 3_000.0, |place, index| {
        open_and_close(own_path(place, index))
    };
    "open-close-shared", "one file opened and closed by all", &[OPEN, ("close", libc::SYS_close)], 200.0 + 3_000.0, |place, _| {
        open_and_close(shared_path(place))
    };
    "yield", "sched_yield", call![SYS_sched_yield], 100.0 + 500.0, |_, _| Ok(Box::new(|n| RawCall::sched_yield().repeat(n).lowest));
    "dup", "a descriptor duplicated and closed", call![SYS_dup, SYS_close], 200.0 + 500.0, |place, index| {
        let file = own_file(place, index)?;
        repeat(move || dup(&file).map(drop))
    };
    "flags", "the flags of a descriptor read (fcntl)", call![SYS_fcntl], 100.0 + 120.0, |place, index| {
        let file = own_file(place, index)?;
        repeat(move || fcntl(&file, FcntlArg::F_GETFL).map(drop))
    };
    "usage", "getrusage of the process", call![SYS_getrusage], 100.0 + 600.0, |_, _| {
        repeat(|| getrusage(UsageWho::RUSAGE_SELF).map(drop))
    };
    "seek", "the position in a file of one's own set", call![SYS_lseek], 100.0 + 150.0, |place, index| {
        let file = own_file(place, index)?;
        repeat(move || lseek(&file, 0, Whence::SeekSet).map(drop))
    };
    "read", "4 KiB at the beginning of a file of one's own read, after a seek", call![SYS_lseek, SYS_read], 600.0 + 800.0, |place, index| {
        read_from(own_file(place, index)?)
    };
    "read-shared", "4 KiB at the beginning of one file read by all, after a seek", call![SYS_lseek, SYS_read], 600.0 + 800.0, |place, _| {
        read_from(shared_file(place)?)
    };
    "write", "4 KiB at the beginning of a file of one's own written, after a seek", call![SYS_lseek, SYS_write], 600.0 + 2_000.0, |place, index| {
        write_to(own_file(place, index)?)
    };
    "write-shared", "4 KiB at the beginning of one file written by all, after a seek", call![SYS_lseek, SYS_write], 600.0 + 2_000.0, |place, _| {
        write_to(shared_file(place)?)
    };
    "pread", "4 KiB of a file of one's own read", call![SYS_pread64], 500.0 + 700.0, |place, index| pread_from(own_file(place, index)?);
    "pread-shared", "4 KiB of one file read by all", call![SYS_pread64], 500.0 + 700.0, |place, _| pread_from(shared_file(place)?);
    "pwrite", "4 KiB of a file of one's own written", call![SYS_pwrite64], 500.0 + 1_800.0, |place, index| pwrite_to(own_file(place, index)?);
    "pwrite-shared", "4 KiB of one file written by all", call![SYS_pwrite64], 500.0 + 1_800.0, |place, _| pwrite_to(shared_file(place)?);
    "writev", "eight parts of 512 bytes written to a file of one's own, after a seek", call![SYS_lseek, SYS_writev], 600.0 + 2_500.0, |place, index| {
        let (file, part) = (own_file(place, index)?, [1; 512]);
        repeat(move || {
            lseek(&file, 0, Whence::SeekSet)?;
            check_whole(writev(&file, &[IoSlice::new(&part); 8])?, PAGE)
        })
    };
    "allocate", "blocks of 64 KiB allocated to a file of one's own, and taken away", call![SYS_fallocate, SYS_ftruncate], 1_000.0 + 15_000.0, |place, index| {
        let file = own_file(place, index)?;
        allocate_and_free(&file).map_err(|e| Error::Missing(format!("the file system of {} has no fallocate: {e}", place.scratch.display())))?;
        repeat(move || allocate_and_free(&file))
    };
    "create-unlink", "a file of one's own made and removed, in one directory", call![SYS_openat, SYS_close, SYS_unlinkat], 1_000.0 + 15_000.0, |place, index| {
        create_and_unlink(place.scratch.clone(), index)
    };
    "create-unlink-apart", "a file of one's own made and removed, in a directory of one's own", call![SYS_openat, SYS_close, SYS_unlinkat], 1_000.0 + 15_000.0, |place, index| {
        create_and_unlink(own_directory(place, index)?, index)
    };
    "link-unlink", "a second name given to a file of one's own, and taken away", call![SYS_linkat, SYS_unlinkat], 500.0 + 8_000.0, |place, index| {
        own_file(place, index)?;
        let directory = open_directory(own_directory(place, index)?)?;
        let (from, name) = (own_path(place, index), "second");
        repeat(move || {
            linkat(nix::fcntl::AT_FDCWD, &from, &directory, name, nix::fcntl::AtFlags::empty())?;
            unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir)
        })
    };
    "record-lock", "a record lock on a file of one's own taken and released", call![SYS_fcntl, SYS_fcntl], 200.0 + 1_500.0, |place, index| {
        lock_and_unlock_byte(own_file(place, index)?, 0)
    };
    "record-lock-shared", "a record lock on a byte of one's own of one file taken and released", call![SYS_fcntl, SYS_fcntl], 200.0 + 1_500.0, |place, index| {
        lock_and_unlock_byte(shared_file(place)?, index % 1024)
    };
    "eventfd", "an eventfd written and read", call![SYS_write, SYS_read], 200.0 + 600.0, |_, _| {
        let event = EventFd::new().map_err(|e| Error::from_errno("eventfd", e))?;
        repeat(move || event.write(1).and_then(|_| event.read()).map(drop))
    };
    "poll", "poll of 64 descriptors of one's own, none of which is ready", &[POLL], 200.0 + 2_000.0, poll_idle;
    "datagram", "a datagram through a Unix socket pair of one's own", call![SYS_write, SYS_read], 200.0 + 2_500.0, |_, _| {
        let (near, far) = UnixDatagram::pair().map_err(|e| Error::file("socketpair", "making", e))?;
        let mut byte = [0];
        repeat(move || {
            check_whole(write(&near, &byte)?, 1)?;
            check_whole(read(&far, &mut byte)?, 1)
        })
    };
    "socket-pair", "a pair of Unix sockets made and closed", call![SYS_socketpair, SYS_close, SYS_close], 500.0 + 8_000.0, |_, _| {
        repeat(|| UnixStream::pair().map(drop).map_err(errno_of))
    };
    "futex-mismatch", "a private futex that is not slept on, since its value is another", call![SYS_futex], 100.0 + 200.0, |_, _| futex_mismatch(Reach::Private), refused by libc::EAGAIN;
    "futex-mismatch-shared", "a shared futex that is not slept on, since its value is another", call![SYS_futex], 100.0 + 300.0, |_, _| futex_mismatch(Reach::Shared), refused by libc::EAGAIN;
    "futex-wake", "a wake-up of a private futex that none sleeps on", call![SYS_futex], 100.0 + 150.0, |_, _| futex_wake(Reach::Private);
    "futex-wake-shared", "a wake-up of a shared futex that none sleeps on", call![SYS_futex], 100.0 + 250.0, |_, _| futex_wake(Reach::Shared);
    "map-128MiB", "128 MiB mapped and unmapped, untouched", call![SYS_mmap, SYS_munmap], 300.0 + 2_500.0, |_, _| map_and_unmap(128 << 20, false);
    "map-file-private", "a page of a file of one's own mapped privately, written and unmapped", call![SYS_mmap, SYS_munmap], 1_500.0 + 5_000.0, |place, index| {
        map_file(own_file(place, index)?, true)
    };
    "map-file-shared", "a page of a file of one's own mapped, written and unmapped", call![SYS_mmap, SYS_munmap], 1_000.0 + 6_000.0, |place, index| {
        map_file(own_file(place, index)?, false)
    };
    "drop-page", "a page given back (madvise) and touched again", call![SYS_madvise], 1_000.0 + 2_500.0, |_, _| {
        let mut pages = own_pages()?;
        repeat(move || {
            let start = NonNull::from(&mut pages[0]).cast();
            // SAFETY: OWN-PAGE.
            unsafe { madvise(start, PAGE, MmapAdvise::MADV_DONTNEED) }?;
            pages[0] = black_box(1);
            Ok(())
        })
    };
    "protect-page", "a touched page made read-only and writable again (mprotect)", call![SYS_mprotect, SYS_mprotect], 1_000.0 + 3_500.0, |_, _| {
        let mut pages = own_pages()?;
        repeat(move || {
            let start = NonNull::from(&mut pages[0]).cast();
            // SAFETY: OWN-PAGE; it is written only while it is writable.
            unsafe { mprotect(start, PAGE, ProtFlags::PROT_READ) }?;
            // SAFETY: OWN-PAGE.
            unsafe { mprotect(start, PAGE, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE) }?;
            pages[0] = black_box(1);
            Ok(())
        })
    };
}

/// Work that repeats an operation. It returns 0, or the negative error number if an operation failed.
fn repeat(mut once: impl FnMut() -> nix::Result<()> + Send + 'static) -> Result<Work> {
    let mut answer = move || once().map_or_else(|error| -i64::from(error as i32), |()| 0);
    Ok(Box::new(move |n| (0..n).fold(0, |lowest, _| answer().min(lowest))))
}

/// Turns a partial read or write into an error, since the kernel reports it as a success.
fn check_whole(bytes: usize, asked: usize) -> nix::Result<()> {
    if bytes == asked { Ok(()) } else { Err(Errno::EIO) }
}

fn own_path(place: &Place, index: usize) -> PathBuf {
    place.scratch.join(format!("scale-{index}"))
}

fn shared_path(place: &Place) -> PathBuf {
    place.scratch.join("scale-shared")
}

/// Opens a file of at least one page for reading and writing. Another task may have made and filled it already.
fn file_at(path: PathBuf) -> Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|e| Error::file(&path, "opening", e))?;
    pwrite(&file, &[1; PAGE], 0)
        .and_then(|bytes| check_whole(bytes, PAGE))
        .map_err(|e| Error::file(&path, "writing", e.into()))?;
    Ok(file)
}

fn own_file(place: &Place, index: usize) -> Result<File> {
    file_at(own_path(place, index))
}

fn shared_file(place: &Place) -> Result<File> {
    file_at(shared_path(place))
}

fn own_directory(place: &Place, index: usize) -> Result<PathBuf> {
    let path = place.scratch.join(format!("scale-{index}-directory"));
    std::fs::create_dir_all(&path).map_err(|e| Error::file(&path, "making", e))?;
    Ok(path)
}

fn open_directory(path: PathBuf) -> Result<File> {
    File::open(&path).map_err(|e| Error::file(path, "opening", e))
}

fn own_pages() -> Result<MmapMut> {
    let mut pages = MmapMut::map_anon(PAGE).map_err(|e| Error::file("mmap", "mapping a page", e))?;
    pages[0] = 1;
    Ok(pages)
}

fn byte_through_pipe(_: &Place, _: usize) -> Result<Work> {
    let (near, far) = pipe().map_err(|e| Error::from_errno("pipe", e))?;
    Ok(Box::new(move |n| {
        let lowest = syscall::repeat_write_read(far.as_raw_fd(), near.as_raw_fd(), &mut 0, n);
        // A result of 0 is not an error of the kernel, but no byte went through the pipe.
        if lowest.contains(&0) { -i64::from(libc::EPIPE) } else { lowest[0].min(lowest[1]) }
    }))
}

fn open_and_close(path: PathBuf) -> Result<Work> {
    file_at(path.clone())?;
    let path = c_path(&path)?;
    Ok(Box::new(move |n| syscall::repeat_open_close(&path, n)))
}

fn read_from(file: File) -> Result<Work> {
    let mut bytes = [0; PAGE];
    repeat(move || {
        lseek(&file, 0, Whence::SeekSet)?;
        check_whole(read(&file, &mut bytes)?, PAGE)
    })
}

fn write_to(file: File) -> Result<Work> {
    repeat(move || {
        lseek(&file, 0, Whence::SeekSet)?;
        check_whole(write(&file, &[1; PAGE])?, PAGE)
    })
}

fn pread_from(file: File) -> Result<Work> {
    let mut bytes = [0; PAGE];
    repeat(move || check_whole(pread(&file, &mut bytes, 0)?, PAGE))
}

fn pwrite_to(file: File) -> Result<Work> {
    repeat(move || check_whole(pwrite(&file, &[1; PAGE], 0)?, PAGE))
}

fn allocate_and_free(file: &File) -> nix::Result<()> {
    fallocate(file, FallocateFlags::empty(), 0, 64 << 10)?;
    ftruncate(file, 0)
}

fn create_and_unlink(directory: PathBuf, index: usize) -> Result<Work> {
    let (directory, name) = (open_directory(directory)?, format!("made-{index}"));
    repeat(move || {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_RDWR | OFlag::O_CLOEXEC;
        drop(openat(&directory, &*name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        unlinkat(&directory, &*name, UnlinkatFlags::NoRemoveDir)
    })
}

/// Locks a byte of the file.
fn lock_and_unlock_byte(file: File, byte: usize) -> Result<Work> {
    let [taken, released] = [libc::F_WRLCK, libc::F_UNLCK].map(|kind| byte_lock(byte, kind));
    repeat(move || {
        fcntl(&file, FcntlArg::F_SETLK(&taken))?;
        fcntl(&file, FcntlArg::F_SETLK(&released)).map(drop)
    })
}

fn poll_idle(_: &Place, _: usize) -> Result<Work> {
    const EACH: usize = 64;
    let pipes = (0..EACH).map(|_| pipe()).collect::<nix::Result<Vec<_>>>();
    let pipes = pipes.map_err(|e| Error::from_errno("pipe", e))?;
    repeat(move || {
        let mut asked: [PollFd<'_>; EACH] =
            std::array::from_fn(|at| PollFd::new(pipes[at].0.as_fd(), PollFlags::POLLIN));
        check_whole(poll(&mut asked, PollTimeout::ZERO)? as usize, 0)
    })
}

/// Futex waits whose expected value differs, so that the kernel returns EAGAIN at once.
fn futex_mismatch(reach: Reach) -> Result<Work> {
    let words = Words::new()?;
    repeat(move || match futex::wait(&words[0].value, 1, reach) {
        answer if answer == -i64::from(libc::EAGAIN) => Ok(()),
        _ => Err(Errno::EIO),
    })
}

/// Futex wake-ups of a word on which no task sleeps.
fn futex_wake(reach: Reach) -> Result<Work> {
    let words = Words::new()?;
    repeat(move || match futex::wake(&words[0].value, reach) {
        0 => Ok(()),
        answer => Err(Errno::from_raw(answer.unsigned_abs() as i32)),
    })
}

fn map_and_unmap(bytes: usize, is_touched: bool) -> Result<Work> {
    repeat(move || {
        let mut mapped = MmapMut::map_anon(bytes).map_err(errno_of)?;
        if is_touched {
            mapped[0] = black_box(1);
        }
        Ok(())
    })
}

/// Maps a page of a file, writes to it and unmaps it.
fn map_file(file: File, is_private: bool) -> Result<Work> {
    let mut page = memmap2::MmapOptions::new();
    page.len(PAGE);
    repeat(move || {
        // SAFETY: OWN-FILE.
        let mapped = unsafe { if is_private { page.map_copy(&file) } else { page.map_mut(&file) } };
        mapped.map_err(errno_of)?[0] = black_box(1);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Scale};
    use crate::platform::testing::print_skipped;

    #[test]
    fn no_operation_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let place = Place {
            scratch: scratch.path().to_owned(),
            scale: Scale::Smoke,
            cpus: Cpus::from_allowed(Some(0), vec![0]),
        };
        for operation in OPERATIONS {
            for index in [0, 1, usize::MAX] {
                match (operation.make)(&place, index) {
                    Ok(mut work) => assert!(work(3) >= 0, "{}", operation.name),
                    Err(Error::Missing(sentence)) => print_skipped(&sentence.to_string()),
                    Err(error) => panic!("{}: {error}", operation.name),
                }
            }
        }
    }

    #[test]
    fn the_error_of_one_operation_is_the_result_of_the_batch() {
        let mut turn = 0;
        let mut work = repeat(move || {
            turn += 1;
            if turn == 2 { Err(Errno::EBADF) } else { Ok(()) }
        })
        .unwrap();
        assert_eq!([work(3), work(3)], [-i64::from(libc::EBADF), 0]);
    }
}
