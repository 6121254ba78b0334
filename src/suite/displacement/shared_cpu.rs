//! The measuring process and five other senders on its CPU, which together leave it no idle moment.
//!
//! In a displacement run a sender preempts the fluid the moment a reply arrives. The senders here must preempt
//! each other in the same way. So four of them have the fluid's nice value, and one is as far below the measuring
//! process as the fluid is above it. A message then costs the same wait, wake-up and switches as beside the fluid,
//! unless the reply comes while a sender with a lower nice value computes. Senders with equal nice values do not
//! preempt each other, which saves one switch a message.

use super::exchange::{AFTERWARDS, Client, Exchange, Sizes};
use super::message_path::NetworkPath;
use crate::kit::contract::*;
use crate::platform::fluid::NICER;
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::process;
use crate::platform::shared::Words;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Nice values of the other senders, relative to the measuring process. Four have the highest: three senders in all were
/// seen to fall into step, and four to wait all at the same time for 4 % of the run.
const NICE: [i32; 5] = [-NICER, NICER, NICER, NICER, NICER];
/// Exchanges of the measuring process before the timed part.
const WARM_UP: usize = 3;
/// Time after which a sender that has not come to rest counts as hung.
const PATIENCE: Duration = Duration::from_secs(5);

// Indices into the shared page.
/// The senders work while this number is odd; else they sleep on it.
const TURN: usize = 0;
/// The first of the words that hold the turn in which each sender came to rest.
const RESTS: usize = 1;
/// The first of the words that count the messages of each sender.
const MESSAGES: usize = RESTS + NICE.len();

/// All senders of the CPU. An iteration is a message of any of them.
pub(super) struct SharedCpu {
    own: Exchange,
    others: Senders,
    /// Messages of all senders in the timed part of the last run.
    done: u64,
}

impl SharedCpu {
    /// Senders over `path`, each with `computed` multiplications after a reply and a server of its own.
    ///
    /// # Errors
    /// The errors of [`Client::connect`]; a sender that ends or hangs.
    pub(super) fn start(path: NetworkPath, sizes: Sizes, computed: u64, place: &Place) -> Result<Self> {
        let own = Exchange::start(path, sizes, computed, place)?;
        Ok(Self { own, others: Senders::start(path, sizes, computed, place)?, done: 0 })
    }

    /// Sends until all senders together have sent `iterations` messages.
    fn send_messages(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let Self { own, others, done } = self;
        (0..WARM_UP).try_for_each(|_| own.exchange::<AFTERWARDS>())?;
        let (mut sent, before) = (0, others.message_count());
        let mut answered = Ok(());
        *done = 0;
        let ticks = clock.time(|| {
            while *done < iterations {
                answered = own.exchange::<AFTERWARDS>();
                if answered.is_err() {
                    break;
                }
                sent += 1;
                *done = sent + u64::from(others.message_count().wrapping_sub(before));
            }
        });
        answered.map(|()| ticks)
    }
}

impl Subject for SharedCpu {
    /// The last message of the measuring process overlaps with others; [`Report::events`] is the exact number of messages.
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.others.wake_senders();
        let sent = self.send_messages(iterations, clock);
        let rested = self.others.put_to_rest();
        // The error of the exchange comes first: it explains that of a sender which does not rest.
        sent.and_then(|ticks| rested.map(|()| ticks))
    }

    fn report(&self) -> Report {
        let partners = self.others.tasks().chain([self.own.server_task()]).collect();
        Report { partners, events: Some(self.done), ..Report::default() }
    }
}

/// The other senders. They sleep between runs.
struct Senders {
    senders: Vec<Partner>,
    _servers: Vec<Partner>,
    page: Arc<Words>,
}

impl Senders {
    /// Starts the senders, each with a server of its own, and waits until all rest.
    fn start(path: NetworkPath, sizes: Sizes, computed: u64, place: &Place) -> Result<Self> {
        let none = || Error::Missing("this process is on no CPU of its own".into());
        let cpu = place.cpus.here.ok_or_else(none)?;
        let page = Arc::new(Words::new()?);
        page[TURN].value.store(2, SeqCst);
        let (mut senders, mut servers) = (Vec::new(), Vec::new());
        for (index, nicer) in NICE.into_iter().enumerate() {
            let (mut client, server) = Client::connect(path, sizes, computed, place)?;
            let theirs = Arc::clone(&page);
            let nice = process::niceness(0) + nicer;
            let step = move || exchange_or_rest(&mut client, &theirs, index, nice);
            senders.push(Partner::start(Kind::Process, (cpu, Class::Ordinary), step, || ())?);
            servers.push(server);
        }
        let mut all = Self { senders, _servers: servers, page };
        all.wait_until_resting()?;
        Ok(all)
    }

    fn tasks(&self) -> impl Iterator<Item = Task> {
        self.senders.iter().map(Partner::task)
    }

    /// Begins a turn in which the senders work.
    fn wake_senders(&self) {
        self.page[TURN].value.fetch_add(1, SeqCst);
        for _ in &self.senders {
            wake(&self.page[TURN].value, Reach::Shared);
        }
    }

    /// Ends the turn, and waits until all senders rest.
    fn put_to_rest(&mut self) -> Result<()> {
        self.page[TURN].value.fetch_add(1, SeqCst);
        self.wait_until_resting()
    }

    /// Messages of all these senders since their start, modulo 2³².
    #[inline(always)]
    fn message_count(&self) -> u32 {
        let each = (0..self.senders.len()).map(|index| self.page[MESSAGES + index].value.load(SeqCst));
        each.fold(0, u32::wrapping_add)
    }

    fn wait_until_resting(&mut self) -> Result<()> {
        let begun = Instant::now();
        let turn = self.page[TURN].value.load(SeqCst);
        while (0..NICE.len()).any(|index| self.page[RESTS + index].value.load(SeqCst) != turn) {
            if let Some(fate) = self.senders.iter_mut().find_map(Partner::fate) {
                return Err(fate.into_error("another sender on this CPU: "));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Disturbed("another sender on this CPU hangs".into()));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}

/// One step of a sender: an exchange, or a rest. Returns 0 or a negative error number. Allocates nothing.
fn exchange_or_rest(client: &mut Client, page: &Words, index: usize, nice: i32) -> i64 {
    let turn = page[TURN].value.load(SeqCst);
    if turn % 2 == 0 {
        if let Err(errno) = process::set_niceness(nice) {
            return -i64::from(errno);
        }
        page[RESTS + index].value.store(turn, SeqCst);
        wait(&page[TURN].value, turn, Reach::Shared);
        return 0;
    }
    match client.exchange::<AFTERWARDS>() {
        Ok(true) => {
            page[MESSAGES + index].value.fetch_add(1, SeqCst);
            0
        }
        Ok(false) => -i64::from(libc::EBADMSG),
        Err(cause) => -i64::from(cause.raw_os_error().unwrap_or(libc::EPIPE)),
    }
}

/// Checks that this process may lower nice values.
///
/// # Errors
/// A sentence that says what to allow.
pub(super) fn may_lower_nice_value(_: &Place) -> std::result::Result<(), String> {
    let own = process::niceness(0);
    let tried = process::set_niceness(own - NICER);
    // The kernel stops at -20 without an error.
    let reached = process::niceness(0);
    // Raising it again is always allowed.
    match tried.and_then(|()| process::set_niceness(own)) {
        Ok(()) if reached == own - NICER => Ok(()),
        Ok(()) => Err(format!(
            "it needs a sender that is less nice than this process by {NICER}, and this process has {own}, of -20 at least: \
             start the run with nice 0"
        )),
        Err(_) => {
            Err("it needs a sender that is less nice than this process: allow CAP_SYS_NICE, as root has it"
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable;
    use crate::platform::testing::print_skipped;

    fn place() -> Place {
        runnable::test_place(&std::env::temp_dir(), Scale::Smoke)
    }

    #[test]
    fn a_run_counts_the_messages_of_all_senders() {
        let place = place();
        if place.cpus.others.is_empty() || may_lower_nice_value(&place).is_err() {
            print_skipped("it needs two CPUs and CAP_SYS_NICE");
            return;
        }
        let all = || {
            let mut cpu = SharedCpu::start(NetworkPath::Loopback, Sizes::sent(1000), 0, &place)?;
            for iterations in [20, 200] {
                assert!(cpu.run(iterations, &Clock::start_up())?.0 > 0);
                let done = cpu.report().events.expect("counted");
                // The scheduler decides how many more are sent while the last exchange of this process waits for the CPU.
                assert!(done >= iterations, "{done} of {iterations}");
            }
            assert_eq!(cpu.report().partners.len(), NICE.len() + 1);
            Ok::<_, Error>(())
        };
        crate::platform::cpu::run_on_cpu(place.cpus.here.expect("a CPU"), all)
            .expect("pinned")
            .expect("sent");
    }

    #[test]
    fn a_process_with_the_lowest_nice_value_is_refused() {
        // A nice value belongs to a thread, and ends with it.
        let asked = std::thread::spawn(|| {
            process::set_niceness(-20).ok().map(|()| (may_lower_nice_value(&place()), process::niceness(0)))
        });
        match asked.join().expect("no panic") {
            None => print_skipped("it needs CAP_SYS_NICE"),
            Some((answer, nice)) => {
                assert!(answer.expect_err("no room").contains("start the run with nice 0"));
                assert_eq!(nice, -20);
            }
        }
    }

    #[test]
    fn the_check_leaves_the_nice_value_unchanged() {
        let before = process::niceness(0);
        if let Err(why) = may_lower_nice_value(&place()) {
            print_skipped(&why.to_string());
        }
        assert_eq!(process::niceness(0), before);
    }
}
