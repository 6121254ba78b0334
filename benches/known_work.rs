//! `cargo bench --bench known_work`: see `src/suite/known_work.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("known_work")
}
