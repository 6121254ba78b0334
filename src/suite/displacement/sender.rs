//! Other senders on the CPU of the measuring process, which together leave it no idle moment.
//!
//! Beside the fluid a sender takes the CPU from it the moment its reply is there. It does so from other senders too: one is
//! as much less nice than the measuring process as the fluid is nicer, and two are as nice as the fluid. So a message
//! costs the same wait, wake-up and switches as where its cost was measured, but for those whose reply comes while one that
//! is less nice computes. Senders of one nice value let each other finish, which spares a switch a message.

use super::exchange::{End, Way, connection};
use crate::case::Place;
use crate::clock::{Clock, Ticks};
use crate::platform::fluid::NICER;
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::process;
use crate::platform::shared::Words;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Nice values of the others, against that of the measuring process. Two of the nicest: of three in all it was seen that
/// they fell into step and waited all at once.
const NICE: [i32; 3] = [-NICER, NICER, NICER];
/// Iterations of the measuring process before it counts.
const WARM_UP: usize = 3;
/// One that does not come to rest for so long hangs.
const PATIENCE: Duration = Duration::from_secs(5);

// Where things stand in the shared page.
/// The others work while this number is odd; else they sleep on it.
const TURN: usize = 0;
/// In which turn each came to rest, from here on.
const RESTS: usize = 1;
/// Rounds of each, from here on.
const ROUNDS: usize = RESTS + NICE.len();

/// The others. They rest until they are asked for.
pub(super) struct Senders {
    senders: Vec<Partner>,
    _servers: Vec<Partner>,
    page: Arc<Words>,
}

impl Senders {
    /// Each with a connection and a server of its own, between two nodes.
    pub(super) fn start(bytes: usize, chain: u64, place: &Place) -> Result<Self> {
        let cpu =
            place.cpus.here.ok_or_else(|| Error::Usage("this process is on no CPU of its own".into()))?;
        let page = Arc::new(Words::new()?);
        page[TURN].value.store(2, SeqCst);
        let (mut senders, mut servers) = (Vec::new(), Vec::new());
        for (index, nicer) in NICE.into_iter().enumerate() {
            let (end, server) = connection(Way::Nodes, bytes, place)?;
            let (mut end, theirs) = (end.computing(chain), Arc::clone(&page));
            let nice = process::niceness(0) + nicer;
            let step = move || step(&mut end, &theirs, index, nice);
            senders.push(Partner::start(Kind::Process, (cpu, Class::Ordinary), step, || ())?);
            servers.push(server);
        }
        let mut all = Self { senders, _servers: servers, page };
        all.until_they_rest()?;
        Ok(all)
    }

    /// What others must know to watch them.
    pub(super) fn tasks(&self) -> impl Iterator<Item = Task> {
        self.senders.iter().map(Partner::task)
    }

    /// Does this again and again for so long while they do the same. Answers how often it was done by all together.
    pub(super) fn beside(
        &mut self,
        mut iterate: impl FnMut() -> Result<()>,
        lasting: Duration,
        clock: &Clock,
    ) -> Result<(u64, Ticks)> {
        self.page[TURN].value.fetch_add(1, SeqCst);
        for _ in &self.senders {
            wake(&self.page[TURN].value, Reach::Shared);
        }
        let counted = (|| {
            (0..WARM_UP).try_for_each(|_| iterate())?;
            let (mut own, before, begun) = (0, self.rounds(), Instant::now());
            let start = clock.start();
            while begun.elapsed() < lasting {
                iterate()?;
                own += 1;
            }
            let elapsed = clock.stop() - start;
            Ok((own + u64::from(self.rounds().wrapping_sub(before)), elapsed))
        })();
        self.page[TURN].value.fetch_add(1, SeqCst);
        // What went wrong first says why.
        let rested = self.until_they_rest();
        counted.and_then(|counted| rested.map(|()| counted))
    }

    /// Of all of them so far.
    fn rounds(&self) -> u32 {
        let each = (0..self.senders.len()).map(|index| self.page[ROUNDS + index].value.load(SeqCst));
        each.fold(0, u32::wrapping_add)
    }

    fn until_they_rest(&mut self) -> Result<()> {
        let begun = Instant::now();
        let turn = self.page[TURN].value.load(SeqCst);
        while (0..NICE.len()).any(|index| self.page[RESTS + index].value.load(SeqCst) != turn) {
            if let Some(fate) = self.senders.iter_mut().find_map(Partner::fate) {
                return Err(Error::Usage(format!("another sender on this CPU: {fate}")));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Usage("another sender on this CPU hangs".into()));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}

/// One step of a sender: a round, or a rest. It allocates nothing.
fn step(end: &mut End, page: &Words, index: usize, nice: i32) -> i64 {
    let turn = page[TURN].value.load(SeqCst);
    if turn % 2 == 0 {
        if let Err(errno) = process::be_nice(nice) {
            return -i64::from(errno);
        }
        page[RESTS + index].value.store(turn, SeqCst);
        wait(&page[TURN].value, turn, Reach::Shared);
        return 0;
    }
    match end.exchange() {
        Ok(true) => {
            page[ROUNDS + index].value.fetch_add(1, SeqCst);
            0
        }
        Ok(false) => -i64::from(libc::EBADMSG),
        Err(cause) => -i64::from(cause.raw_os_error().unwrap_or(libc::EPIPE)),
    }
}

/// Whether a process may be made less nice than this one.
pub(super) fn may_be_less_nice(_: &Place) -> std::result::Result<(), String> {
    let own = process::niceness(0);
    let tried = process::be_nice(own - NICER);
    // To become nicer again is always allowed.
    tried.and_then(|()| process::be_nice(own)).map_err(|_| {
        "it needs a sender that is less nice than this process: allow CAP_SYS_NICE, as root has it".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_whether_it_may_be_less_nice_stays_as_it_is() {
        let before = process::niceness(0);
        let place = Place {
            scratch: std::env::temp_dir(),
            scale: crate::case::Scale::Smoke,
            cpus: crate::case::Cpus::expected(),
        };
        if let Err(why) = may_be_less_nice(&place) {
            println!("skipped: {why}");
        }
        assert_eq!(process::niceness(0), before);
    }
}
