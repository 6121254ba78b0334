//! `cargo bench --bench fork`: see `src/subject/fork.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("fork")
}
