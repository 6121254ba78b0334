//! `cargo bench --bench scale`: see `src/suite/scale.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("scale")
}
