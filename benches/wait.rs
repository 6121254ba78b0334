//! `cargo bench --bench wait`: see `src/subject/wait.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("wait")
}
