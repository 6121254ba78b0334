//! `syscost guest-init`: the first process of a guest. It mounts the file systems that cases need, and sends the identity of its
//! kernel to the host. It counts each case in a process of its own, writes the answers to the console and ends the guest.

use super::console::{Answer, Message, Question, Questions, VERSION, message_line};
use crate::executed::execution_log::{case_line, symbol_line};
use crate::instruction_counts::{Count, CountOutcome};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use syscost::suite::GROUPS;
use syscost_command_line::page;
use syscost_engine::case::{Case, Cpus, Place, Scale};
use syscost_engine::clock::{Clock, ClockScale};
use syscost_engine::json_line::{Lines, NoMessage, send};
use syscost_engine::pair::side::find_case;
use syscost_engine::pair::{LONGEST_REQUEST, Request, Response, VARIABLE};
use syscost_engine::record::guest_side::Identity;
use syscost_engine::trial::{Bench, CaseEnd, Trial, scratch};
use syscost_platform::emulator_mark::{self, Mark};
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::{KernelFiles, field};
use syscost_platform::seccomp::install_filter;
use syscost_platform::time::clock_source;
use syscost_platform::{arch, cpu, interface, plain_file, process};

/// The largest file of questions, bytes.
const LARGEST: u64 = 16 << 20;
/// Where the questions lie in the initramfs.
const QUESTIONS: &str = "/questions";
/// The file systems that are mounted: type and place.
const MOUNTS: [(&str, &str); 5] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("mqueue", "/dev/mqueue"),
];
/// The wait before the first case: a kernel's start-up work goes on for some seconds after the first process has begun. Under
/// the instruction clock, the time of an idle guest costs nothing.
const SETTLE: Duration = Duration::from_secs(5);
/// Batches of each size. The median is taken, since a timer interrupt falls into a few of them.
const BATCHES: usize = 9;

/// Answers all questions, or with `turns` serves sides on the serial line, and ends the guest. Returns only if it cannot end the guest.
///
/// # Errors
/// This is not the first process of a system, the questions cannot be read, or the console cannot be written to.
pub fn serve_as_init(program: &str, turns: bool) -> Result<()> {
    if std::process::id() != 1 {
        return Err(Error::Usage(format!(
            "`{program}` is the first process of a guest: `syscost kernels ab` boots one; with --case it counts one case"
        )));
    }
    mount_all();
    let _ = interface::bring_up("lo");
    let served = if turns { serve_turns() } else { answer_questions(program) };
    // The guest ends even if the error cannot be written.
    if let Err(error) = &served {
        let _ = writeln!(std::io::stderr(), "{error}");
    }
    let _ = std::io::stdout().flush();
    let refused = |e| Error::from_errno("reboot of the guest", e);
    reboot(RebootMode::RB_AUTOBOOT).map_err(refused)?;
    served
}

/// Counts the cases in the initramfs's questions, and writes each answer to the console.
fn answer_questions(program: &str) -> Result<()> {
    std::thread::sleep(SETTLE);
    write_message(&Message::Hello(Box::new(identity())))?;
    let questions = read_questions()?;
    emulator_mark::execute(Mark::StartCounting);
    for question in questions.cases {
        emulator_mark::say_line(&case_line(&question.id));
        let outcome = count_in_process(program, &question);
        write_message(&Message::Answer(Answer { id: question.id, outcome }))?;
    }
    // This follows the cases, since the kernel allocates memory for the symbols, which would change the counts.
    if questions.wants_symbols {
        say_symbols();
    }
    write_message(&Message::End)
}

/// Mounts the file systems in [`MOUNTS`]. A mount that fails is passed over: a case that needs it reports that.
fn mount_all() {
    const NOTHING: Option<&str> = None;
    for (kind, place) in MOUNTS {
        let _ = std::fs::create_dir_all(place);
        let _ = mount(Some(kind), place, Some(kind), MsFlags::empty(), NOTHING);
    }
}

fn read_questions() -> Result<Questions> {
    let bytes = plain_file::read(Path::new(QUESTIONS), LARGEST)?;
    let remedy = "let `syscost kernels ab` write the initramfs";
    serde_json::from_slice(&bytes).map_err(|e| {
        let line = format!("line {}", e.line());
        Error::invalid_content(QUESTIONS, line, "questions to a guest", e.to_string(), remedy)
    })
}

fn write_message(message: &Message) -> Result<()> {
    let failed = |e: std::io::Error| Error::file("the console", "writing", e);
    let line = message_line(message).map_err(|e| failed(e.into()))?;
    let mut console = std::io::stdout().lock();
    console.write_all(line.as_bytes()).and_then(|()| console.flush()).map_err(failed)
}

/// Counts a case in a process of its own, so that this one survives if the case dies.
fn count_in_process(program: &str, question: &Question) -> CountOutcome {
    let own = std::env::current_exe().unwrap_or_else(|_| "/init".into());
    let iterations = question.iterations.to_string();
    let mut command = Command::new(own);
    let output = command.args([program, "--case", &question.id, "--iterations", &iterations]).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return CountOutcome::Failed(format!("no process for it: {error}")),
    };
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        CountOutcome::Failed(format!("its process ended with {}: {}", output.status, said.trim()))
    })
}

/// Counts one case in this process, for `--case`.
pub fn count_case_by_id(id: &str, iterations: u64) -> CountOutcome {
    let Some((_, case)) = find_case(GROUPS, id) else {
        return CountOutcome::Skipped(format!("the program in the guest has no case {id}"));
    };
    match count_case(&case, iterations) {
        Ok(count) => CountOutcome::Counted(count),
        Err(CaseEnd::Skipped(why)) => CountOutcome::Skipped(why),
        Err(end) => CountOutcome::Failed(end.into_sentence()),
    }
}

/// The scale of the cycle counter under the instruction clock, by which a nanosecond is one instruction. On x86-64 the counter
/// counts nanoseconds. Other processors state its frequency: a tick is 16 or 100 instructions, so the plugin's exact counts replace it.
fn instruction_scale() -> ClockScale {
    let stated = arch::frequency().filter(|_| cfg!(not(target_arch = "x86_64")));
    ClockScale { counter: true, hz: stated.map_or(1e9, |(hz, _)| hz), step: 1, uncertainty_ppm: 0.0 }
}

/// The count of a case: the median of [`BATCHES`] batches of `iterations`, and of as many batches of twice the iterations.
fn count_case(case: &Case, iterations: u64) -> std::result::Result<Count, CaseEnd> {
    let allowed = cpu::allowed_cpus();
    let here = allowed.iter().copied().max().unwrap_or(0);
    cpu::pin_thread(here)?;
    let clock = Clock::with_marked_brackets(instruction_scale());
    let scratch = scratch::make_directory_in(Path::new("/tmp"))?;
    let cpus = Cpus::from_allowed(Some(here), allowed);
    // Under the instruction clock, cases of full scale take no longer than the others, so all can be counted.
    let place = Place { scratch: scratch.path().to_path_buf(), scale: Scale::Full, cpus };
    let bench = Bench { place: &place, clock: &clock, pinned: Some(here), lent: None, other_copies: None };
    let mut trial = Trial::prepare(case, bench, None)?;
    let mut batch = |iterations| Ok::<_, CaseEnd>(median(trial.run_turn(iterations, BATCHES)?.ticks));
    let batches = [batch(iterations)?, batch(2 * iterations)?];
    let count = Count { iterations, batches, repetitions: [0; 2] };
    if batches[1] > batches[0] || clock.step_ns() > 1.0 {
        Ok(count)
    } else {
        Err(CaseEnd::Failed(count.unsound_reason()))
    }
}

fn median(mut ticks: Vec<u64>) -> u64 {
    ticks.sort_unstable();
    ticks.get(ticks.len() / 2).copied().unwrap_or(0)
}

/// The name of this command.
const NAME: &str = "guest-init";

/// Be the first process of a guest: answer the questions in its initramfs, and end it
#[derive(clap::Args)]
pub struct Args {
    /// Count one case here, under an instruction clock, and print the outcome as JSON
    #[arg(long, value_name = "ID")]
    case: Option<String>,
    /// Iterations of the smaller batch
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    iterations: u64,
    /// Serve sides on the second serial line, in the place of questions
    #[arg(long, conflicts_with = "case")]
    turns: bool,
}

/// Runs the command.
///
/// # Errors
/// What the command asks for cannot be done.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.case {
        Some(id) => page::write_json(&count_case_by_id(id, args.iterations))?,
        None => serve_as_init(NAME, args.turns)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The identity of this kernel.
pub fn identity() -> Identity {
    let files = KernelFiles::live();
    let line = |file: &str| files.read_first_line(file).unwrap_or_default();
    let mitigations = files.first_lines_in("sys/devices/system/cpu/vulnerabilities");
    let mut mitigations: Vec<_> = mitigations.collect();
    mitigations.sort();
    Identity {
        version: VERSION,
        release: line("proc/sys/kernel/osrelease"),
        build: line("proc/sys/kernel/version"),
        command_line: line("proc/cmdline"),
        clocksource: clock_source(&files).unwrap_or_default(),
        page_size: process::page_size(),
        mitigations,
        processor_flags: processor_flags(&files),
        tool: env!("CARGO_PKG_VERSION").into(),
    }
}

/// The features and bugs of the processor in `/proc/cpuinfo`, sorted: the kernel chooses between alternatives of its code by them.
fn processor_flags(files: &KernelFiles) -> Vec<String> {
    let text = files.read_text("proc/cpuinfo").unwrap_or_default();
    let lists = ["flags", "bugs", "Features", "isa"].into_iter().filter_map(|key| field(&text, key));
    let mut flags: Vec<_> = lists.flat_map(str::split_whitespace).map(str::to_owned).collect();
    flags.sort();
    flags
}

/// Passes the addresses of all functions of this kernel to the emulator's plugin.
pub fn say_symbols() {
    let Ok(file) = std::fs::File::open("/proc/kallsyms") else { return };
    let lines = BufReader::new(file).lines().map_while(std::io::Result::ok);
    lines.filter_map(|line| symbol_line(&line)).for_each(|line| emulator_mark::say_line(&line));
}

// The first process of a guest that is measured by turns: it gives the second serial line to one side after the other, each a
// process of its own, and reports the end of each.

/// The serial line by which the host and the sides exchange requests and responses.
const LINE: &str = "/dev/ttyS1";
/// The number of received bytes after which that line interrupts the processor: by default it waits for more, for milliseconds.
const TRIGGER: &str = "/sys/class/tty/ttyS1/rx_trig_bytes";
/// The word of a kernel's command line that slows the system calls of the sides.
const SLOWDOWN: &str = "syscost.slowdown=";
/// The wait until a kernel has ended its start-up work.
const SETTLE_OF_TURNS: Duration = Duration::from_secs(1);

/// Runs one side for each start request, until the line is closed.
///
/// # Errors
/// There is no such line, it cannot be read or written, or the requested slowdown is no number or cannot be installed.
pub fn serve_turns() -> Result<()> {
    let line = open_line()?;
    std::thread::sleep(SETTLE_OF_TURNS);
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

/// The number of additions that slow every system call of the sides, if the command line has it. It makes a kernel slower by a
/// known amount, as a test of the method.
fn parse_slowdown(command_line: &str) -> Result<Option<usize>> {
    let Some(number) = command_line.split_whitespace().find_map(|word| word.strip_prefix(SLOWDOWN)) else {
        return Ok(None);
    };
    let wrong = |_| Error::Usage(format!("{SLOWDOWN}{number}: expected a number of additions, such as 100"));
    number.parse().map(Some).map_err(wrong)
}

/// Opens the line in raw mode, in which every byte is passed on unchanged.
fn open_line() -> Result<File> {
    let opened = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(LINE);
    let line = opened.map_err(|e| Error::file(LINE, "opening", e))?;
    let refused = |e| Error::from_errno("setting the serial line", e);
    let mut settings = tcgetattr(&line).map_err(refused)?;
    cfmakeraw(&mut settings);
    // The highest speed that every such line has. It is set by hand, since a static C library lacks glibc's function for it.
    let mut fast = libc::termios::from(settings);
    fast.c_cflag = (fast.c_cflag & !libc::CBAUD) | libc::B115200;
    tcsetattr(&line, SetArg::TCSANOW, &Termios::from(fast)).map_err(refused)?;
    // A line without this setting does not wait for more bytes.
    let _ = std::fs::write(TRIGGER, "1");
    Ok(line)
}

fn send_message(line: &File, message: &impl Serialize) -> Result<()> {
    send(line, message).map_err(|e| Error::file(LINE, "writing", e))
}

/// Waits for the next start request and returns its padding, bytes; `None` if the line was closed. The line is read byte by byte,
/// since the bytes behind the request belong to the side. Bytes that the last side left unread are no such request, and are skipped.
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
    // Processes that the side left are now children of this one.
    while matches!(waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
    {
    }
    how
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_case_is_skipped() {
        assert!(matches!(count_case_by_id("no/such/case", 1), CountOutcome::Skipped(_)));
    }

    #[test]
    fn a_batch_with_an_interrupt_does_not_change_the_median() {
        assert_eq!(median(vec![5, 900, 5, 5, 6]), 5);
        assert_eq!(median(Vec::new()), 0);
    }

    #[test]
    fn only_the_first_process_can_serve_as_init() {
        let refused = serve_as_init("guest-init", false).expect_err("this is no guest").to_string();
        assert!(refused.contains("kernels ab"), "{refused}");
    }

    #[test]
    fn the_slowdown_is_read_from_the_command_line() {
        assert_eq!(parse_slowdown("quiet pti=on").expect("read"), None);
        assert_eq!(parse_slowdown("quiet syscost.slowdown=250 pti=on").expect("read"), Some(250));
        let said = parse_slowdown("syscost.slowdown=much").expect_err("no number").to_string();
        assert!(said.contains("a number of additions"), "{said}");
    }

    #[test]
    fn the_bytes_behind_a_request_are_left_unread() {
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
