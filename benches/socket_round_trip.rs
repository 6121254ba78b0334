//! `cargo bench --bench socket_round_trip`: see `src/suite/socket_round_trip.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("socket_round_trip")
}
