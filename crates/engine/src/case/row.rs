//! A case: one operation, with what it needs, claims and predicts.

mod prepared;

pub use prepared::{Batch, Gauge, Preparation, empty_loop_instructions};

use super::{Claim, Derived, Need, Place, Repetition, Rule, Scale, Subject};
use crate::clock::Clock;
use crate::error::Result;

/// Prepares the operation of a case. It may open, allocate and touch all that the operation needs, untimed. Made by [`set_up`].
pub type SetUp = Box<dyn Fn(&Place) -> Result<Box<dyn Subject>>>;

/// Makes a [`SetUp`] of a closure that returns the subject. The subject may be a closure, too:
///
/// ```
/// use std::io::Read;
/// use syscost_engine::clock::Clock;
/// use syscost_engine::{Case, Error, set_up};
///
/// const ZERO: &str = "/dev/zero";
/// let read = set_up(|_| {
///     let mut file = std::fs::File::open(ZERO).map_err(|e| Error::file(ZERO, "opening", e))?;
///     Ok(move |n: u64, clock: &Clock| {
///         let mut bytes = 0;
///         let ticks = clock.time(|| (0..n).for_each(|_| bytes += file.read(&mut [0]).unwrap_or(0)));
///         match bytes as u64 == n {
///             true => Ok(ticks),
///             false => Err(Error::Disproved(format!("{bytes} bytes were read in {n} calls"))),
///         }
///     })
/// });
/// let case = Case::new("read-zero", "read of one byte from /dev/zero", read);
/// assert!(case.control.is_none());
/// ```
///
/// If `make` returns [`Error::Missing`](crate::Error::Missing) or [`Error::Forbidden`](crate::Error::Forbidden), the
/// case is skipped with that sentence; any other error fails it.
pub fn set_up<S: Subject + 'static>(make: impl Fn(&Place) -> Result<S> + 'static) -> SetUp {
    Box::new(move |place| Ok(Box::new(make(place)?)))
}

/// One row of a group's table: an operation, with what it needs, what proves that it happened, and what it should cost.
///
/// Its full id is `group/name`. Ids are kept in records and compared across kernels, so a name should never change.
pub struct Case {
    /// `variant` or `variant/parameter`, in kebab-case; sizes as `4KiB`.
    pub name: String,
    /// The operation in words, for tables.
    pub title: String,
    /// Requirements on the machine. If one is not met, the case is skipped.
    pub needs: Vec<Need>,
    /// Conditions that hold if the operation really happened.
    pub claims: Vec<Claim>,
    /// Expected cost, written before the first measurement.
    pub prediction: Option<Prediction>,
    /// Prepares the operation.
    pub set_up: SetUp,
    /// Prepares the control: the same loop without the operation. Its cost is subtracted for the net figure.
    pub control: Option<SetUp>,
    /// Figures computed from the cost, such as a bandwidth.
    pub derived: Vec<Derived>,
    /// Whether every iteration is timed by itself, so that the result is a distribution.
    pub one_by_one: bool,
    /// Where tasks that the case starts run.
    pub own_tasks: OwnTasks,
    /// Whether it waits for memory or a cache that other CPUs use, too. If so, the load of the other CPUs is reported.
    pub shares_memory: bool,
    /// If set, the case is always measured by the CPU time that it takes from other work, repeated this often.
    pub displaced: Option<Repetition>,
    /// Least share of the wall time of a batch that must be timed; 0 if the share is not judged.
    pub timed_share: f64,
    /// The number of iterations of a sample is a multiple of this.
    pub lap: u64,
    /// Name of the parameter that [`Case::over`] varies, in the plural. The name of the case ends in the parameter's value.
    pub parameter: Option<&'static str>,
}

/// Default of [`Case::timed_share`]: the code around a bracket is expected to be short.
pub(crate) const TIMED_SHARE: f64 = 0.6;

/// Where tasks run that a case starts besides the measuring thread. Their CPU time is no disturbance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnTasks {
    /// The case starts none: CPU time of any other task on the measuring CPU is a disturbance.
    #[default]
    None,
    /// Threads, and children that are waited for, on the measuring CPU, which is never idle meanwhile. CPU time that
    /// was charged neither to them nor to the measuring thread is a disturbance.
    SameCpu,
    /// On other CPUs, or beyond the end of a batch: disturbances by CPU time cannot be detected.
    Elsewhere,
}

/// Expected cost of one iteration, core cycles, which are comparable between processors of different frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Core cycles spent in hardware.
    pub hardware: f64,
    /// Core cycles of code of the kernel or of the compiler.
    pub software: f64,
    /// The reason.
    pub why: &'static str,
    /// Whether it predicts the whole timed cost, and not the cost minus that of the control.
    pub whole: bool,
}

impl Case {
    /// A case of this set-up, without needs, claims, control and prediction.
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
            timed_share: TIMED_SHARE,
            lap: 1,
            parameter: None,
        }
    }

    /// A case without set-up: `turns` runs the operation as often as its argument says, in one bracket. Data that `turns` owns
    /// are created with the list of cases, in every process, and cloned for the measurement; [`Case::prepared`] creates them
    /// only in the measuring process.
    ///
    /// ```
    /// use syscost_engine::{Case, Claim};
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
        turns: impl FnMut(u64) + Clone + 'static,
    ) -> Self {
        Self::new(name, title, time_whole_loop(turns))
    }

    /// Makes one case for each value by `make`. `parameter` names the values in the plural, such as `numbers`. The name of each
    /// case ends in `/VALUE`. Below the table the costs are drawn against the parameter, with the law by which they grow.
    ///
    /// ```
    /// use syscost_engine::Case;
    /// let cases = Case::over("numbers", [1_000, 2_000, 4_000], |count| {
    ///     Case::prepared("sum", format!("the sum of {count} numbers"), move |_| {
    ///         let numbers: Vec<u64> = (0..count).collect();
    ///         move || numbers.iter().sum::<u64>()
    ///     })
    ///     .elements(count)
    /// });
    /// assert_eq!(cases[2].name, "sum/4000");
    /// ```
    pub fn over(
        parameter: &'static str,
        values: impl IntoIterator<Item = u64>,
        make: impl Fn(u64) -> Self,
    ) -> Vec<Self> {
        let named = |value| {
            let case = make(value);
            Self { name: format!("{}/{value}", case.name), parameter: Some(parameter), ..case }
        };
        values.into_iter().map(named).collect()
    }

    /// Says that an iteration processes this number of bytes: the table shows GB/s (10⁹ bytes).
    pub fn bytes(self, bytes: u64) -> Self {
        self.derived_figure("bandwidth", Rule::Bandwidth(bytes))
    }

    /// Says that an iteration processes this number of elements: the table shows elements a second.
    pub fn elements(self, elements: u64) -> Self {
        self.derived_figure("throughput", Rule::Elements(elements))
    }

    /// Adds a need.
    pub fn need(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// The first need that is not met at this place, in a sentence.
    pub fn missing_need(&self, place: &Place) -> Option<String> {
        self.needs.iter().find_map(|need| need.check_place(place).err())
    }

    /// Adds a claim.
    pub fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Sets the control to `turns`, the loop without the operation.
    pub fn control(mut self, turns: impl FnMut(u64) + Clone + 'static) -> Self {
        self.control = Some(time_whole_loop(turns));
        self
    }

    /// Sets a control that has a set-up of its own.
    pub fn control_set_up(mut self, set_up: SetUp) -> Self {
        self.control = Some(set_up);
        self
    }

    /// Sets the expected cost, core cycles.
    pub fn predict(mut self, hardware: f64, software: f64, why: &'static str) -> Self {
        self.prediction = Some(Prediction { hardware, software, why, whole: false });
        self
    }

    /// Says that the prediction is the cost of everything that is timed: the control is not subtracted before they
    /// are compared.
    pub fn prediction_includes_control(mut self) -> Self {
        self.prediction = self.prediction.map(|prediction| Prediction { whole: true, ..prediction });
        self
    }

    /// Adds a figure computed from the cost, such as `bandwidth`.
    pub fn derived_figure(mut self, name: &'static str, rule: Rule) -> Self {
        self.derived.push(Derived { name, rule });
        self
    }

    /// Says where tasks run that the case starts.
    pub fn own_tasks(mut self, own_tasks: OwnTasks) -> Self {
        self.own_tasks = own_tasks;
        self
    }

    /// Says that the case waits for memory or a cache that other CPUs use, too.
    pub fn shares_memory(mut self) -> Self {
        self.shares_memory = true;
        self
    }

    /// Measures the CPU time that the case takes from other work, instead of how long it takes.
    pub fn by_displacement(mut self, repetition: Repetition) -> Self {
        self.displaced = Some(repetition);
        self
    }

    /// Sets the least share of the wall time of a batch that must be spent inside the brackets; the default is 0.6, and 0 with
    /// [`Case::one_by_one`]. A case whose iterations have untimed parts sets a smaller share, and says why. A case that keeps
    /// the default and times less than 0.8 is unwitnessed.
    pub fn timed_share(mut self, share: f64) -> Self {
        self.timed_share = share;
        self
    }

    /// Makes every sample a whole number of laps of this number of iterations (at least one). The parts of a ring, or of a file
    /// that is read repeatedly, differ in cost. A cached part is evicted if it is not used, because the harness also uses the
    /// caches between samples. A lap should take milliseconds.
    pub fn lap_length(mut self, iterations: u64) -> Self {
        self.lap = iterations.max(1);
        self
    }

    /// Whether it claims [`Claim::KeepsWorking`].
    pub(crate) fn keeps_working(&self) -> bool {
        self.claims.iter().any(|claim| matches!(claim, Claim::KeepsWorking(_)))
    }

    /// Iterations of a lap at this scale; 1 in a smoke run, which keeps no number.
    pub(crate) fn lap_at(&self, scale: Scale) -> u64 {
        if scale == Scale::Smoke { 1 } else { self.lap }
    }

    /// Times every iteration by itself, so that the result is a distribution. No share of the time has to be timed; a case that
    /// prepares its operations quickly sets one by [`Case::timed_share`] afterwards.
    pub fn one_by_one(mut self) -> Self {
        self.one_by_one = true;
        // The preparation of each operation is untimed, and may take any time.
        self.timed_share = 0.0;
        self
    }
}

/// A set-up that times a loop in one bracket.
fn time_whole_loop(turns: impl FnMut(u64) + Clone + 'static) -> SetUp {
    set_up(move |_| {
        let mut turns = turns.clone();
        Ok(move |n: u64, clock: &Clock| Ok(clock.time(|| turns(n))))
    })
}
