//! `cargo bench --bench direct_read`: see `src/suite/direct_read.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("direct_read")
}
