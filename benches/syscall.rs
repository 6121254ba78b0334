//! `cargo bench --bench syscall`: see `src/subject/syscall.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("syscall")
}
