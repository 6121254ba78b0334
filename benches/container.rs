//! `cargo bench --bench container`: see `src/suite/container.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("container")
}
