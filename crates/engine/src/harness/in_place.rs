//! Bench targets whose operations borrow from the stack of the functions that make them, so that no list of cases can hold
//! them. `syscost-criterion` uses this module.
//!
//! The user's functions run once in every process, and *offer* their operations one after another. The driver collects their
//! names; [`InPlace::finish`] then starts the same program again to measure. The measuring process measures each wanted
//! operation while its function is on the stack.

use super::measuring::{Assigned, GroupProcess};
use super::{driver_settings, failed_exit};
use crate::case::{Case, Derived, Group, Lent, Rule, set_up};
use crate::clock::{Clock, Ticks};
use crate::driver::{self, Arguments, Mode, Options, Work, report_error};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::pair::{is_side_process, side::Side};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One operation, as far as it is known before its first call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// Its id without the group.
    pub name: String,
    /// The amount that an iteration processes, from which rates are computed.
    pub work: Vec<Work>,
}

/// The operations of this process, in the order in which they were offered. A static, because [`Group::cases`] is a function
/// without arguments.
static OFFERS: Mutex<Vec<Offer>> = Mutex::new(Vec::new());

/// One pass over the functions of a bench target, in a driver, a measuring process or a side.
pub struct InPlace {
    group: Group,
    role: Role,
}

enum Role {
    Driver(Box<(Arguments, Options)>),
    /// The second field says whether measuring continues: a signal or an error ends it.
    Measuring(Box<(GroupProcess, Assigned)>, Result<bool>),
    Side(Side),
}

impl InPlace {
    /// Begins the pass of this bench target.
    ///
    /// # Errors
    /// The exit code, if the process must end at once: it had another task, which is done, or it failed, which was reported.
    pub fn start(name: &'static str) -> std::result::Result<Self, Exit> {
        let group = Group::new(name, "", || lock_offers().iter().map(Offer::to_case).collect());
        let role = Role::start(&group).unwrap_or_else(|error| Err(failed_exit(&error)))?;
        Ok(Self { group, role })
    }

    /// Offers an operation. If this process measures it, `describe` makes its case: it is given the clock, and whether an earlier
    /// process has proved the case, and may call the operation.
    pub fn offer(
        &mut self,
        offer: Offer,
        subject: Lent<'_>,
        describe: impl FnOnce(&Clock, bool) -> Result<Case>,
    ) {
        let id = format!("{}/{}", self.group.name, offer.name);
        match &mut self.role {
            Role::Driver(_) => lock_offers().push(offer),
            Role::Measuring(process, ended) => {
                let (measuring, assigned) = &mut **process;
                let Some(proven) = assigned.may_begin(&id).filter(|_| matches!(ended, Ok(true))) else {
                    return;
                };
                *ended = measuring.measure(id, Some(subject), |clock| describe(clock, proven), assigned);
                measuring.unpin();
            }
            Role::Side(side) => side.offer(&self.group, id, Some(subject), describe),
        }
    }

    /// Ends the pass: every operation was offered. In the driver this measures, and prints `notes` at the end. `ends_here`
    /// means that no function of the bench is left on the stack. The driver then executes its program anew (execve), which
    /// releases ports and locks of the bench: the measuring process runs the same functions and needs them.
    pub fn finish(mut self, notes: &[String], ends_here: bool) -> Exit {
        match &self.role {
            Role::Driver(settings) => {
                let (arguments, options) = &**settings;
                if ends_here && arguments.mode != Mode::List {
                    let offers = std::mem::take(&mut *lock_offers());
                    // If the kernel refuses this, the process continues as it is.
                    let _ = driver::begin_anew(&(&offers, notes));
                    *lock_offers() = offers;
                }
                drive(self.group, arguments, options, notes).unwrap_or_else(|error| failed_exit(&error))
            }
            _ => self.end(Ok(())),
        }
    }

    /// Ends a process whose functions panicked before all operations were offered.
    pub fn break_off(mut self, payload: Box<dyn std::any::Any + Send>) -> Exit {
        match self.role {
            // As any other program: the panic has been printed.
            Role::Driver(_) => std::panic::resume_unwind(payload),
            _ => self.end(Err(payload)),
        }
    }

    /// Ends a process that measures.
    fn end(&mut self, functions: std::thread::Result<()>) -> Exit {
        match &mut self.role {
            Role::Driver(_) => Exit::Success,
            Role::Measuring(process, ended) => {
                let (measuring, assigned) = &mut **process;
                let measured = std::mem::replace(ended, Ok(false)).map(drop);
                let closed = functions.map(|()| measured.and_then(|()| measuring.close(assigned)));
                assigned.conclude(closed).unwrap_or(Exit::Disproved)
            }
            Role::Side(side) => side.end(),
        }
    }
}

impl Role {
    fn start(group: &Group) -> Result<std::result::Result<Self, Exit>> {
        if is_side_process() {
            return Ok(Ok(Self::Side(Side::start()?)));
        }
        if driver::is_measuring_process() {
            let mut assigned = Assigned::receive()?;
            return Ok(match GroupProcess::open(group, &mut assigned) {
                Ok(Some(measuring)) => {
                    measuring.unpin();
                    Ok(Self::Measuring(Box::new((measuring, assigned)), Ok(true)))
                }
                Ok(None) => Err(Exit::Success),
                Err(error) => Err(assigned.conclude(Ok(Err(error)))?),
            });
        }
        let Some((arguments, options)) = driver_settings()? else { return Ok(Err(Exit::Success)) };
        let Some((offers, notes)) = driver::read_handed_over::<(Vec<Offer>, Vec<String>)>()? else {
            return Ok(Ok(Self::Driver(Box::new((arguments, options)))));
        };
        *lock_offers() = offers;
        drive(*group, &arguments, &options, &notes).map(Err)
    }
}

impl Offer {
    /// Returns its case, without claims. The operation can only be measured where it lives, so the set-up of the case fails.
    pub fn to_case(&self) -> Case {
        let elsewhere = set_up(|_| -> Result<fn(u64, &Clock) -> Result<Ticks>> {
            Err(Error::Missing("the operation lives on the stack of the function that offers it".into()))
        });
        let derived = self.work.iter().map(|work| match *work {
            Work::Bytes(bytes) => Derived { name: "bandwidth", rule: Rule::Bandwidth(bytes) },
            Work::Elements(elements) => Derived { name: "throughput", rule: Rule::Elements(elements) },
        });
        Case { derived: derived.collect(), ..Case::new(&self.name, &self.name, elsewhere) }
    }
}

fn lock_offers() -> MutexGuard<'static, Vec<Offer>> {
    OFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures the offered operations, as Criterion's command line requests. Its filter may leave out the name of the bench
/// target, and need not match anything: `cargo bench` hands it to every target.
fn drive(group: Group, arguments: &Arguments, options: &Options, notes: &[String]) -> Result<Exit> {
    let mut arguments = arguments.clone();
    if arguments.filter.is_some() {
        let is_wanted = arguments.matcher()?;
        let names = (group.cases)().into_iter().map(|case| case.name);
        let wanted = names.filter(|name| is_wanted(name) || is_wanted(&format!("{}/{name}", group.name)));
        let wanted: Vec<_> = wanted.map(|name| regex::escape(&format!("{}/{name}", group.name))).collect();
        if wanted.is_empty() {
            return Ok(Exit::Success);
        }
        arguments.filter = Some(format!("^({})$", wanted.join("|")));
        arguments.exact = false;
    }
    let exit = driver::run(&[group], &arguments, options)?;
    if arguments.mode == Mode::Measure {
        notes.iter().for_each(report_error);
    }
    Ok(exit)
}
