//! `cargo bench --bench mapping`: see `src/suite/mapping.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("mapping")
}
