//! The measuring end of a pair: one process that runs one case on one CPU, in turns that the driver requests.

use super::{BATCHES, LONGEST_REQUEST, Prepare, Ready, Request, Response, VERSION};
use crate::case::{Case, Cpus, Group, Lent, OwnTasks, Place, Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::environment::Fingerprint;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::json_line::{self, Lines, NoMessage};
use crate::platform::process::{self, inheritance};
use crate::platform::{arch, cpu, output};
use crate::record::EventRate;
use crate::record::quantity::INSTRUCTIONS;
use crate::trial::{self, Bench, CaseEnd, Trial, TurnSampler, scratch};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// Silence after which a driver counts as lost: far longer than the other side may take to prove its case.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Serves the driver's requests until it closes the input. An error is not printed, because it means that the driver has ended.
pub fn run_side_process(groups: &[Group]) -> Exit {
    let Ok(mut side) = Side::start() else { return Exit::failed_if(true) };
    for group in groups {
        for case in (group.cases)() {
            side.offer(group, group.id(&case), None, |_, _| Ok(case));
        }
    }
    side.end()
}

/// The connection to the driver, by the streams that were standard input and output. An operation may use the standard streams,
/// so these are taken away.
struct Driver {
    requests: File,
    lines: Lines,
    responses: File,
}

impl Driver {
    fn new() -> Result<Self> {
        let [requests, responses] = output::take_standard_streams()?;
        Ok(Self { requests, lines: Lines::new(LONGEST_REQUEST), responses })
    }

    /// The next request; `None` when the driver has closed the input.
    fn read_request(&mut self) -> Result<Option<Request>> {
        match self.lines.receive(&self.requests, Instant::now() + PATIENCE, &[]) {
            Err(NoMessage::Closed) => Ok(None),
            received => received.map(Some).map_err(|why| Error::Kernel {
                call: "read from the driver of a pair".into(),
                cause: io::Error::other(why),
            }),
        }
    }

    fn send_response(&mut self, response: &Response) -> Result<()> {
        let sent = json_line::send(&self.responses, response);
        sent.map_err(|cause| Error::Kernel { call: "write to the driver of a pair".into(), cause })
    }
}

fn send_end(ended: std::result::Result<(), CaseEnd>, driver: &mut Driver) -> Result<()> {
    // Drivers of this protocol version know three kinds: skipped, failed and disturbed.
    let end = match ended {
        Ok(()) | Err(CaseEnd::Interrupted) => return Ok(()),
        Err(CaseEnd::CutShort(sentence)) => CaseEnd::Failed(sentence),
        Err(CaseEnd::Contradicted(sentence)) => CaseEnd::Disturbed(sentence),
        Err(end) => end,
    };
    driver.send_response(&Response::Ended(end))
}

/// The ids of all cases of these groups, in table order.
pub fn case_ids(groups: &[Group]) -> Vec<String> {
    let group_ids = |group: &Group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>();
    groups.iter().flat_map(group_ids).collect()
}

/// The case of this id, with its group.
pub fn find_case<'a>(groups: &'a [Group], id: &str) -> Option<(&'a Group, Case)> {
    groups.iter().find_map(|group| {
        let case = (group.cases)().into_iter().find(|case| group.id(case) == id)?;
        Some((group, case))
    })
}

/// A side whose operations are offered one after another: the cases of groups, or operations that live on the stack
/// ([`InPlace`](crate::harness::InPlace)).
pub(crate) struct Side {
    driver: Driver,
    /// The first request; `None` if the driver has closed the input.
    request: Option<Request>,
    ids: Vec<String>,
    /// How the case ended.
    ended: Option<Result<()>>,
}

impl Side {
    /// Receives the first request.
    ///
    /// # Errors
    /// The driver has ended.
    pub(crate) fn start() -> Result<Self> {
        let mut driver = Driver::new()?;
        // If the kernel refuses this, a killed driver still closes the input, which ends this process after the current turn.
        let _ = process::die_with_parent();
        driver.send_response(&Response::Hello { version: VERSION, build: Fingerprint::build_sentence() })?;
        let request = driver.read_request()?;
        Ok(Self { driver, request, ids: Vec::new(), ended: None })
    }

    /// Runs the operation by turns if the driver has requested it; otherwise keeps only its id.
    pub(crate) fn offer(
        &mut self,
        group: &Group,
        id: String,
        lent: Option<Lent<'_>>,
        describe: impl FnOnce(&Clock, bool) -> Result<Case>,
    ) {
        let is_asked = |prepare: &&Prepare| prepare.case == id && self.ended.is_none();
        let Some(prepare) = self.prepare().filter(is_asked).cloned() else {
            self.ids.push(id);
            return;
        };
        let is_slowed = prepare.spin > 0.0;
        let slow = |lent| RefCell::new(Slowed { subject: Box::new(lent), additions: prepare.spin });
        let slowed = lent.filter(|_| is_slowed).map(slow);
        let lent = slowed.as_ref().map(|slowed| Lent(slowed)).or(lent);
        let describe = |clock: &Clock| describe(clock, !prepare.prove);
        let ended = run_case_by_turns(group, lent, describe, &prepare, &mut self.driver);
        self.ended = Some(send_end(ended, &mut self.driver));
    }

    /// The settings of the case to run by turns, if the driver has requested one.
    fn prepare(&self) -> Option<&Prepare> {
        if let Some(Request::Prepare(prepare)) = &self.request { Some(prepare) } else { None }
    }

    /// Ends the side after every operation was offered: sends the last response, and returns how the process exits.
    pub(crate) fn end(&mut self) -> Exit {
        let sent = match (&self.request, self.ended.take()) {
            (_, Some(ended)) => ended,
            (Some(Request::Prepare(Prepare { case, .. })), None) => {
                let end = CaseEnd::Skipped(format!("this build has no case {case}"));
                send_end(Err(end), &mut self.driver)
            }
            (Some(Request::Cases), None) => {
                self.driver.send_response(&Response::Cases(std::mem::take(&mut self.ids)))
            }
            _ => Ok(()),
        };
        Exit::failed_if(sent.is_err())
    }
}

fn run_case_by_turns(
    group: &Group,
    lent: Option<Lent<'_>>,
    describe: impl FnOnce(&Clock) -> Result<Case>,
    prepare: &Prepare,
    driver: &mut Driver,
) -> std::result::Result<(), CaseEnd> {
    let clock = Clock::with_scale(prepare.clock);
    let clock = if prepare.sampled { clock.for_stack_sampling() } else { clock };
    // Called before this process is pinned, so that threads which a lent operation starts may run on any CPU.
    let case = describe(&clock)?;
    let case = if prepare.spin > 0.0 && lent.is_none() { slow_case(case, prepare.spin) } else { case };
    let allowed = cpu::allowed_cpus();
    let (cpu, mut notes) = pin_to_cpu(prepare.cpu);
    let is_free = lent.is_some() && case.own_tasks == OwnTasks::Elsewhere;
    if is_free {
        cpu::allow_cpus(&allowed)?;
    }
    let scratch = scratch::make_directory()?;
    let place = Place {
        scratch: scratch.path().to_path_buf(),
        scale: prepare.scale,
        cpus: Cpus::from_allowed(Some(cpu), allowed),
    };
    let pinned = Some(cpu).filter(|_| !is_free);
    let bench = Bench { place: &place, clock: &clock, pinned, lent, other_copies: None };
    if prepare.instructions {
        let measured = trial::measure_instructions(&case, bench, !prepare.prove, None)?;
        let counted = EventRate { name: INSTRUCTIONS.into(), rate: Some(measured.median), remark: None };
        let counts = measured.events.into_iter().chain([counted]).collect();
        let (version, evidence) = (group.version_text(), measured.evidence);
        let ready = Response::Ready(Ready { version, cpu, notes, evidence, counts, ..Ready::default() });
        return Ok(driver.send_response(&ready)?);
    }
    // Opened before the set-up, so that children which it makes are sampled too.
    let sampler = prepare.sampled.then(|| TurnSampler::open(bench.pinned, clock.core_hz())).transpose()?;
    let mut trial = prepare_trial(&case, bench, prepare.prove)?;
    if prepare.prove {
        trial.count_allocations()?;
    }
    // The batch that is sized in the first pair sets the length of the turns of all pairs.
    let batch = if prepare.prove { Some(trial.size_batch(prepare.batch_ns, BATCHES)?) } else { None };
    let evidence = trial.evidence().to_vec();
    notes.extend(trial.unchecked_claims().iter().map(|sentence| format!("not asked: {sentence}")));
    driver.send_response(&Response::Ready(Ready {
        version: group.version_text(),
        cpu,
        iteration_ns: batch.map_or(0.0, |batch| batch.wall_ns / batch.iterations as f64),
        iterations: batch.map_or(0, |batch| batch.iterations),
        evidence,
        notes,
        counts: trial.counts().to_vec(),
    }))?;
    trial.sample_turns(sampler);
    serve_turns(&mut trial, driver)
}

/// Sets the case up and, if `prove` is true, proves it.
fn prepare_trial<'a>(
    case: &'a Case,
    bench: Bench<'a>,
    prove: bool,
) -> std::result::Result<Trial<'a>, CaseEnd> {
    trial::repeat_while_disturbed(|| {
        trial::under_one_clock_source(|| {
            let mut trial = Trial::prepare(case, bench, None)?;
            if prove {
                trial.prove_operation()?;
            }
            Ok(trial)
        })
    })
}

fn serve_turns(trial: &mut Trial<'_>, driver: &mut Driver) -> std::result::Result<(), CaseEnd> {
    loop {
        let response = match driver.read_request()? {
            Some(Request::Turn { iterations, batches }) => {
                Response::Turn(trial.run_turn(iterations, batches)?)
            }
            Some(Request::Samples) => Response::Samples(trial.sampled_stacks().unwrap_or_default()),
            _ => return Ok(()),
        };
        driver.send_response(&response)?;
    }
}

/// Pins the process to the CPU that the driver names or, where a wrapper forbids it, to the last allowed one, and
/// prepares its memory. Returns the CPU and notes.
fn pin_to_cpu(wanted: usize) -> (usize, Vec<String>) {
    let mut notes = Vec::from_iter(inheritance::prepare_measuring_process());
    let allowed = cpu::allowed_cpus();
    let last = allowed.iter().copied().max();
    let chosen = if allowed.contains(&wanted) { wanted } else { last.unwrap_or(wanted) };
    if chosen != wanted {
        notes.push(format!("CPU {wanted} is not allowed to this side: it runs on CPU {chosen}"));
    }
    if let Err(error) = cpu::pin_thread(chosen) {
        notes.push(format!("not pinned to a CPU: {error}"));
    }
    notes.extend(trial::prepare_memory());
    (chosen, notes)
}

/// The case with a slowdown of known size: after each batch it times `additions` dependent additions per iteration and adds
/// that time to the batch.
fn slow_case(mut case: Case, additions: f64) -> Case {
    let set_up = case.set_up;
    case.set_up = Box::new(move |place: &Place| Ok(Box::new(Slowed { subject: set_up(place)?, additions })));
    case
}

struct Slowed<'a> {
    subject: Box<dyn Subject + 'a>,
    additions: f64,
}

impl Subject for Slowed<'_> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = self.subject.run(iterations, clock)?;
        let start = clock.start();
        std::hint::black_box(arch::add_chain((iterations as f64 * self.additions).round() as u64));
        Ok(Ticks(ticks.0 + (clock.stop() - start).0))
    }

    fn report(&self) -> Report {
        self.subject.report()
    }
}
