//! `cargo bench --bench lock`: see `src/subject/lock.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("lock")
}
