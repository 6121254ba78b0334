//! `cargo bench --bench cached_read`: see `src/suite/cached_read.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("cached_read")
}
