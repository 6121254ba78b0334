//! `cargo bench --bench chase`: see `src/subject/chase.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("chase")
}
