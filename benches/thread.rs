//! `cargo bench --bench thread`: see `src/subject/thread.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("thread")
}
