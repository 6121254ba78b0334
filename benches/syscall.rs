//! `cargo bench --bench syscall`: see `src/suite/syscall.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("syscall")
}
