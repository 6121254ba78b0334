//! `cargo bench --bench displacement`: see `src/subject/displacement.rs`.
fn main() -> std::process::ExitCode {
    syscost::harness::group("displacement")
}
