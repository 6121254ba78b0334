//! The full-screen terminal, which is taken over, and restored in every case, even after a panic.

use crate::live_view::Size;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};
use syscost_command_line::page;
use syscost_platform::error::{Error, Result};
use syscost_platform::{inert, signal};

/// Switches to the alternate screen and hides the cursor (control sequences of xterm).
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
const REST_OF_LINE: &str = "\u{1b}[K";
const REST_OF_SCREEN: &str = "\u{1b}[J";
/// The value that disables Control-Z, which would leave the terminal in this state to a shell.
const NO_KEY: u8 = 0;

/// The state to restore; `None` while the terminal is not taken over.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// The settings of the keyboard, if standard input is a terminal.
struct Before(Option<Termios>);

/// The reason why a wait has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The time has passed.
    Time,
    /// A key or a signal requests the end.
    Ended,
}

/// The terminal while it is taken over. Dropping this value restores it.
pub(super) struct Screen {
    hears: bool,
}

impl Screen {
    pub(super) fn enter() -> Result<Self> {
        let keys = std::io::stdin();
        let before = tcgetattr(&keys).ok();
        if let Some(before) = &before {
            let mut own = before.clone();
            // Keys are read at once and not echoed. Control-C still sends its signal.
            own.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
            own.control_chars[SpecialCharacterIndices::VSUSP as usize] = NO_KEY;
            own.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
            own.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
            tcsetattr(&keys, SetArg::TCSAFLUSH, &own)
                .map_err(|e| Error::from_errno("tcsetattr of the terminal", e))?;
        }
        let hears = before.is_some();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Before(before));
        HOOK.call_once(restore_on_panic);
        let screen = Self { hears };
        page::write_terminal_control(ENTER)?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> Size {
        let told = terminal_size::terminal_size();
        told.map_or(Size { columns: 80, rows: 24 }, |(width, height)| Size {
            columns: usize::from(width.0),
            rows: usize::from(height.0),
        })
    }

    /// Shows as many lines as fit. One write overwrites the screen, so that it does not flicker.
    pub(super) fn draw(&self, lines: &[String]) -> Result<()> {
        let Size { rows, .. } = self.size();
        let line = |line: &String| format!("{}{REST_OF_LINE}", inert::neutralize_output(line, true));
        let shown: Vec<_> = lines.iter().take(rows).map(line).collect();
        page::write_terminal_control(&format!("{HOME}{}{REST_OF_SCREEN}", shown.join("\r\n")))
    }

    /// Waits for this time, or until the key q or a signal.
    pub(super) fn wait(&self, patience: Duration) -> Waited {
        let end = Instant::now() + patience;
        loop {
            if signal::pending().is_some() || self.is_quit_pressed() {
                return Waited::Ended;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::Time;
            }
            // One millisecond more, since poll(2) rounds its timeout down.
            let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            let keys = std::io::stdin();
            let mut asked = [PollFd::new(keys.as_fd(), PollFlags::POLLIN)];
            let asked = if self.hears { &mut asked[..] } else { &mut [] };
            let _ = poll(asked, left);
        }
    }

    fn is_quit_pressed(&self) -> bool {
        let mut keys = [0; 64];
        let length = if self.hears { std::io::stdin().read(&mut keys).unwrap_or(0) } else { 0 };
        keys[..length].iter().any(|key| matches!(key, b'q' | b'Q'))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

fn restore_terminal() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Before(before)) = before {
        let _ = page::write_terminal_control(LEAVE);
        if let Some(before) = before {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSAFLUSH, &before);
        }
    }
}

/// Restores the terminal before the message of a panic, which would otherwise appear on the alternate screen.
fn restore_on_panic() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore_terminal();
        hook(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::pty::openpty;
    use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, write};
    use std::fs::File;
    use syscost_platform::child::Child;
    use syscost_platform::testing::print_skipped;

    const WORDS: &str = "something went wrong";

    /// Takes over this terminal, draws on it and panics.
    fn panics(terminal: &impl AsFd) {
        let own =
            dup2_stdin(terminal).and_then(|()| dup2_stdout(terminal)).and_then(|()| dup2_stderr(terminal));
        own.expect("three descriptors");
        // The test harness would capture the message of the panic.
        std::panic::set_hook(Box::new(|_| {
            let _ = write(std::io::stderr(), WORDS.as_bytes());
        }));
        let screen = Screen::enter().expect("a terminal");
        screen.draw(&["half of a picture".into()]).expect("drawn");
        panic!("in the middle of it");
    }

    #[test]
    fn a_panic_restores_the_terminal_before_its_message() {
        let terminal = match openpty(None, None) {
            Ok(terminal) => terminal,
            Err(errno) => return print_skipped(&format!("this machine lends no terminal: {errno}")),
        };
        let settings = || tcgetattr(&terminal.slave).expect("a terminal");
        let before = settings();
        let child = Child::start(|| panics(&terminal.slave)).expect("forked");
        let ended = child.wait_for_success(Duration::from_secs(20));
        let ended = ended.expect_err("it panicked").to_string();
        assert!(ended.contains("it panicked"), "{ended}");
        assert_eq!(settings(), before);
        // With the slave closed, reading the master ends with EIO.
        drop(terminal.slave);
        let mut said = Vec::new();
        let _ = File::from(terminal.master).read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let at = |words: &str| said.find(words).unwrap_or_else(|| panic!("no {words:?} in {said:?}"));
        assert!(at(ENTER) < at("half of a picture") && at("half of a picture") < at(LEAVE), "{said:?}");
        assert!(at(LEAVE) < at(WORDS), "{said:?}");
    }
}
