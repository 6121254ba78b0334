//! `cargo bench --bench cached_read`: see `src/subject/cached_read.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("cached_read")
}
