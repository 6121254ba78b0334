//! `cargo bench --bench contention`: see `src/subject/contention.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("contention")
}
