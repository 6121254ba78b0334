//! `cargo bench --bench displacement`: see `src/suite/displacement.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("displacement")
}
