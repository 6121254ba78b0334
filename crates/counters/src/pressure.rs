//! Pressure: the time for which tasks were stalled for lack of a resource (Documentation/accounting/psi.rst).

use super::kernel_file;
use super::text::{parse_hundredths, parse_number, rest_of_line, skip_words};
use super::{Fault, Method, Reading};
use std::fmt::{Display, Formatter};
use std::fs::File;
use std::time::Duration;

/// A resource whose shortage the kernel measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// CPU time.
    Cpu,
    /// Memory.
    Memory,
    /// Block devices.
    Io,
    /// CPU time that interrupts take (since Linux 6.1, with interrupt time accounting).
    Interrupts,
}

/// All resources.
pub const RESOURCES: [Resource; 4] = [Resource::Cpu, Resource::Memory, Resource::Io, Resource::Interrupts];

impl Resource {
    /// The name of its file: `cpu`, `memory`, `io`, `irq`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
            Self::Interrupts => "irq",
        }
    }
}

impl Display for Resource {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The time for which tasks were stalled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalled {
    /// Total since boot, or since the control group was created.
    pub total: Duration,
    /// Share of the last ten seconds, percent; the kernel updates its averages every two seconds.
    pub ten_seconds: f64,
    /// Share of the last minute, percent.
    pub minute: f64,
    /// Share of the last five minutes, percent.
    pub five_minutes: f64,
}

/// The pressure on one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressed {
    /// Time for which at least one task was stalled. `None` for interrupts.
    pub some: Option<Stalled>,
    /// Time for which all tasks were stalled, so that no work was done. For CPUs it is 0 except in control groups.
    pub full: Option<Stalled>,
}

/// A handle for the pressure on one resource. It holds one descriptor.
#[derive(Debug)]
pub struct Pressure {
    resource: Resource,
    file: File,
}

impl Pressure {
    /// The pressure of the whole machine.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where the kernel was built without pressure information or started with `psi=0`.
    pub fn open(resource: Resource) -> Result<Self, Fault> {
        Self::open_unchecked(resource)?.ensure_supported()
    }

    fn open_unchecked(resource: Resource) -> Result<Self, Fault> {
        let file = kernel_file::open(format_args!("/proc/pressure/{resource}"));
        Ok(Self { resource, file: file.map_err(|fault| unsupported_if_absent(resource, fault))? })
    }

    /// The pressure of the control group with this directory.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub(super) fn open_for_group(directory: &str, resource: Resource) -> Result<Self, Fault> {
        let file = kernel_file::open(format_args!("{directory}/{resource}.pressure"));
        Self { resource, file: file.map_err(|fault| unsupported_if_absent(resource, fault))? }
            .ensure_supported()
    }

    /// Reads once: where pressure is switched off, the file can be opened but not read.
    fn ensure_supported(self) -> Result<Self, Fault> {
        match self.read() {
            Err(fault @ Fault::Unsupported(_)) => Err(unsupported_if_absent(self.resource, fault)),
            _ => Ok(self),
        }
    }

    /// The pressure at this moment.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the group was removed; [`Fault::Parse`] for an unknown format.
    pub fn read(&self) -> Result<Reading<Pressed>, Fault> {
        let pressed = self.read_and_parse(parse)?;
        Ok(Reading::now(pressed, STEP, Method::Pressure))
    }

    /// Total time for which at least one task was stalled; for interrupts, the time for which all tasks were.
    /// [`Percent::busy`](super::Percent::busy) of two such readings is the stalled share of the time between them.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn stalled_time(&self) -> Result<Reading<Duration>, Fault> {
        Ok(Reading::now(self.read_and_parse(parse_total)?, STALLED.total, Method::Pressure))
    }

    #[inline]
    fn read_and_parse<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, Fault> {
        let mut buffer = [0; ROOM];
        let text = kernel_file::read(&self.file, &mut buffer, || pressure_label(self.resource))?;
        parse(text).ok_or_else(|| Fault::parse_error(pressure_label(self.resource), "`some` or `full`", text))
    }
}

/// The pressure on a resource of the whole machine, read without a handle.
///
/// # Errors
/// The errors of [`Pressure::open`] and [`Pressure::read`].
pub fn read_pressure(resource: Resource) -> Result<Reading<Pressed>, Fault> {
    Pressure::open_unchecked(resource)?.read().map_err(|fault| unsupported_if_absent(resource, fault))
}

/// Space for two lines, each with a word, three averages and a total, bytes.
const ROOM: usize = 192;

const STALLED: Stalled =
    Stalled { total: Duration::from_micros(1), ten_seconds: 0.01, minute: 0.01, five_minutes: 0.01 };
const STEP: Pressed = Pressed { some: Some(STALLED), full: Some(STALLED) };

fn pressure_label(resource: Resource) -> String {
    format!("pressure on {resource}")
}

fn unsupported_if_absent(resource: Resource, fault: Fault) -> Fault {
    match fault {
        Fault::Gone(_) | Fault::Unsupported(_) => Fault::Unsupported(pressure_label(resource)),
        other => other,
    }
}

fn parse(text: &[u8]) -> Option<Pressed> {
    let stalled_after = |start: &[u8]| rest_of_line(text, start).map(parse_stalled);
    let (some, full) = (stalled_after(b"some"), stalled_after(b"full"));
    // A line may be missing, but a line that is present must have the known format.
    let known = |part: Option<Option<Stalled>>| part.is_none_or(|stalled| stalled.is_some());
    (known(some) && known(full) && some.or(full).is_some())
        .then(|| Pressed { some: some.flatten(), full: full.flatten() })
}

/// The total of the first line, which is `some` if there is such a line. The averages are skipped, since their parsing is
/// most of the cost.
fn parse_total(text: &[u8]) -> Option<Duration> {
    let total = skip_words(text, 4)?.strip_prefix(b" total=")?;
    Some(Duration::from_micros(parse_number(total)?.0))
}

fn parse_stalled(line: &[u8]) -> Option<Stalled> {
    let (ten_seconds, rest) = parse_average(line, b" avg10=")?;
    let (minute, rest) = parse_average(rest, b" avg60=")?;
    let (five_minutes, rest) = parse_average(rest, b" avg300=")?;
    let (total, _) = parse_number(rest.strip_prefix(b" total=")?)?;
    Some(Stalled { total: Duration::from_micros(total), ten_seconds, minute, five_minutes })
}

fn parse_average<'a>(text: &'a [u8], name: &[u8]) -> Option<(f64, &'a [u8])> {
    let (value, rest) = parse_hundredths(text.strip_prefix(name)?)?;
    Some((value as f64 / 100.0, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_read_and_one_may_be_missing() {
        let text = b"some avg10=1.14 avg60=27.89 avg300=0.05 total=354027098\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let pressed = parse(text).expect("two lines");
        let some = pressed.some.expect("a line");
        assert_eq!((some.ten_seconds, some.minute, some.five_minutes), (1.14, 27.89, 0.05));
        assert_eq!(some.total, Duration::from_micros(354_027_098));
        assert_eq!(pressed.full.expect("a line").total, Duration::from_micros(7));
        assert_eq!(parse_total(text), Some(some.total), "of the first");
        let interrupts = parse(b"full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").expect("a line");
        assert_eq!(interrupts.some, None);
        assert_eq!(parse(b""), None);
        assert_eq!(
            parse_total(b"full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"),
            Some(Duration::from_micros(7))
        );
        assert_eq!((parse(b"some avg10=x\n"), parse_total(b"some avg10=x\n")), (None, None));
    }

    #[test]
    fn offered_pressure_never_falls_and_missing_pressure_is_unsupported() {
        for resource in RESOURCES {
            match Pressure::open(resource) {
                Ok(pressure) => {
                    let before = pressure.stalled_time().expect("read");
                    let after = pressure.stalled_time().expect("read");
                    assert!(after.value >= before.value, "{resource}: {before:?} {after:?}");
                    assert!(read_pressure(resource).is_ok());
                }
                Err(fault) => assert!(
                    matches!(fault, Fault::Unsupported(_) | Fault::Denied { .. }),
                    "{resource}: {fault}"
                ),
            }
        }
    }
}
