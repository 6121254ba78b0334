//! `cargo bench --bench empty_loop`: see `src/suite/empty_loop.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("empty_loop")
}
