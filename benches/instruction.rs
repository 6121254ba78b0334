//! `cargo bench --bench instruction`: see `src/suite/instruction.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("instruction")
}
