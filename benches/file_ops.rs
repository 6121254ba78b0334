//! `cargo bench --bench file_ops`: see `src/suite/file_ops.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("file_ops")
}
