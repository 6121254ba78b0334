//! `cargo bench --bench page_fault`: see `src/suite/page_fault.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("page_fault")
}
