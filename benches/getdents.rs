//! `cargo bench --bench getdents`: see `src/suite/getdents.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("getdents")
}
