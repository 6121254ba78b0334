//! `cargo bench --bench ping_pong`: see `src/suite/ping_pong.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("ping_pong")
}
