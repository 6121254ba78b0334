//! `cargo bench --bench thread`: see `src/suite/thread.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("thread")
}
