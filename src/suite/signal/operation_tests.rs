//! Tests of signals that a process sends to itself.
//!
//! # Invariants
//!
//! * **OWN-PAGE**: the page whose protection changes belongs to one page of a test, which alone accesses it.
//! * **OWN-BUFFER**: the kernel reads and writes only the value that it is given, which is as large as its structure.

use super::*;
// The tests run in child processes, because the action of a signal belongs to the whole process.
use crate::platform::child::Child;
use crate::platform::testing::run_in_child_process;
use std::time::Duration;

fn me() -> i32 {
    nix::unistd::getpid().as_raw()
}

#[test]
fn a_signal_is_caught_ignored_and_its_action_restored() {
    run_in_child_process(|| {
        let before = handler_runs();
        let action = Action::counting_handler().expect("installed");
        assert_eq!((action.install_again(), send_signal(me(), SIGNAL), handler_runs() - before), (0, 0, 1));
        drop(action);
        let action = Action::ignoring_signal().expect("installed");
        assert_eq!((send_signal(me(), SIGNAL), handler_runs() - before), (0, 1));
        drop(action);
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: OWN-BUFFER.
        let now = unsafe {
            libc::sigaction(SIGNAL, std::ptr::null(), now.as_mut_ptr());
            now.assume_init()
        };
        assert_eq!(now.sa_sigaction, libc::SIG_DFL);
    });
}

#[test]
fn a_fault_is_repaired_on_the_own_page_and_not_elsewhere() {
    run_in_child_process(|| {
        let before = handler_runs();
        let mut page = Page::with_repair_handler().expect("a page");
        for _ in 0..3 {
            assert_eq!(page.set_writable(false), 0);
            page.write();
        }
        assert_eq!(handler_runs() - before, 3);
    });
    let foreign = Child::start(|| {
        let _page = Page::with_repair_handler().expect("a page");
        let nowhere = std::hint::black_box(64usize) as *mut u8;
        // SAFETY: OWN-PAGE does not hold, which is the point: the process ends.
        unsafe { nowhere.write_volatile(1) };
    });
    let end = foreign.expect("forked").wait_for_success(Duration::from_secs(30));
    assert!(end.expect_err("it must die").to_string().contains("SIGSEGV"));
}

#[test]
fn a_witness_sees_a_fault_repaired() {
    use crate::platform::ptrace::{list_syscalls, step_through};
    run_in_child_process(|| {
        let mut page = Page::with_repair_handler().expect("a page");
        let mut body = || {
            assert_eq!(page.set_writable(false), 0);
            page.write();
        };
        let listed = list_syscalls(&mut body, usize::MAX, |_| true).expect("listed").entries;
        let stepped = step_through(&mut body, 100_000).expect("stepped").expect("short").entries;
        for seen in [listed, stepped] {
            let wanted = [libc::SYS_mprotect, libc::SYS_mprotect, libc::SYS_rt_sigreturn];
            let seen: Vec<_> = seen.iter().map(|call| call.number).collect();
            let at = seen.iter().position(|call| *call == libc::SYS_mprotect).expect("protected");
            assert_eq!(seen[at..at + 3], wanted);
        }
    });
}

#[test]
fn a_blocked_signal_is_read_from_its_descriptor() {
    run_in_child_process(|| {
        let mut descriptor = Descriptor::new().expect("a descriptor");
        assert_eq!(descriptor.read(), -i64::from(libc::EAGAIN));
        assert_eq!((send_signal(me(), SIGNAL), descriptor.read()), (0, i64::from(SIGNAL)));
        send_signal(me(), SIGNAL);
        drop(descriptor); // also reads the pending signal
    });
}

#[test]
fn timers_expire_at_once() {
    run_in_child_process(|| {
        let _action = Action::counting_handler().expect("installed");
        let before = handler_runs();
        let timer = Timer::new().expect("a timer");
        assert_eq!(timer.expire_at_once(), 0);
        while handler_runs() == before {}
        assert_eq!(TimerDescriptor::new().expect("a timer").expire_and_read(), 1);
    });
}
