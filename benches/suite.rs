//! `cargo bench`: every group, each in a process of its own, and one table.
fn main() -> std::process::ExitCode {
    syscost::harness::suite()
}
