//! What a person types.
/// Runs.
pub fn run() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
