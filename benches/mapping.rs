//! `cargo bench --bench mapping`: see `src/subject/mapping.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("mapping")
}
