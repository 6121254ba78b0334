//! `cargo bench --bench wake_up`: see `src/suite/wake_up.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("wake_up")
}
