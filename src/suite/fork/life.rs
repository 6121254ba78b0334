//! The life of a child, timed as a whole or until its creator has returned.

use crate::case::{Place, SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::scheduling_policy::Batch;
use crate::kit::start_order::{Again, Order};
use crate::kit::task;
use crate::kit::watchdog::{PERIOD, Watchdog};
use crate::platform::{child, limit};
use crate::{Error, Result};
use nix::errno::Errno;
use std::hint::black_box;

/// What is looked at in each batch, in words.
pub(super) const REAPED: &str = "every child was reaped with exit code 0, and none was left behind";

/// A child after its life.
#[derive(Clone, Copy)]
struct Ended {
    /// Its number, or why there was none.
    child: i64,
    /// What the wait answered.
    reaped: i64,
    status: i32,
}

impl Ended {
    fn is_well(self) -> bool {
        self.child > 0 && self.reaped == self.child && self.status == 0
    }
}

/// Waits for a child that a creator has answered.
#[inline(always)]
fn waited_for(watchdog: &Watchdog, child: i64) -> Ended {
    let Ok(number @ 1..) = i32::try_from(child) else { return Ended { child, reaped: 0, status: 0 } };
    watchdog.waits_for(number);
    let mut status = -1;
    Ended { child, reaped: task::reap(number, &mut status), status }
}

/// A case of whole lives, timed in one bracket. `call` names the creator for sentences; `open` makes what it works
/// on.
pub(super) fn whole<T: 'static>(
    call: &'static str,
    open: impl Fn(&Place) -> Result<T> + 'static,
    create: impl Fn(&mut T) -> i64 + Copy + 'static,
) -> SetUp {
    Box::new(move |place| {
        let (mut on, watchdog) = ready(call, open(place)?, create)?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let mut bad = None;
            let ticks = clock.time(|| {
                bad = (0..n).map(|_| waited_for(&watchdog, create(&mut on))).find(|ended| !ended.is_well());
            });
            nobody_left(call, &watchdog, bad)?;
            Ok(ticks)
        }) as Box<dyn Subject>)
    })
}

/// The same, each life in a bracket of its own.
pub(super) fn each<T: 'static>(
    call: &'static str,
    open: impl Fn(&Place) -> Result<T> + 'static,
    create: impl Fn(&mut T) -> i64 + Copy + 'static,
) -> SetUp {
    Box::new(move |place| {
        let (mut on, watchdog) = ready(call, open(place)?, create)?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let (mut sum, mut bad) = (Ticks(0), None);
            for _ in 0..n {
                sum += clock.time(|| bad = Some(waited_for(&watchdog, create(&mut on))));
                bad = bad.filter(|ended| !ended.is_well());
                if bad.is_some() {
                    break;
                }
            }
            nobody_left(call, &watchdog, bad)?;
            Ok(sum)
        }) as Box<dyn Subject>)
    })
}

/// What is looked at where only the creator is timed.
pub(super) const LATER: &str = "no child that began before fork had returned was counted";

/// `fork` alone, each in a bracket of its own. Where the child begins before it has returned, it is done again: what
/// was timed is then a part of the child's life as well.
pub(super) fn until_return<T: 'static>(open: impl Fn(&Place) -> Result<T> + 'static) -> SetUp {
    Box::new(move |place| {
        let (on, watchdog) = ready("fork", open(place)?, |_| task::fork_exit())?;
        let order = Order::new()?;
        let batch = Batch::begin()?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let _kept = (&on, &batch);
            let mut again = Again::of(n);
            let (mut sum, mut done) = (Ticks(0), 0);
            while done < n {
                order.begin();
                let start = clock.start();
                let child = black_box(task::fork_arrive_exit(&order));
                let ticks = clock.stop() - start;
                order.returned();
                let ended = waited_for(&watchdog, child);
                if !ended.is_well() {
                    nobody_left("fork", &watchdog, Some(ended))?;
                }
                if order.was_early() {
                    again.once_more("fork")?;
                    continue;
                }
                sum += clock.note(ticks);
                done += 1;
            }
            nobody_left("fork", &watchdog, None)?;
            Ok(sum)
        }) as Box<dyn Subject>)
    })
}

/// One life before the first that is timed: what is forbidden or limited here says so at once.
fn ready<T>(call: &'static str, mut on: T, create: impl Fn(&mut T) -> i64) -> Result<(T, Watchdog)> {
    let watchdog = Watchdog::over_this_thread(PERIOD)?;
    let ended = waited_for(&watchdog, create(&mut on));
    nobody_left(call, &watchdog, Some(ended).filter(|ended| !ended.is_well()))?;
    Ok((on, watchdog))
}

/// No child ended badly, and none is left.
fn nobody_left(call: &str, watchdog: &Watchdog, bad: Option<Ended>) -> Result<()> {
    watchdog.rests();
    if let Some(bad) = bad {
        return Err(blame(call, watchdog, bad));
    }
    match child::unreaped() {
        None => Ok(()),
        Some(left) if left.dead => Err(Error::Child("it was left behind as a zombie".into())),
        Some(_) => Err(Error::Child("it was left behind alive".into())),
    }
}

fn blame(call: &str, watchdog: &Watchdog, bad: Ended) -> Error {
    if bad.child <= 0 {
        return refused(call, bad.child);
    }
    if bad.reaped != bad.child {
        return refused("waitpid", bad.reaped);
    }
    let how = child::how_it_ended(bad.status).unwrap_or_default();
    Error::Child(watchdog.bark().unwrap_or(how))
}

/// A call of which the answer is a negative error number. That there may be no further task has several causes.
fn refused(call: &str, answer: i64) -> Error {
    let errno = Error::errno(answer);
    match errno {
        Errno::EAGAIN => Error::Missing(limit::no_task(call, errno.into())),
        _ => Error::refused_to_case(call, errno),
    }
}
