//! The settings, besides signals, that a process inherits from the one that started it, and how a measuring process resets them.
//!
//! # Invariants
//!
//! * **OWN-TASK**: the call reads or changes the calling task alone, by numbers and local structures of the size that it
//!   expects.
//! * **FORKED**: between fork and exec the child makes system calls on numbers, and allocates nothing.

#![allow(unsafe_code)]

use crate::{limit, signal};
use nix::errno::Errno;
use nix::sys::stat::{Mode, umask};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

/// The scheduling of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// `SCHED_OTHER`, `SCHED_FIFO` and so on.
    pub policy: i32,
    /// Real-time priority, 1 to 99; 0 in any other class.
    pub priority: i32,
    /// The nice value, -20 to 19.
    pub nice: i32,
    /// Least and most utilization that a frequency governor sees, 0 to 1024; `None` where the kernel has no clamp.
    pub clamp: Option<(u32, u32)>,
}

/// `struct sched_attr` of linux/sched/types.h, as of Linux 5.3.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    deadline: [u64; 3],
    clamp: [u32; 2],
}

/// The scheduling of this thread. If the kernel refuses the call, it is that of an ordinary task.
pub fn read_scheduling() -> Scheduling {
    let mut found = Attributes::default();
    let bytes = size_of::<Attributes>();
    // SAFETY: OWN-TASK.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, bytes, 0) };
    if answer != 0 {
        return Scheduling::default();
    }
    let [least, most] = found.clamp;
    Scheduling {
        policy: found.policy as i32,
        priority: found.priority as i32,
        nice: super::niceness(0),
        // A kernel without clamps returns zeros.
        clamp: Some((least, most)).filter(|_| found.size as usize == bytes && most > 0),
    }
}

/// Makes this thread an ordinary task (`SCHED_OTHER`), unless it is one.
///
/// # Errors
/// The error number of the kernel. Leaving `SCHED_IDLE` needs a privilege, or a sufficient RLIMIT_NICE.
pub fn set_ordinary_class() -> Result<(), Errno> {
    match current_class() {
        libc::SCHED_OTHER => Ok(()),
        // A task that may not drop `SCHED_RESET_ON_FORK` may still change its class and keep the flag.
        _ => set_scheduling_class(libc::SCHED_OTHER, 0)
            .or_else(|_| set_scheduling_class(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)),
    }
}

/// As [`set_ordinary_class`], for a task of a real-time class only: if it never waits, no other task gets its CPU. It
/// allocates nothing, so that a forked child can use it.
///
/// # Errors
/// The error number of the kernel.
pub fn leave_real_time_class() -> Result<(), Errno> {
    if is_real_time(current_class()) { set_ordinary_class() } else { Ok(()) }
}

fn current_class() -> i32 {
    // A kernel that refuses the call is taken to have ordinary tasks only.
    scheduling_class().unwrap_or(libc::SCHED_OTHER) & !libc::SCHED_RESET_ON_FORK
}

/// Whether tasks of this class run before every ordinary one.
pub fn is_real_time(policy: i32) -> bool {
    matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
}

/// The time by which the kernel may delay time-outs of this thread, ns (`PR_SET_TIMERSLACK`); `None` if it refuses the call.
pub fn timer_slack_ns() -> Option<u64> {
    // SAFETY: OWN-TASK.
    let answer = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(answer).ok()
}

/// Whether this process gets no transparent huge pages (`PR_SET_THP_DISABLE`).
pub fn is_thp_disabled() -> bool {
    // SAFETY: OWN-TASK.
    (unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }) == 1
}

/// This process has no transparent huge pages while this value lives; then the setting is as before.
pub struct NoHugePages {
    before: bool,
}

impl NoHugePages {
    /// Switches transparent huge pages off; `None` if the kernel refuses.
    pub fn start() -> Option<Self> {
        let before = is_thp_disabled();
        set_thp_disabled(true).then_some(Self { before })
    }
}

impl Drop for NoHugePages {
    fn drop(&mut self) {
        set_thp_disabled(self.before);
    }
}

/// Switches transparent huge pages off or on, and returns whether the kernel did so.
fn set_thp_disabled(disabled: bool) -> bool {
    // SAFETY: OWN-TASK.
    (unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_long::from(disabled), 0, 0, 0) }) == 0
}

/// The execution domain and its flags (personality(2)); 0 is the usual one.
pub fn personality() -> u32 {
    // SAFETY: OWN-TASK: this number is a query and changes nothing.
    u32::try_from(unsafe { libc::personality(0xffff_ffff) }).unwrap_or(0)
}

/// The policy by which this thread's memory is placed on nodes: the mode of get_mempolicy(2), 0 for the usual one.
pub fn memory_policy() -> i32 {
    let mut mode = 0i32;
    // SAFETY: OWN-TASK: without a mask and an address it writes the mode alone.
    let answer = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, 0, 0, 0, 0) };
    if answer == 0 { mode } else { 0 }
}

/// I/O class and level of this thread (ioprio_get(2)); class 0 follows the nice value.
pub fn disk_priority() -> (i32, i32) {
    /// `IOPRIO_WHO_PROCESS` of linux/ioprio.h.
    const THREAD: i32 = 1;
    // SAFETY: OWN-TASK.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_get, THREAD, 0) };
    let priority = i32::try_from(answer).unwrap_or(0).max(0);
    (priority >> 13, priority & 7)
}

/// The umask that this process inherited.
static MASK: OnceLock<Mode> = OnceLock::new();

/// Lets a command of the user start with the SIGCHLD and SIGXFSZ settings and the umask that this process
/// inherited.
pub fn restore_inherited(command: &mut Command) -> &mut Command {
    let mask = MASK.get().copied();
    let restore = move || {
        signal::restore_inherited_dispositions();
        if let Some(mask) = mask {
            umask(mask);
        }
        Ok(())
    };
    // SAFETY: FORKED.
    unsafe { command.pre_exec(restore) }
}

/// Clears the owner bits of the inherited umask, so that this process can read and write the files that it makes.
pub fn allow_owner_access() {
    let inherited = umask(Mode::S_IRWXG | Mode::S_IRWXO);
    umask(inherited & !Mode::S_IRWXU);
    MASK.get_or_init(|| inherited);
}

/// Leaves `SCHED_DEADLINE`, because a task of that class may not start children.
pub fn leave_deadline_class() {
    if read_scheduling().policy == libc::SCHED_DEADLINE {
        // If this is refused, the first child is refused too, with a sentence of its own.
        let _ = set_ordinary_class();
    }
}

/// Prepares a measuring process: resets signals, CPU limit and scheduling class. Returns a sentence if the class
/// cannot be left.
pub fn prepare_measuring_process() -> Option<String> {
    signal::reset_dispositions();
    limit::restore_soft_cpu_limit();
    let class = read_scheduling().policy;
    let errno = set_ordinary_class().err()?;
    Some(format!(
        "the scheduling class {} was inherited and cannot be left ({}): figures hold for that class; start the run without \
         `chrt`",
        class_name(class),
        errno.desc()
    ))
}

/// The name of a scheduling class, as sched(7) has it.
pub fn class_name(policy: i32) -> String {
    let name = match policy {
        libc::SCHED_OTHER => "SCHED_OTHER",
        libc::SCHED_FIFO => "SCHED_FIFO",
        libc::SCHED_RR => "SCHED_RR",
        libc::SCHED_BATCH => "SCHED_BATCH",
        libc::SCHED_IDLE => "SCHED_IDLE",
        libc::SCHED_DEADLINE => "SCHED_DEADLINE",
        other => return format!("of number {other}"),
    };
    name.into()
}

/// Lets a command, once started, inherit the standard streams and these descriptors, and no others: a fork copies every
/// descriptor, so that those which the user's shell left open would add a cost. If a sandbox refuses socketpair(2), which
/// the standard library needs to run code before the exec, the command inherits all descriptors.
pub fn close_other_descriptors(command: &mut Command, kept: &[BorrowedFd<'_>]) {
    if UnixDatagram::pair().is_err() {
        return;
    }
    let gaps = descriptor_gaps(kept.iter().map(|kept| kept.as_raw_fd() as u32).collect());
    let close = move || {
        gaps.iter().for_each(|&(first, last)| close_range_at_exec(first, last));
        Ok(())
    };
    // SAFETY: FORKED.
    unsafe { command.pre_exec(close) };
}

/// A duplicate of the descriptor that this process has inherited under this number. Programs that it starts do not inherit it.
///
/// # Errors
/// Nothing was inherited under this number.
pub fn duplicate_inherited(number: RawFd) -> io::Result<File> {
    // SAFETY: OWN-TASK.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: OWN-TASK: the kernel has just made this descriptor, which has no other owner.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// The ranges of descriptor numbers, from 3 on, that contain none of `kept`.
fn descriptor_gaps(mut kept: Vec<u32>) -> Vec<(u32, u32)> {
    kept.sort_unstable();
    let firsts = std::iter::once(3).chain(kept.iter().map(|kept| kept + 1));
    let lasts = kept.iter().map(|kept| kept.saturating_sub(1)).chain([u32::MAX]);
    firsts.zip(lasts).filter(|(first, last)| first <= last).collect()
}

/// Marks a range of descriptors as close-on-exec. Before Linux 5.11 it does nothing.
fn close_range_at_exec(first: u32, last: u32) {
    // SAFETY: FORKED: the descriptors stay open until the child executes its program.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Moves this thread to a class with a priority, which is 0 except in real-time classes. Allocates nothing.
pub fn set_scheduling_class(class: i32, priority: i32) -> nix::Result<()> {
    // SAFETY: OWN-TASK.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, class, &raw const priority) };
    Errno::result(answer).map(drop)
}

/// The scheduling class of this thread, with the flag `SCHED_RESET_ON_FORK` if it is set.
pub fn scheduling_class() -> nix::Result<i32> {
    // SAFETY: OWN-TASK: no memory is passed.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    Errno::result(answer).map(|class| class as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;
    use crate::testing::run_in_child_process;

    #[test]
    fn kept_descriptors_lie_in_no_gap() {
        assert_eq!(descriptor_gaps(vec![]), [(3, u32::MAX)]);
        assert_eq!(descriptor_gaps(vec![7, 5, 4]), [(3, 3), (6, 6), (8, u32::MAX)]);
        assert_eq!(descriptor_gaps(vec![3]), [(4, u32::MAX)]);
    }

    #[test]
    fn an_inherited_real_time_class_is_left() {
        run_in_child_process(|| {
            let parameter = libc::sched_param { sched_priority: 5 };
            // SAFETY: OWN-TASK.
            if unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameter) } != 0 {
                print_skipped("a real-time class needs CAP_SYS_NICE");
                return;
            }
            let found = read_scheduling();
            assert!(is_real_time(found.policy) && found.priority == 5, "{found:?}");
            assert_eq!(prepare_measuring_process(), None);
            assert_eq!(read_scheduling().policy, libc::SCHED_OTHER);
        });
    }

    #[test]
    fn a_task_outside_of_the_real_time_classes_keeps_its_class() {
        run_in_child_process(|| {
            set_scheduling_class(libc::SCHED_BATCH, 0).expect("allowed to all");
            leave_real_time_class().expect("nothing to do");
            assert_eq!(read_scheduling().policy, libc::SCHED_BATCH);
            set_ordinary_class().expect("allowed to all");
            assert_eq!(read_scheduling().policy, libc::SCHED_OTHER);
        });
    }

    #[test]
    fn the_slack_that_was_set_is_read() {
        run_in_child_process(|| {
            // SAFETY: OWN-TASK.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 7_000, 0, 0, 0) };
            assert_eq!(timer_slack_ns(), Some(7_000));
        });
    }

    #[test]
    fn an_owner_may_read_and_write_whatever_the_mask_was() {
        run_in_child_process(|| {
            umask(Mode::from_bits_truncate(0o777));
            allow_owner_access();
            assert_eq!(umask(Mode::empty()), Mode::from_bits_truncate(0o077));
        });
    }

    #[test]
    fn a_command_inherits_one_descriptor_and_no_other() {
        let open = || {
            let file = std::fs::File::open("/dev/null").expect("opened");
            nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))
                .expect("inherited");
            file
        };
        let (kept, others) = (open(), [open(), open()]);
        let mut command = Command::new("ls");
        close_other_descriptors(command.arg("/proc/self/fd"), &[std::os::fd::AsFd::as_fd(&kept)]);
        let said = String::from_utf8(command.output().expect("started").stdout).expect("text");
        let numbers: Vec<i32> = said.lines().map(|line| line.parse().expect("a number")).collect();
        assert!(numbers.contains(&kept.as_raw_fd()), "{said}");
        // `ls` itself opens a descriptor, which takes the number of a closed one.
        assert!(numbers.len() <= 5 && others.len() == 2, "{said}");
    }

    #[test]
    fn entering_a_class_changes_this_thread_only() {
        let entered =
            std::thread::spawn(|| set_scheduling_class(libc::SCHED_BATCH, 0).map(|()| scheduling_class()));
        assert_eq!(entered.join().unwrap(), Ok(Ok(libc::SCHED_BATCH)));
        assert_ne!(scheduling_class(), Ok(libc::SCHED_BATCH));
        assert_eq!(set_scheduling_class(libc::SCHED_BATCH, 7), Err(Errno::EINVAL));
    }
}
