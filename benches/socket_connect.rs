//! `cargo bench --bench socket_connect`: see `src/suite/socket_connect.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("socket_connect")
}
