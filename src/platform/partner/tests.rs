use super::*;
use std::sync::atomic::{AtomicBool, AtomicU32};

fn here() -> (usize, Class) {
    (cpu::allowed().into_iter().max().expect("a CPU"), Class::Ordinary)
}

fn fate_of(step: impl FnMut() -> i64 + Send + 'static) -> String {
    let mut partner = Partner::start(Kind::Process, here(), step, || ()).expect("started");
    let begun = Instant::now();
    loop {
        if let Some(fate) = partner.fate() {
            return fate;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it lives on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_partner_that_panics_never_returns_into_the_harness() {
    let before = getpid();
    assert_eq!(fate_of(|| std::panic::resume_unwind(Box::new("in the partner"))), "the partner panicked");
    assert_eq!(getpid(), before);
}

#[test]
fn a_partner_that_is_shot_is_said_to_be() {
    let dies = |signal: Signal| {
        fate_of(move || {
            let _ = nix::sys::signal::raise(signal);
            0
        })
    };
    assert_eq!(dies(Signal::SIGSEGV), "the partner was killed by SIGSEGV");
    assert_eq!(dies(Signal::SIGKILL), "the partner was killed by SIGKILL");
}

#[test]
fn a_partner_without_memory_dies_alone() {
    use nix::sys::resource::{Resource, setrlimit};
    let hungry = || {
        let _ = setrlimit(Resource::RLIMIT_AS, 1 << 20, 1 << 20);
        let bytes = Vec::<u8>::try_reserve(&mut Vec::new(), 1 << 30);
        if bytes.is_err() { -i64::from(libc::ENOMEM) } else { 0 }
    };
    assert!(fate_of(hungry).contains("memory"));
}

#[test]
fn a_partner_is_gone_with_its_value() {
    let partner = spinner(here().0, Class::Idle).expect("started");
    let pid = partner.task().process;
    assert!(kill(pid, None).is_ok());
    drop(partner);
    assert_eq!(kill(pid, None), Err(nix::errno::Errno::ESRCH), "neither alive nor a zombie");
}

#[test]
fn a_thread_stops_when_it_is_nudged() {
    let gate = Arc::new(AtomicBool::new(false));
    let steps = Arc::new(AtomicU32::new(0));
    let (waits, counts, opens) = (Arc::clone(&gate), Arc::clone(&steps), Arc::clone(&gate));
    let step = move || {
        counts.fetch_add(1, SeqCst);
        while !waits.load(SeqCst) {
            std::thread::sleep(Duration::from_micros(100));
        }
        0
    };
    let mut partner = Partner::start(Kind::Thread, here(), step, move || opens.store(true, SeqCst)).unwrap();
    let tid = partner.task().thread;
    assert_eq!(partner.fate(), None);
    drop(partner);
    assert!(!std::path::Path::new(&format!("/proc/self/task/{tid}")).exists());
}

#[test]
fn a_place_that_does_not_exist_is_refused() {
    let refused = Partner::start(Kind::Process, (1023, Class::Ordinary), || 0, || ()).err();
    assert!(refused.expect("no such CPU").to_string().contains("CPU 1023"));
}
