//! `cargo bench --bench scale`: see `src/subject/scale.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("scale")
}
