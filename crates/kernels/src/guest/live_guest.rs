//! A guest that is measured by turns with another guest: it is started on one CPU and awaited, runs one side after the other, and
//! is killed. A comparison boots pairs of such guests, both kernels afresh each time.

use super::boot::Machine;
use super::console::{MARK, Message, inert_identity, version_mismatch};
use super::console::{explain_last_words, last_lines};
use super::emulator;
use super::emulator::X86_64;
use super::kernel::Kernel;
use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use syscost_analysis::pair::by_boot::{BootedSides, Boots};
use syscost_analysis::pair::{Connection, Draw, Side, SideProcess, Start, Taken};
use syscost_analysis::record::paired::{Paired, PairedGuests};
use syscost_engine::json_line::NoMessage;
use syscost_engine::pair::{Request, Response};
use syscost_engine::record::guest_side::{ClockKind, GuestSide, Identity};
use syscost_platform::cpu::{self, Aside};
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::{proc, process};

/// The longest wait for a side in a guest to end after the request to end.
const GRACE: Duration = Duration::from_secs(5);

/// How guests are started that are measured by turns.
#[derive(Clone, Debug)]
pub struct LiveMachine {
    /// The clock of their times: that of KVM, of the emulator or of user-mode Linux.
    pub clock: ClockKind,
    /// How they are booted. A guest that has not stated its identity within `patience` is killed.
    pub machine: Machine,
    /// The CPU of this machine on which they run.
    pub cpu: usize,
}

/// The process of a guest. Dropping it kills its process group.
struct Process(RefCell<Child>);

/// A running guest, and the connection to its serial line, by which it runs one side after the other.
struct Shared {
    process: Process,
    connection: Rc<RefCell<Connection>>,
    clock: ClockKind,
    cpu: usize,
    /// Whether the guest has ended or no longer responds.
    is_lost: Cell<bool>,
}

/// A guest as the side of a comparison.
pub struct LiveGuest {
    label: &'static str,
    shared: Rc<Shared>,
}

impl LiveGuest {
    /// Starts a guest and does not wait for it. `label` names its side in messages.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(machine: &LiveMachine, kernel: &Kernel, label: &'static str) -> Result<Self> {
        let lost = |cause| Error::Kernel { call: "socketpair for a guest's serial line".into(), cause };
        let (ours, theirs) = UnixStream::pair().map_err(lost)?;
        let [theirs, also_theirs] = duplicate_stream(theirs).map_err(lost)?;
        let mut command = match machine.clock {
            ClockKind::Uml => user_mode_command(machine, kernel, theirs),
            _ => emulator_command(machine, kernel, theirs, also_theirs),
        };
        command.stderr(Stdio::piped()).process_group(0);
        process::die_with_starter(&mut command);
        let mut child =
            cpu::run_on_cpu(machine.cpu, || command.spawn())?.map_err(|e| match machine.clock {
                ClockKind::Uml => Error::file(&kernel.image, "starting", e),
                _ => emulator::start_error(&X86_64, &e),
            })?;
        let console = child.stderr.take();
        let process = Process(RefCell::new(child));
        let [requests, responses] = duplicate_stream(ours).map_err(lost)?;
        let console =
            console.ok_or_else(|| Error::Disproved("a guest was started without its console".into()))?;
        let connection = Rc::new(RefCell::new(Connection::new(requests, responses, console.into())?));
        let (clock, cpu) = (machine.clock, machine.cpu);
        let shared = Shared { process, connection, clock, cpu, is_lost: Cell::new(false) };
        Ok(Self { label, shared: Rc::new(shared) })
    }

    /// Waits until the guest has stated its identity. The inner error says why the guest stated none.
    ///
    /// # Errors
    /// A signal came.
    pub fn await_identity(
        &self,
        kernel: &Kernel,
        patience: Duration,
    ) -> Result<std::result::Result<Identity, String>> {
        let received = self.shared.connection.borrow_mut().receive(patience);
        let how = match received {
            Ok(Message::Hello(identity)) => {
                let identity = inert_identity(&identity);
                return Ok(version_mismatch(&identity).map_or(Ok(identity), Err));
            }
            Ok(other) => NoMessage::unexpected(&other).to_string(),
            Err(NoMessage::Woken) => {
                return Err(Error::Disturbed("interrupted while a guest booted".into()));
            }
            Err(NoMessage::Late) => format!("it was killed after {} s", patience.as_secs()),
            Err(NoMessage::Closed | NoMessage::Broken(_)) => String::new(),
            Err(why) => why.to_string(),
        };
        Ok(Err(self.failure_sentence(kernel, how)))
    }

    fn failure_sentence(&self, kernel: &Kernel, how: String) -> String {
        let text =
            String::from_utf8_lossy(self.shared.connection.borrow_mut().last_error_bytes()).into_owned();
        let words = last_lines(&text, MARK);
        let how = if how.is_empty() { explain_last_words(&words) } else { how };
        let quoted =
            if words.is_empty() { String::new() } else { format!("; its last lines: {}", words.join(" | ")) };
        format!("the guest of {} did not begin: {how}{quoted}", kernel.name)
    }
}

impl Start for LiveGuest {
    fn start_side(&self, draw: Draw, _aside: &Aside) -> Result<Side> {
        let connection = Rc::clone(&self.shared.connection);
        if !connection.borrow_mut().send_request(&Request::Start { padding: draw.padding }) {
            self.shared.is_lost.set(true);
            return Err(Error::Disturbed(format!("the guest of side {} has ended", self.label)));
        }
        Ok(Side::new(self.label, connection, Box::new(InGuest(Rc::clone(&self.shared)))))
    }

    fn can_start_another(&self) -> bool {
        !self.shared.is_lost.get()
    }
}

/// The process of a side in a guest.
struct InGuest(Rc<Shared>);

impl SideProcess for InGuest {
    fn exit_description(&mut self) -> String {
        self.0.is_lost.set(true);
        match self.0.process.0.borrow_mut().try_wait() {
            Ok(Some(status)) => format!("its guest ended: {status}"),
            _ => "its guest closed the line".into(),
        }
    }

    fn taken_time(&self) -> Option<Taken> {
        let Shared { process, clock, cpu, .. } = &*self.0;
        let stolen_ticks = proc::stolen_ticks(&KernelFiles::live().read_text("proc/stat")?, *cpu)?;
        let waited_ns = match clock {
            // The guest's kernel and processes are processes of this machine, which wait for each other, not for other guests.
            ClockKind::Uml => 0,
            _ => processor_schedstat(process.0.borrow().id())?.waited_ns,
        };
        Some(Taken { waited_ns, stolen_ticks })
    }

    /// Requests the side to end, and waits until the guest reports its end. Without a report in [`GRACE`] the guest is lost.
    fn end_process(&mut self, connection: &mut Connection, is_gone: bool) {
        if is_gone || self.0.is_lost.get() {
            return;
        }
        let until = Instant::now() + GRACE;
        let mut goes_on = connection.send_request(&Request::End);
        while goes_on {
            match connection.receive(until.saturating_duration_since(Instant::now())) {
                Ok(Response::Gone { .. }) => return,
                Ok(_) | Err(NoMessage::Invalid(_)) => {}
                Err(_) => goes_on = false,
            }
        }
        self.0.is_lost.set(true);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        emulator::kill_guest(self.0.get_mut());
    }
}

/// The scheduler's statistics of the thread that runs the guest's processor. QEMU names this thread `CPU 0/…`, as its arguments ask.
fn processor_schedstat(pid: u32) -> Option<proc::Schedstat> {
    let files = KernelFiles::live();
    let tasks = files.entry_names(&format!("proc/{pid}/task"));
    let mut tasks = tasks.iter().map(|task| format!("proc/{pid}/task/{task}"));
    let is_processor = |task: &String| {
        files.read_first_line(&format!("{task}/comm")).is_some_and(|name| name.starts_with("CPU 0/"))
    };
    proc::parse_schedstat(&files.read_text(&format!("{}/schedstat", tasks.find(is_processor)?))?)
}

fn duplicate_stream(stream: UnixStream) -> std::io::Result<[OwnedFd; 2]> {
    Ok([stream.try_clone()?.into(), stream.into()])
}

/// The command line of a kernel whose guest is measured by turns. Addresses vary from boot to boot, as on any machine. Polling in
/// the idle loop is off, since an idle guest must not use the CPU in the other's turn.
fn kernel_arguments(kernel: &Kernel, console: &str) -> Vec<String> {
    let own = format!("console={console} panic=-1 reboot=t quiet haltpoll.guest_halt_poll_ns=0");
    let own = own.split_whitespace().map(str::to_owned);
    let added = kernel.command_line.split_whitespace().map(str::to_owned);
    own.chain(added).chain(["rdinit=/init", "--", "guest-init", "--turns"].map(str::to_owned)).collect()
}

/// The command that starts QEMU. The sides use the second serial line, which is QEMU's standard input and output; the console is
/// its standard error.
fn emulator_command(machine: &LiveMachine, kernel: &Kernel, input: OwnedFd, output: OwnedFd) -> Command {
    let (accelerator, model) = match machine.clock {
        ClockKind::Kvm => ("kvm", "host"),
        _ => ("tcg,thread=single", machine.machine.model.as_deref().unwrap_or(X86_64.processor)),
    };
    let mut command = Command::new(X86_64.emulator);
    command.args(["-accel", accelerator, "-cpu", model, "-smp", "1"]);
    command.args([
        "-m",
        &machine.machine.memory_mib.to_string(),
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
    ]);
    command.args(["-display", "none", "-name", "syscost,debug-threads=on"]);
    command.args(["-chardev", "file,id=console,path=/dev/fd/2", "-serial", "chardev:console"]);
    command.args(["-chardev", "stdio,id=turns,signal=off", "-serial", "chardev:turns"]);
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(&machine.machine.initramfs);
    command.args(["-append", &kernel_arguments(kernel, "ttyS0").join(" ")]);
    command.stdin(input).stdout(output);
    command
}

/// The command that starts user-mode Linux, whose kernel is the program, with the same line and console.
fn user_mode_command(machine: &LiveMachine, kernel: &Kernel, line: OwnedFd) -> Command {
    let mut command = Command::new(&kernel.image);
    command.arg(format!("mem={}M", machine.machine.memory_mib));
    command.arg(format!("initrd={}", machine.machine.initramfs.display()));
    command.arg(format!("uml_dir={}/", machine.machine.scratch.display()));
    // Without `root=` user-mode Linux appends one at the end, among the words of the first process.
    command.args(["con0=null,fd:2", "con=null", "ssl=null", "ssl1=fd:0,fd:0", "root=98:0"]);
    command.args(kernel_arguments(kernel, "tty0"));
    command.stdin(line).stdout(Stdio::null());
    command
}

/// The most faults of boots that are kept for a kernel.
const FAULTS: usize = 8;
/// The names of the sides in messages.
const LABELS: [&str; 2] = ["A", "B"];

/// Two kernels that are booted together, again and again.
pub struct BootPairs<'a> {
    kernels: &'a [Kernel; 2],
    machine: &'a LiveMachine,
    guests: PairedGuests,
}

impl<'a> BootPairs<'a> {
    /// Prepares the pairs, and boots nothing. `ran_by` describes the emulator and its processor; `differences` are those between
    /// the configurations.
    pub fn new(
        kernels: &'a [Kernel; 2],
        machine: &'a LiveMachine,
        ran_by: String,
        differences: Vec<String>,
    ) -> Self {
        let side = |kernel: &Kernel| GuestSide { name: kernel.name.clone(), ..GuestSide::default() };
        let sides = kernels.each_ref().map(side);
        Self {
            kernels,
            machine,
            guests: PairedGuests { clock: machine.clock, machine: ran_by, sides, differences },
        }
    }

    /// Waits until a guest is ready, and notes its identity or its fault; the inner error is the fault.
    fn await_guest(&mut self, side: usize, guest: &LiveGuest) -> Result<std::result::Result<(), String>> {
        let said = guest.await_identity(&self.kernels[side], self.machine.machine.patience)?;
        let guest_side = &mut self.guests.sides[side];
        guest_side.boots += 1;
        Ok(said.map(|identity| guest_side.identity = Some(identity)).inspect_err(|why| {
            if guest_side.faults.len() < FAULTS {
                guest_side.faults.push(why.clone());
            }
        }))
    }
}

impl Boots for BootPairs<'_> {
    fn next(&mut self, first: usize) -> Result<std::result::Result<BootedSides, String>> {
        let start = |side: usize| LiveGuest::start(self.machine, &self.kernels[side], LABELS[side]);
        let one = start(first)?;
        let other = start(1 - first)?;
        for (side, guest) in [(first, &one), (1 - first, &other)] {
            if let Err(why) = self.await_guest(side, guest)? {
                return Ok(Err(why));
            }
        }
        let [one, other] = [Box::new(one), Box::new(other)];
        Ok(Ok(if first == 0 { [one, other] } else { [other, one] }))
    }

    fn has_frequency(&self) -> bool {
        self.machine.clock != ClockKind::Tcg
    }

    fn describe_sides(&self, paired: &mut Paired) {
        paired.guests = Some(self.guests.clone());
    }
}
