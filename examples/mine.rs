#![doc = "A bench target of one's own: benches/mine.rs, with `name = \"mine\"` and `harness = false` in Cargo.toml."]
use std::hint::black_box;
use syscost::{Case, Claim, Group};

fn cases() -> Vec<Case> {
    vec![
        // A loop timed as a whole. The claims say what must be true if it really happened.
        Case::looped("parent", "the parent's process id", |n| {
            for _ in 0..n {
                black_box(std::os::unix::process::parent_id());
            }
        })
        // The same loop without the operation.
        .control(|n| (0..n).for_each(|i| _ = black_box(i)))
        // The kernel was entered by this call each time, that is what took the time, and twice the turns
        // took twice the time.
        .claim(Claim::Enters(vec![("getppid", syscost::libc::SYS_getppid)]))
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
        // In core cycles, hardware and software, written down first.
        .predict(100.0, 80.0, "entry and exit, and a field of the task"),
    ]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("mine", "1: change this when what is timed changes", cases)])
}
