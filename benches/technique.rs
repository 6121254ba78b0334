//! `cargo bench --bench technique`: see `src/subject/technique.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("technique")
}
