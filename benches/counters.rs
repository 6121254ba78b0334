//! `cargo bench --bench counters`: see `src/subject/counters.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("counters")
}
