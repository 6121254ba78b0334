//! The binary `syscost`: see `src/command.rs` for what can be typed.
use std::process::ExitCode;

fn main() -> ExitCode {
    syscost::command::run()
}
