//! `cargo bench --bench socket_connect`: see `src/subject/socket_connect.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("socket_connect")
}
