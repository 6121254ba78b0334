//! `cargo bench --bench bandwidth`: see `src/subject/bandwidth.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("bandwidth")
}
