//! `cargo bench --bench call`: see `src/subject/call.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("call")
}
