//! One row of a group's table.

use super::{Claim, Derived, Need, Place, Repetition, Rule, Subject};
use crate::Result;
use crate::clock::Clock;

/// How a case comes to life. It may allocate, open and touch: none of that is timed.
pub type SetUp = Box<dyn Fn(&Place) -> Result<Box<dyn Subject>>>;

/// A set-up that makes this subject.
pub fn set_up<S: Subject + 'static>(make: impl Fn(&Place) -> Result<S> + 'static) -> SetUp {
    Box::new(move |place| Ok(Box::new(make(place)?)))
}

/// One row of a group's table.
pub struct Case {
    /// `variant` or `variant/parameter`; the group's name goes before it.
    pub name: String,
    /// Plain words for a reader who has not met the id.
    pub title: String,
    /// What the machine must offer.
    pub needs: Vec<Need>,
    /// What must be true if the operation happened.
    pub claims: Vec<Claim>,
    /// What to expect, written before the measurement.
    pub prediction: Option<Prediction>,
    /// The operation.
    pub set_up: SetUp,
    /// The same loop with the operation left out.
    pub control: Option<SetUp>,
    /// Figures that follow from its own and are what a reader looks for.
    pub derived: Vec<Derived>,
    /// Every iteration is timed by itself and the distribution is the answer.
    pub one_by_one: bool,
    /// Where tasks of its own run.
    pub own_tasks: OwnTasks,
    /// What it waits for, other CPUs use too: memory, or the last level of cache. Who is busy there is told.
    pub shares_memory: bool,
    /// It is measured by what it displaces, whatever is asked for, and so often.
    pub displaced: Option<Repetition>,
}

/// Tasks that a case starts and that run beside the measuring thread: its own, and no disturbance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnTasks {
    /// There are none: whoever has the CPU meanwhile is a stranger.
    #[default]
    None,
    /// Children that it waits for, and threads, on the measuring CPU, which is never idle meanwhile. What was
    /// charged neither to them nor to the measuring thread, strangers had.
    SameCpu,
    /// Some that outlive a batch, or run elsewhere: what strangers had cannot be told.
    Elsewhere,
}

/// What one iteration should cost: the hardware's part and the software's, in core cycles, since that is
/// what processors of different frequency share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Core cycles that the hardware charges.
    pub hardware: f64,
    /// Core cycles that the kernel or the compiler's code adds.
    pub software: f64,
    /// Why.
    pub why: &'static str,
}

impl Case {
    /// A case whose operation is `run`: given a number of iterations and the clock, it returns the time.
    pub fn new(name: impl Into<String>, title: impl Into<String>, set_up: SetUp) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            needs: Vec::new(),
            claims: Vec::new(),
            prediction: None,
            set_up,
            control: None,
            derived: Vec::new(),
            one_by_one: false,
            own_tasks: OwnTasks::None,
            shares_memory: false,
            displaced: None,
        }
    }

    /// A case that times a loop as a whole. The function is given the number of turns.
    ///
    /// ```
    /// use syscost::subject::{Case, Claim};
    /// let case = Case::looped("hash", "hash of a word", |n| {
    ///     for i in 0..n {
    ///         std::hint::black_box(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ///     }
    /// })
    /// .claim(Claim::Linear);
    /// assert_eq!(case.name, "hash");
    /// ```
    pub fn looped(
        name: impl Into<String>,
        title: impl Into<String>,
        turns: impl Fn(u64) + Copy + 'static,
    ) -> Self {
        Self::new(name, title, whole(turns))
    }

    /// Adds something that the machine must offer.
    pub fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// Adds something that must be true if the operation happened.
    pub fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Measures `turns` beside it, the same loop with the operation left out.
    pub fn control(mut self, turns: impl Fn(u64) + Copy + 'static) -> Self {
        self.control = Some(whole(turns));
        self
    }

    /// The same with a set-up of its own, for a control that is not a plain loop.
    pub fn control_set_up(mut self, set_up: SetUp) -> Self {
        self.control = Some(set_up);
        self
    }

    /// Writes down what to expect, in core cycles.
    pub fn predict(mut self, hardware: f64, software: f64, why: &'static str) -> Self {
        self.prediction = Some(Prediction { hardware, software, why });
        self
    }

    /// Adds a figure that follows from the others.
    pub fn derive(mut self, name: &'static str, rule: Rule) -> Self {
        self.derived.push(Derived { name, rule });
        self
    }

    /// Says where tasks of its own run.
    pub fn own_tasks(mut self, own_tasks: OwnTasks) -> Self {
        self.own_tasks = own_tasks;
        self
    }

    /// Says that it waits for what all CPUs share.
    pub fn shares_memory(mut self) -> Self {
        self.shares_memory = true;
        self
    }

    /// Measures what it displaces instead of how long it takes.
    pub fn displaced(mut self, repetition: Repetition) -> Self {
        self.displaced = Some(repetition);
        self
    }

    /// Times every iteration by itself and reports the distribution.
    pub fn one_by_one(mut self) -> Self {
        self.one_by_one = true;
        self
    }
}

/// A loop timed as a whole.
fn whole(turns: impl Fn(u64) + Copy + 'static) -> SetUp {
    set_up(move |_| Ok(move |n: u64, clock: &Clock| Ok(clock.time(|| turns(n)))))
}
