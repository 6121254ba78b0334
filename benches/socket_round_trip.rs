//! `cargo bench --bench socket_round_trip`: see `src/subject/socket_round_trip.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("socket_round_trip")
}
