//! `cargo bench --bench call`: see `src/suite/call.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("call")
}
