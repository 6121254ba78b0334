//! An event that the user defines by conditions on the state of a system, and its measures of the types A, B and C.
//!
//! The state is a list of variables with names. A [`Condition`] compares a variable with a number or tests one of its
//! bits; conditions are combined by `&`, `|` and `!`. While the condition is true, the system is *in the state*: the
//! change to true is the event. An [`EventRegister`] is loaded with a condition, as the register of a hardware monitor is
//! loaded with a code. It is shown the variables after each change, or at each sample.
//!
//! ```
//! use std::time::Duration;
//! use syscost_technique::event_register::{EventRegister, variable};
//!
//! # fn main() -> syscost_technique::Result<()> {
//! // The CPU is busy, and at least two channels are, or the last one is.
//! let overlap = variable("cpu").equals(1) & (variable("channels").at_least(2) | variable("flags").has_bit(3));
//! let mut register = EventRegister::new(&["cpu", "channels", "flags"], overlap, Duration::ZERO)?;
//! register.observe(Duration::from_secs(2), &[1, 3, 0]);
//! register.observe(Duration::from_secs(5), &[1, 1, 0]);
//! assert_eq!(register.fraction_of_time(Duration::from_secs(10)), Some(0.3));
//! # Ok(())
//! # }
//! ```
//!
//! A register that is shown every change computes all measures exactly. From samples, the fraction of time is an estimate,
//! and entries are missed ([`super::visit`]).
//!
//! Source: Kraemer, slides 2 to 4, 15 to 17 and 22.

use crate::state_measure::{CountMeasure, FractionOfTime, OnEntry, Visits};
use std::ops::{BitAnd, BitOr, Not};
use std::time::Duration;
use syscost_platform::error::{Error, Result};

/// A variable of the state, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable(&'static str);

/// The variable of this name.
pub const fn variable(name: &'static str) -> Variable {
    Variable(name)
}

impl Variable {
    /// The condition that the variable has this value.
    pub fn equals(self, value: u64) -> Condition {
        self.compared(Comparison::Equal, value)
    }

    /// The condition that the variable is this value or more.
    pub fn at_least(self, value: u64) -> Condition {
        self.compared(Comparison::AtLeast, value)
    }

    /// The condition that the variable is this value or less.
    pub fn at_most(self, value: u64) -> Condition {
        self.compared(Comparison::AtMost, value)
    }

    /// The condition that the bit of this number is set; the lowest bit is 0. Bits from 64 on are never set.
    pub fn has_bit(self, bit: u32) -> Condition {
        self.compared(Comparison::HasBit, u64::from(bit))
    }

    fn compared(self, comparison: Comparison, value: u64) -> Condition {
        Condition(Term::Compared { variable: self.0, comparison, value })
    }
}

/// A condition on the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition(Term<&'static str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    AtLeast,
    AtMost,
    HasBit,
}

/// A term whose variables are names, or indices into the state.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Term<V> {
    Compared { variable: V, comparison: Comparison, value: u64 },
    Both(Box<[Self; 2]>),
    Either(Box<[Self; 2]>),
    Not(Box<Self>),
}

impl BitAnd for Condition {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(Term::Both(Box::new([self.0, other.0])))
    }
}

impl BitOr for Condition {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(Term::Either(Box::new([self.0, other.0])))
    }
}

impl Not for Condition {
    type Output = Self;

    fn not(self) -> Self {
        Self(Term::Not(Box::new(self.0)))
    }
}

impl Term<&'static str> {
    /// The same term with each name replaced by its index in `variables`.
    fn resolve(self, variables: &[&str]) -> Result<Term<usize>> {
        let both = |terms: Box<[Self; 2]>| {
            let [a, b] = *terms;
            Ok::<_, Error>(Box::new([a.resolve(variables)?, b.resolve(variables)?]))
        };
        Ok(match self {
            Self::Compared { variable, comparison, value } => {
                Term::Compared { variable: place_of(variable, variables)?, comparison, value }
            }
            Self::Both(terms) => Term::Both(both(terms)?),
            Self::Either(terms) => Term::Either(both(terms)?),
            Self::Not(term) => Term::Not(Box::new(term.resolve(variables)?)),
        })
    }
}

impl Term<usize> {
    fn is_true(&self, state: &[u64]) -> bool {
        match self {
            Self::Compared { variable, comparison, value } => {
                let found = state[*variable];
                match comparison {
                    Comparison::Equal => found == *value,
                    Comparison::AtLeast => found >= *value,
                    Comparison::AtMost => found <= *value,
                    Comparison::HasBit => *value < 64 && found >> value & 1 == 1,
                }
            }
            Self::Both(terms) => terms.iter().all(|term| term.is_true(state)),
            Self::Either(terms) => terms.iter().any(|term| term.is_true(state)),
            Self::Not(term) => !term.is_true(state),
        }
    }
}

fn place_of(name: &str, variables: &[&str]) -> Result<usize> {
    variables.iter().position(|known| *known == name).ok_or_else(|| {
        let known = variables.join(", ");
        Error::Usage(format!("the state has no variable `{name}`: expected one of {known}"))
    })
}

/// A change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The condition has become true: the event.
    Entered,
    /// The condition has become false.
    Left,
}

/// A register with the definition of an event, and the measures of that event.
#[derive(Clone, Debug)]
pub struct EventRegister {
    term: Term<usize>,
    variables: Vec<&'static str>,
    /// The index of the auxiliary variable of type B, and its recorded values.
    auxiliary: Option<(usize, OnEntry<f64>)>,
    inside: bool,
    entries: CountMeasure,
    time: FractionOfTime,
}

impl EventRegister {
    /// A register that measures, from `now` on, the event that `condition` becomes true. The state consists of these
    /// variables, in this order. At first the system counts as outside of the state.
    ///
    /// # Errors
    /// [`Error::Usage`] if the condition names a variable that is not listed.
    pub fn new(variables: &[&'static str], condition: Condition, now: Duration) -> Result<Self> {
        Ok(Self {
            term: condition.0.resolve(variables)?,
            variables: variables.to_vec(),
            auxiliary: None,
            inside: false,
            entries: CountMeasure::new(now),
            time: FractionOfTime::new(now),
        })
    }

    /// Also records the value of the variable `name` at each entry, in a buffer for `values` values.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such variable.
    pub fn with_auxiliary(self, name: &str, values: usize) -> Result<Self> {
        let auxiliary = Some((place_of(name, &self.variables)?, OnEntry::with_capacity(values)));
        Ok(Self { auxiliary, ..self })
    }

    /// Takes the state at `now`, and returns whether the event has begun or ended since the last call; `None` without a
    /// change. It does not allocate.
    ///
    /// # Panics
    /// If the state has another number of variables.
    #[inline]
    pub fn observe(&mut self, now: Duration, state: &[u64]) -> Option<Edge> {
        assert_eq!(state.len(), self.variables.len(), "the state has one value for each variable");
        let inside = self.term.is_true(state);
        if inside == std::mem::replace(&mut self.inside, inside) {
            return None;
        }
        if !inside {
            self.time.leave(now);
            return Some(Edge::Left);
        }
        self.entries.count_entry();
        if let Some((variable, values)) = &mut self.auxiliary {
            values.record_entry(state[*variable] as f64);
        }
        self.time.enter(now);
        Some(Edge::Entered)
    }

    /// Type A: the number of entries since the last call, and the length of that interval.
    pub fn end_interval(&mut self, now: Duration) -> Visits {
        self.entries.end_interval(now)
    }

    /// Type B: the values of the auxiliary variable at the entries, in order; `None` without such a variable.
    pub fn values_on_entry(&self) -> Option<&OnEntry<f64>> {
        self.auxiliary.as_ref().map(|(_, values)| values)
    }

    /// Type C: the fraction of time in the state; `None` if no time has passed.
    pub fn fraction_of_time(&self, now: Duration) -> Option<f64> {
        self.time.fraction(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: [&str; 2] = ["queue", "flags"];

    fn register(condition: Condition) -> EventRegister {
        EventRegister::new(&VARIABLES, condition, Duration::ZERO).expect("its variables are there")
    }

    /// Whether the condition holds in each of these states.
    fn holds<const N: usize>(condition: Condition, states: [[u64; 2]; N]) -> [bool; N] {
        let register = register(condition);
        states.map(|state| register.term.is_true(&state))
    }

    #[test]
    fn comparisons_are_exact_at_their_bounds() {
        let queue = |value| [value, 0];
        let around = [queue(2), queue(3), queue(4)];
        assert_eq!(holds(variable("queue").equals(3), around), [false, true, false]);
        assert_eq!(holds(variable("queue").at_least(3), around), [false, true, true]);
        assert_eq!(holds(variable("queue").at_most(3), around), [true, true, false]);
        let flags = [[0, 0b100], [0, 0b011], [0, 1 << 63]];
        assert_eq!(holds(variable("flags").has_bit(2), flags), [true, false, false]);
        assert_eq!(holds(variable("flags").has_bit(63), flags), [false, false, true]);
        assert_eq!(holds(variable("flags").has_bit(64), flags), [false; 3]);
    }

    #[test]
    fn connectives_have_the_truth_tables_of_boolean_functions() {
        let (a, b) = (variable("queue").equals(1), variable("flags").equals(1));
        let all = [[0, 0], [0, 1], [1, 0], [1, 1]];
        assert_eq!(holds(a.clone() & b.clone(), all), [false, false, false, true]);
        assert_eq!(holds(a.clone() | b.clone(), all), [false, true, true, true]);
        assert_eq!(holds(!(a.clone() | b.clone()), all), [true, false, false, false]);
        assert_eq!(holds(a.clone() & !b.clone() | !a & b, all), [false, true, true, false]);
    }

    /// A traced queue: the measures equal the values computed by hand from its times.
    #[test]
    fn all_three_measures_are_exact_if_every_change_is_observed() {
        let condition = variable("queue").at_least(2) & !variable("flags").has_bit(0);
        let register = register(condition).with_auxiliary("queue", 8);
        let mut register = register.expect("it is there");
        let changes = [(1, [1, 0]), (2, [3, 0]), (4, [5, 0]), (5, [5, 1]), (7, [4, 0]), (8, [0, 0])];
        let edges = changes.map(|(at, state)| register.observe(Duration::from_secs(at), &state));
        let (entered, left) = (Some(Edge::Entered), Some(Edge::Left));
        assert_eq!(edges, [None, entered, None, left, entered, left]);
        let end = Duration::from_secs(10);
        assert_eq!(register.end_interval(end).count, 2);
        assert_eq!(register.values_on_entry().expect("asked for").values(), [3.0, 4.0]);
        // In the state from 2 to 5 and from 7 to 8.
        assert_eq!(register.fraction_of_time(end), Some(0.4));
    }

    #[test]
    fn an_unknown_variable_is_named_together_with_the_known_ones() {
        let condition = !(variable("queue").equals(1) & variable("disk").equals(1));
        let error =
            EventRegister::new(&VARIABLES, condition, Duration::ZERO).expect_err("no disk").to_string();
        assert!(error.contains("`disk`") && error.contains("queue, flags"), "{error}");
        let no_such = register(variable("queue").equals(1)).with_auxiliary("disk", 1);
        assert!(no_such.is_err());
    }

    #[test]
    fn an_observation_allocates_nothing() {
        let condition = variable("queue").at_least(2) | variable("flags").has_bit(1);
        let mut register = register(condition).with_auxiliary("flags", 4).expect("it is there");
        let counted = allocation_counter::measure(|| {
            for at in 0..100 {
                register.observe(Duration::from_secs(at), &[at % 5, at % 3]);
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}
