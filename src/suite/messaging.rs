//! # What is timed
//! Groups of tasks that send messages to each other. A chat or a server with many clients does the same. A group has ten
//! senders and ten receivers; in a round every sender writes a message of 100 bytes to every receiver of its group. The
//! tasks may run on every CPU that the process may use, so the scheduler decides. An iteration is one round of all
//! groups.
//!
//! # What is not
//! The start of the tasks and of their pipes or sockets.
//!
//! # How we know
//! The receivers count the messages, and their sum must be what was sent. A call that fails ends the case.
//!
//! # What fools it
//! The measuring thread sleeps on its own CPU meanwhile, so that CPU is one of those that the tasks share. Whether the
//! scheduler gathers a group on one CPU or spreads it changes the result severalfold, and each process keeps its pattern: compare
//! over many processes. In a long batch the senders run ahead until the pipes are full.
//!
//! # Reading the number
//! The figure is the time of a round; `elements` a second are messages. A message costs two system calls and a share of a
//! wake-up and a switch.
//!
//! # Source
//! hackbench (R. Russell, 2000), which is `perf bench sched messaging`.

use crate::kit::contract::*;
use crate::kit::placement::roaming;
use crate::platform::futex::{Reach, wait, wake_all};
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::shared::Words;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{pipe, read, write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

pub const GROUP: Group = Group::new("messaging", include_str!("messaging.rs"), cases);

/// The number of senders in a group, and also of receivers.
const SIDE: usize = 10;
/// Bytes of a message.
const MESSAGE: usize = 100;
/// Time after which a round counts as hung, ms.
const PATIENCE: u16 = 10_000;

/// Indices into the shared page.
mod word {
    /// The number of the batch. The tasks sleep on this word.
    pub(super) const BATCH: usize = 0;
    pub(super) const ROUNDS: usize = 1;
    /// Tasks that have finished.
    pub(super) const DONE: usize = 2;
    /// Messages that were received.
    pub(super) const RECEIVED: usize = 3;
    /// The error number of a call that failed.
    pub(super) const REFUSED: usize = 4;
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (channel, make) in [("pipe", make_pipe as Make), ("unix-stream", make_stream as Make)] {
        for (kind, kinds) in [(Kind::Process, "processes"), (Kind::Thread, "threads")] {
            for groups in [1, 4] {
                let case = messaging_case(channel, make, kind, kinds, groups);
                let is_default = groups == 1 && channel == "pipe";
                cases.push(if is_default { case } else { case.need(FULL_SCALE) });
            }
        }
    }
    cases
}

fn messaging_case(channel: &str, make: Make, kind: Kind, kinds: &str, groups: usize) -> Case {
    let messages = (groups * SIDE * SIDE) as u64;
    let count = messages as f64;
    let title = format!("a round of {messages} messages among {} {kinds} by {channel}", groups * 2 * SIDE);
    let set_up = crate::case::set_up(move |place| Messaging::start(place, kind, make, groups));
    Case::new(format!("{channel}-{kinds}/groups-{groups}"), title, set_up)
        .elements(messages)
        .own_tasks(OwnTasks::Elsewhere)
        .claim(Claim::Checked("every message that was sent is received"))
        .predict(count * 400.0, count * 5_000.0, "two calls a message, and a wake-up of some")
}

/// Makes a channel. Returns the end to read from and the end to write to.
type Make = fn() -> Result<[OwnedFd; 2]>;

fn make_pipe() -> Result<[OwnedFd; 2]> {
    pipe().map(|(near, far)| [near, far]).map_err(|e| Error::from_errno("pipe", e))
}

fn make_stream() -> Result<[OwnedFd; 2]> {
    let (near, far) = UnixStream::pair().map_err(|e| Error::file("socketpair", "making", e))?;
    Ok([near.into(), far.into()])
}

/// The tasks, and the pipe by which the last of them says that a batch has ended.
struct Messaging {
    tasks: Vec<Partner>,
    page: Arc<Words>,
    ended: OwnedFd,
    groups: usize,
}

impl Messaging {
    fn start(place: &Place, kind: Kind, make: Make, groups: usize) -> Result<Self> {
        let page = Arc::new(Words::new()?);
        let [ended, end] = make_pipe()?;
        let end = Arc::new(end);
        let cpus: Vec<usize> = place.cpus.here.into_iter().chain(place.cpus.others.iter().copied()).collect();
        let mut next_cpu = cpus.iter().copied().cycle();
        let mut tasks = Vec::new();
        let all = (groups * 2 * SIDE) as u32;
        let mut start = |work: Box<dyn FnMut(u32) -> nix::Result<()> + Send>| -> Result<()> {
            let cpu = next_cpu.next().unwrap_or(0);
            let member = Member { page: Arc::clone(&page), end: Arc::clone(&end), all, seen: 0, work };
            tasks.push(member.start(kind, cpu)?);
            Ok(())
        };
        for _ in 0..groups {
            let channels = (0..SIDE).map(|_| make()).collect::<Result<Vec<_>>>()?;
            let (near, far): (Vec<_>, Vec<_>) = channels.into_iter().map(|[near, far]| (near, far)).unzip();
            let far = Arc::new(far);
            for near in near {
                start(receive(near, Arc::clone(&page)))?;
            }
            for _ in 0..SIDE {
                start(send(Arc::clone(&far)))?;
            }
        }
        Ok(Self { tasks, page, ended, groups })
    }

    /// Sleeps until the last task has finished.
    fn wait_until_ended(&mut self) -> Result<()> {
        let mut asked = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
        let answer = loop {
            match poll(&mut asked, PollTimeout::from(PATIENCE)) {
                Err(nix::errno::Errno::EINTR) => {}
                answer => break answer,
            }
        };
        let count = self.page[word::DONE].value.load(SeqCst);
        if let Some(fate) = self.tasks.iter_mut().find_map(Partner::fate) {
            return Err(fate.into_error(""));
        }
        match answer {
            Ok(0) => {
                Err(Error::Disturbed(format!("only {count} of {} tasks finished in 10 s", self.tasks.len())))
            }
            Ok(_) => read(&self.ended, &mut [0]).map(drop).map_err(|e| Error::from_errno("read", e)),
            Err(error) => Err(Error::from_errno("poll", error)),
        }
    }
}

/// The tasks move between CPUs on purpose, so they are not reported as partners, which must stay on their CPUs.
impl Subject for Messaging {
    fn run(&mut self, rounds: u64, clock: &Clock) -> Result<Ticks> {
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        for (at, value) in [(word::ROUNDS, rounds), (word::DONE, 0), (word::RECEIVED, 0)] {
            self.page[at].value.store(value, SeqCst);
        }
        let mut ended = Ok(());
        let ticks = clock.time(|| {
            self.page[word::BATCH].value.fetch_add(1, SeqCst);
            wake_all(&self.page[word::BATCH].value, Reach::Shared);
            ended = self.wait_until_ended();
        });
        ended?;
        let refused = self.page[word::REFUSED].value.load(SeqCst);
        if refused != 0 {
            let errno = nix::errno::Errno::from_raw(refused as i32);
            return Err(Error::from_errno("a message of a task", errno));
        }
        let received = self.page[word::RECEIVED].value.load(SeqCst);
        let sent = rounds.wrapping_mul((self.groups * SIDE * SIDE) as u32);
        if received != sent {
            return Err(Error::Disproved(format!(
                "{sent} messages were due in {rounds} rounds, and {received} were received"
            )));
        }
        Ok(ticks)
    }
}

/// What a task needs besides its partner.
struct Member {
    page: Arc<Words>,
    end: Arc<OwnedFd>,
    /// The number of tasks in all groups.
    all: u32,
    /// The number of the last batch that this task has done.
    seen: u32,
    work: Box<dyn FnMut(u32) -> nix::Result<()> + Send>,
}

impl Member {
    fn start(mut self, kind: Kind, cpu: usize) -> Result<Partner> {
        let nudged = Arc::clone(&self.page);
        let nudge = move || {
            nudged[word::ROUNDS].value.store(0, SeqCst);
            nudged[word::BATCH].value.fetch_add(1, SeqCst);
            wake_all(&nudged[word::BATCH].value, Reach::Shared);
        };
        Partner::start(kind, (cpu, Class::Ordinary), roaming(move || self.step()), nudge)
    }

    /// Sleeps until the number of the batch changes, and works in a new batch. Returns 0.
    fn step(&mut self) -> i64 {
        wait(&self.page[word::BATCH].value, self.seen, Reach::Shared);
        let batch = self.page[word::BATCH].value.load(SeqCst);
        if batch != self.seen {
            self.seen = batch;
            self.work_in_batch();
        }
        0
    }

    fn work_in_batch(&mut self) {
        if let Err(errno) = (self.work)(self.page[word::ROUNDS].value.load(SeqCst)) {
            self.page[word::REFUSED].value.store(errno as u32, SeqCst);
        }
        if self.page[word::DONE].value.fetch_add(1, SeqCst) + 1 == self.all {
            // If this write fails, the measuring thread reports that the tasks did not finish.
            let _ = write(&*self.end, &[1]);
        }
    }
}

/// The work of a receiver: it reads the messages of all senders of its group.
fn receive(near: OwnedFd, page: Arc<Words>) -> Box<dyn FnMut(u32) -> nix::Result<()> + Send> {
    let mut message = [0; MESSAGE];
    Box::new(move |rounds| {
        for _ in 0..u64::from(rounds) * SIDE as u64 {
            ensure(read(&near, &mut message)? == MESSAGE, || nix::errno::Errno::EIO)?;
        }
        page[word::RECEIVED].value.fetch_add(rounds * SIDE as u32, SeqCst);
        Ok(())
    })
}

/// The work of a sender: in each round it writes a message to every receiver of its group.
fn send(far: Arc<Vec<OwnedFd>>) -> Box<dyn FnMut(u32) -> nix::Result<()> + Send> {
    Box::new(move |rounds| {
        for _ in 0..rounds {
            for end in &*far {
                ensure(write(end, &[1; MESSAGE])? == MESSAGE, || nix::errno::Errno::EIO)?;
            }
        }
        Ok(())
    })
}
