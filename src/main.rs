//! The binary: one page, one match. What a person can type is in [`syscost::command`].
use std::process::ExitCode;

fn main() -> ExitCode {
    if syscost::harness::is_measuring_process() {
        return syscost::harness::suite();
    }
    syscost::internals::run()
}
