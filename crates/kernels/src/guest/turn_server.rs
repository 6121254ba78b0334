//! The first process of a guest that takes turns: it lends the second serial line to one side after the other, each a
//! process of its own, and says when each has ended.

use super::console::Message;
use super::init::identity;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use syscost_engine::json_line::{Lines, NoMessage, send};
use syscost_engine::pair::{LONGEST_REQUEST, Request, Response, VARIABLE};
use syscost_platform::error::{Error, Result};
use syscost_platform::seccomp::install_filter;

/// The line of the turns.
const LINE: &str = "/dev/ttyS1";
/// Bytes of that line after which the processor is interrupted: by default it waits for more of them, for milliseconds.
const TRIGGER: &str = "/sys/class/tty/ttyS1/rx_trig_bytes";
/// The word of a kernel's command line that slows its system calls.
const SLOWDOWN: &str = "syscost.slowdown=";
/// Time in which a kernel ends its start.
const SETTLE: Duration = Duration::from_secs(1);

/// Serves sides until the line is closed.
///
/// # Errors
/// There is no such line, it cannot be read or written, or the slowdown that is asked for cannot be had.
pub fn serve() -> Result<()> {
    let line = open_line()?;
    std::thread::sleep(SETTLE);
    let identity = identity();
    if let Some(additions) = parse_slowdown(&identity.command_line)? {
        install_filter(additions)?;
    }
    send_message(&line, &Message::Hello(Box::new(identity)))?;
    while let Some(padding) = next_start(&line)? {
        let how = run_side(&line, padding);
        send_message(&line, &Response::Gone { how })?;
    }
    Ok(())
}

/// The additions that every system call of the sides pays, if the command line says so: a kernel that is slower by a known
/// amount, as a trial of the method.
fn parse_slowdown(command_line: &str) -> Result<Option<usize>> {
    let Some(number) = command_line.split_whitespace().find_map(|word| word.strip_prefix(SLOWDOWN)) else {
        return Ok(None);
    };
    let wrong = |_| Error::Usage(format!("{SLOWDOWN}{number}: expected a number of additions, such as 100"));
    number.parse().map(Some).map_err(wrong)
}

/// The line, which passes every byte on as it is.
fn open_line() -> Result<File> {
    let opened = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(LINE);
    let line = opened.map_err(|e| Error::file(LINE, "opening", e))?;
    let refused = |e| Error::from_errno("setting the serial line", e);
    let mut settings = tcgetattr(&line).map_err(refused)?;
    cfmakeraw(&mut settings);
    // The fastest that every such line has. By hand, since a static C library lacks the function that glibc has for it.
    let mut fast = libc::termios::from(settings);
    fast.c_cflag = (fast.c_cflag & !libc::CBAUD) | libc::B115200;
    tcsetattr(&line, SetArg::TCSANOW, &Termios::from(fast)).map_err(refused)?;
    // A line without such a setting waits for nothing.
    let _ = std::fs::write(TRIGGER, "1");
    Ok(line)
}

fn send_message(line: &File, message: &impl Serialize) -> Result<()> {
    send(line, message).map_err(|e| Error::file(LINE, "writing", e))
}

/// The padding of the next side that is asked for; `None` if the line was closed. It is read byte by byte: what follows the
/// request belongs to the side. Bytes that the last side left unread are no such request, and are skipped.
fn next_start(line: &File) -> Result<Option<usize>> {
    let mut lines = Lines::new(LONGEST_REQUEST);
    loop {
        match lines.read_once(line.take(1)) {
            Ok(()) => {}
            Err(NoMessage::Closed) => return Ok(None),
            Err(why) => return Err(Error::file(LINE, "reading", io::Error::other(why))),
        }
        if let Ok(Some(Request::Start { padding })) = lines.take_message() {
            return Ok(Some(padding));
        }
    }
}

/// Runs a side with the line as its standard input and output, and returns how it ended.
fn run_side(line: &File, padding: usize) -> String {
    let run = || -> std::io::Result<_> {
        let [input, output] = [Stdio::from(line.try_clone()?), Stdio::from(line.try_clone()?)];
        let own = std::env::current_exe().unwrap_or_else(|_| Path::new("/init").into());
        let mut side = Command::new(own);
        side.env(VARIABLE, "x".repeat(1 + padding)).stdin(input).stdout(output).status()
    };
    let how = run().map_or_else(|error| format!("no process for it: {error}"), |status| status.to_string());
    // Processes that it left are ours now.
    while matches!(waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
    {
    }
    how
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_slowed_by_a_word_of_its_command_line() {
        assert_eq!(parse_slowdown("quiet pti=on").expect("read"), None);
        assert_eq!(parse_slowdown("quiet syscost.slowdown=250 pti=on").expect("read"), Some(250));
        let said = parse_slowdown("syscost.slowdown=much").expect_err("no number").to_string();
        assert!(said.contains("a number of additions"), "{said}");
    }

    #[test]
    fn a_request_ends_with_its_line_and_the_rest_is_left() {
        let mut file = tempfile::tempfile().expect("a file");
        let text =
            [&[b'x'; 2 * LONGEST_REQUEST][..], b"\n\"end\"\n{\"start\":{\"padding\":7}}\nrest"].concat();
        io::Write::write_all(&mut file, &text).expect("written");
        io::Seek::rewind(&mut file).expect("rewound");
        assert_eq!(next_start(&file).expect("read"), Some(7), "what is before it is skipped");
        let mut rest = String::new();
        file.read_to_string(&mut rest).expect("read");
        assert_eq!(rest, "rest");
        assert_eq!(next_start(&file).expect("read"), None, "the line was closed");
    }
}
