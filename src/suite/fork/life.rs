//! The life of a child, timed as a whole or until the creating call returns.

use crate::kit::contract::*;
use crate::kit::scheduling_policy::Batch;
use crate::kit::start_order::{Order, Repeats};
use crate::kit::task;
use crate::kit::watchdog::{PERIOD, Watchdog};
use crate::platform::child;

/// What every batch checks.
pub(super) const REAPED: &str = "every child was reaped with exit code 0, and none was left behind";

/// What a batch checks where only the creating call is timed.
pub(super) const LATER: &str = "no child that began before fork had returned was counted";

/// A child after its life.
#[derive(Clone, Copy)]
struct Ended {
    /// Its process id, or a negative error number of the creating call.
    child: i64,
    /// The result of the wait: the process id, or a negative error number.
    reaped: i64,
    status: i32,
}

impl Ended {
    fn is_clean_exit(self) -> bool {
        self.child > 0 && self.reaped == self.child && self.status == 0
    }
}

/// The call that creates children, and the watchdog over the waits for them.
struct Parent {
    /// Name of the call, for error messages.
    call: &'static str,
    watchdog: Watchdog,
}

impl Parent {
    /// Creates and reaps one child before the first timed one, so that a forbidden or limited call fails in the
    /// set-up.
    fn with_trial_child<T>(call: &'static str, on: &mut T, create: impl Fn(&mut T) -> i64) -> Result<Self> {
        let parent = Self { call, watchdog: Watchdog::for_this_thread(PERIOD)? };
        parent.check_ended(parent.wait_for(create(on)))?;
        parent.check_none_left().map(|()| parent)
    }

    /// Waits for a child; `child` is what the creating call has returned.
    #[inline(always)]
    fn wait_for(&self, child: i64) -> Ended {
        let Ok(id @ 1..) = i32::try_from(child) else { return Ended { child, reaped: 0, status: 0 } };
        self.watchdog.watch_child(id);
        let mut status = -1;
        Ended { child, reaped: task::reap(id, &mut status), status }
    }

    /// Checks that a child was created and reaped, and that its exit code was 0.
    fn check_ended(&self, ended: Ended) -> Result<()> {
        if ended.is_clean_exit() {
            return Ok(());
        }
        self.watchdog.end_wait();
        task::check_created(self.call, ended.child)?;
        if ended.reaped != ended.child {
            task::check_created("waitpid", ended.reaped)?;
        }
        let how = child::describe_raw_status(ended.status).unwrap_or_default();
        // An expired watchdog does not prove that the child hung: the time also runs out if the machine stands still.
        Err(self.watchdog.take_expired_sentence().map_or(Error::Child(how), Error::Contradicted))
    }

    /// Checks that this process has no child left, neither alive nor as a zombie.
    fn check_none_left(&self) -> Result<()> {
        self.watchdog.end_wait();
        match child::find_unreaped_child() {
            None => Ok(()),
            Some(left) if left.dead => Err(Error::Child("it was left behind as a zombie".into())),
            Some(_) => Err(Error::Child("it was left behind alive".into())),
        }
    }
}

/// What one bracket times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    /// All lives of a batch.
    Batch,
    /// One life.
    Each,
}

/// Set-up that times whole lives. `open` makes what `create` works on.
pub(super) fn whole_life_set_up<T: 'static>(
    call: &'static str,
    bracket: Bracket,
    open: impl Fn(&Place) -> Result<T> + 'static,
    create: impl Fn(&mut T) -> i64 + Copy + 'static,
) -> SetUp {
    set_up(move |place| {
        let mut on = open(place)?;
        let parent = Parent::with_trial_child(call, &mut on, create)?;
        Ok(move |n: u64, clock: &Clock| {
            let mut bad = None;
            let ticks = match bracket {
                Bracket::Batch => clock.time(|| {
                    bad =
                        (0..n).map(|_| parent.wait_for(create(&mut on))).find(|ended| !ended.is_clean_exit());
                }),
                Bracket::Each => clock.time_each(
                    n,
                    &mut on,
                    |_| Ok(()),
                    |on| parent.wait_for(create(on)),
                    |_, ended| parent.check_ended(ended).map(|()| Counts::Yes),
                )?,
            };
            bad.map_or(Ok(()), |bad| parent.check_ended(bad))?;
            parent.check_none_left().map(|()| ticks)
        })
    })
}

/// Set-up that times `fork` alone, in a bracket each. A fork whose child starts before it has returned is repeated,
/// because the bracket then holds a part of the child's life, too.
pub(super) fn fork_call_set_up<T: 'static>(open: impl Fn(&Place) -> Result<T> + 'static) -> SetUp {
    set_up(move |place| {
        let mut on = open(place)?;
        let parent = Parent::with_trial_child("fork", &mut on, |_| task::fork_exit())?;
        let (order, batch) = (Order::new()?, Batch::begin()?);
        Ok(move |n: u64, clock: &Clock| {
            let _alive = (&on, &batch);
            let ticks = clock.time_each(
                n,
                &mut Repeats::for_batch(n),
                |_| {
                    order.clear_flags();
                    Ok(())
                },
                |_| task::fork_do_exit(|| order.note_start()),
                |repeats, child| {
                    order.note_return();
                    parent.check_ended(parent.wait_for(child))?;
                    repeats.judge_creation("fork", &order)
                },
            )?;
            parent.check_none_left().map(|()| ticks)
        })
    })
}
