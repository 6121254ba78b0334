//! # What is timed
//! What tracing and confinement add to a program. `seccomp/N`: a call of getppid(2) under a filter of N instructions that looks
//! at an argument, and (`none`) under no filter; `seccomp-by-number/N`: under a filter that looks at the call's number only.
//! `seccomp-notify`: a call that another thread answers on the same CPU. `ptrace-stop`: a tracer lets a process run to its next entry
//! into or exit from the kernel. `breakpoint-hit`, `uprobe-hit` and `uretprobe-hit`: a write to a word that a hardware breakpoint
//! watches, a call of a probed function, and one whose return is probed. `kprobe-hit` and `tracepoint-hit`: a call of getppid(2)
//! with a probe of the kernel's function, and with its tracepoint on. `…-toggle`: switching such an event off and on again, two
//! calls. `landlock-open/N`: opening and closing a file under N layers of Landlock. `bpf-call`: one run of a BPF program of eleven instructions by
//! one system call (`BPF_PROG_TEST_RUN`); `bpf-run`: the same, repeated within the kernel. `bpf-map-update` and `bpf-map-lookup`:
//! one key of a hash, by a system call.
//!
//! # What is not
//! Installing filters, layers and probes, loading the program, and the child in which a filter is installed, since none of them
//! can be taken back: each batch of those cases has a child of its own, which times itself. What a tracer does with an event:
//! all probes here only count.
//!
//! # How we know
//! A filter answers a call that does not exist, by its last instructions: the kernel has run it to its end. The calls of
//! `seccomp-notify` are answered by a number that the kernel does not return. The traced process counts its calls, of which each
//! is two stops. A probe's count grows by exactly one an iteration. Under Landlock a file outside of the directory is refused.
//! The program counts its runs in a map. For the other cases a witness sees the system calls.
//!
//! # What fools it
//! Since Linux 5.11 the kernel asks a filter once about each number, and never runs it again where the answer does not depend on
//! arguments: `seccomp-by-number` is then as cheap as no filter. The kernel compiles filters and programs (`net.core.bpf_jit_enable`);
//! without that each instruction takes several times as long. A hypervisor may intercept debug registers and their exceptions. A
//! probe on an instruction that the kernel cannot emulate costs a second exception. The file that `landlock-open` opens is one
//! directory below the allowed one: the cost grows with the depth.
//!
//! # Reading the number
//! `seccomp/N` less `seccomp/none` is what a filter adds to every system call of a container. `uprobe-hit` is what each call of a
//! traced function costs a program, besides the work of the tracer. `kprobe-hit` and `tracepoint-hit` less `syscall/getppid` is what
//! a probe of the kernel costs each call; with the tracepoint off the call costs what `syscall/getppid` says.
//!
//! # Source
//! perf bench `breakpoint`, `uprobe`, `sched seccomp-notify`; the kernel's selftests of bpf; seccomp(2), ptrace(2),
//! perf_event_open(2), landlock(7), bpf(2).

pub(super) mod confined;
pub(super) mod probed;

use crate::case::{Case, Group, OwnTasks};
use crate::kit::operation_table::table_cases;
use crate::record::{Axis, Curve};

pub const GROUP: Group = Group::new("tracing", include_str!("tracing.rs"), cases).curves(&[
    Curve::new(
        "tracing/seccomp/",
        "filter that looks at arguments",
        Axis::Count("instructions of the filter"),
    )
    .with_chart("a call by length of the filter"),
    Curve::new("tracing/landlock-open/", "open and close", Axis::Count("layers of Landlock")),
]);

/// Those that a default run measures; a full one measures all.
const BY_DEFAULT: [&str; 3] = ["seccomp/256", "uprobe-hit", "bpf-call"];

fn cases() -> Vec<Case> {
    // Children and threads of a batch run on the measuring CPU.
    let confined =
        table_cases(confined::ROWS, &BY_DEFAULT).into_iter().map(|case| case.own_tasks(OwnTasks::SameCpu));
    confined.chain(table_cases(probed::ROWS, &BY_DEFAULT)).collect()
}
