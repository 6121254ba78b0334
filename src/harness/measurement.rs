//! Criterion measurements: ticks of the calibrated clock, and counts of a perf event.

use crate::clock::{Clock, Nanoseconds, Ticks};
use crate::platform::perf_event::{Counter, EVENTS};
use crate::record::quantity;
use crate::{Error, Result};
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};
use std::cell::Cell;
use std::rc::Rc;

/// Time by the processor's counter: counted in ticks, stored in nanoseconds (so that every tool that reads
/// Criterion's files reads ours truly), shown as both.
///
/// ```no_run
/// use criterion::{Criterion, criterion_group, criterion_main};
/// use syscost::harness::CycleTime;
///
/// fn bench(c: &mut Criterion<CycleTime>) {
///     c.bench_function("fold", |b| b.iter(|| (1..100u64).fold(0, |a, b| a ^ b)));
/// }
///
/// criterion_group!(name = benches;
///     config = Criterion::default().with_measurement(CycleTime::start_up()); targets = bench);
/// criterion_main!(benches);
/// ```
pub struct CycleTime {
    clock: Rc<Clock>,
    phase: Cell<u32>,
    formatter: Both,
}

impl CycleTime {
    /// Calibrates a clock, which takes some 40 ms.
    pub fn start_up() -> Self {
        Self::with(Rc::new(Clock::start_up()))
    }

    /// Measures by a clock that exists already.
    pub fn with(clock: Rc<Clock>) -> Self {
        let formatter = Both { ticks_per_ns: clock.hz() / 1e9 };
        Self { clock, phase: Cell::new(0), formatter }
    }
}

impl Measurement for CycleTime {
    type Intermediate = Ticks;
    type Value = Ticks;

    fn start(&self) -> Ticks {
        self.clock.start()
    }

    fn end(&self, start: Ticks) -> Ticks {
        self.clock.stop() - start
    }

    fn add(&self, a: &Ticks, b: &Ticks) -> Ticks {
        *a + *b
    }

    fn zero(&self) -> Ticks {
        self.phase.set(self.phase.get() + 1);
        Ticks(0)
    }

    fn to_f64(&self, value: &Ticks) -> f64 {
        let Nanoseconds(ns) = self.clock.nanoseconds(*value);
        ns
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &self.formatter
    }
}

/// Counts of a perf event: core cycles, instructions, cache, TLB and branch misses where there is a PMU;
/// page faults, context switches and migrations everywhere.
pub struct EventCount {
    counter: Counter,
    phase: Cell<u32>,
    name: &'static str,
}

impl EventCount {
    /// A counter of this thread, by its name in `perf list`.
    ///
    /// # Errors
    /// Says which names there are, or that the machine has no PMU.
    pub fn open(name: &str) -> Result<Self> {
        let counter = open_counter(name)?;
        let event = EVENTS.iter().find(|event| event.name == name);
        Ok(Self { counter, phase: Cell::new(0), name: event.map_or("events", |event| event.name) })
    }

    fn count(&self) -> u64 {
        // A counter that could be opened can be read; if not, nothing was counted and Criterion drops it.
        self.counter.read().unwrap_or(0)
    }
}

/// Opens the counter of this name.
pub(super) fn open_counter(name: &str) -> Result<Counter> {
    let Some(event) = EVENTS.iter().find(|event| event.name == name) else {
        let names: Vec<_> = EVENTS.iter().map(|event| event.name).collect();
        return Err(Error::Usage(format!("there is no event {name}; there are {}", names.join(", "))));
    };
    Counter::open(*event).map_err(|error| match event.hardware {
        true => Error::Usage(format!(
            "{name} is counted by the processor's PMU, which this machine does not offer ({error}); \
             page-faults and context-switches are counted by the kernel and work everywhere"
        )),
        false => Error::Usage(format!(
            "{name} is counted by the kernel, which refuses it here ({error}): lower \
             /proc/sys/kernel/perf_event_paranoid, or leave the sandbox that forbids it"
        )),
    })
}

impl Measurement for EventCount {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        self.count()
    }

    fn end(&self, start: u64) -> u64 {
        self.count().saturating_sub(start)
    }

    fn add(&self, a: &u64, b: &u64) -> u64 {
        a + b
    }

    fn zero(&self) -> u64 {
        self.phase.set(self.phase.get() + 1);
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

/// What the harness needs of a measurement beyond Criterion's trait.
pub(super) trait Counted: Measurement + 'static {
    /// A count that was taken elsewhere, as a value.
    fn value(&self, counted: u64) -> Self::Value;

    /// How often Criterion has asked for a zero. It does so at the beginning of the warm-up and again at the
    /// beginning of the sampling (criterion 0.8, `Function::warm_up` and `bench`), which is the only sign by
    /// which the two can be told apart.
    fn phase(&self) -> u32;
}

impl Counted for CycleTime {
    fn value(&self, counted: u64) -> Ticks {
        Ticks(counted)
    }

    fn phase(&self) -> u32 {
        self.phase.get()
    }
}

impl Counted for EventCount {
    fn value(&self, counted: u64) -> u64 {
        counted
    }

    fn phase(&self) -> u32 {
        self.phase.get()
    }
}

/// Shows nanoseconds and ticks. Everything about throughput is a rate, so that its interval runs upward.
struct Both {
    ticks_per_ns: f64,
}

impl ValueFormatter for Both {
    fn format_value(&self, ns: f64) -> String {
        format!("{} ({} ticks)", quantity::duration(ns), quantity::count(ns * self.ticks_per_ns))
    }

    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "ns"
    }

    fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        rate(throughput, 1e9, values)
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "ns"
    }
}

impl ValueFormatter for EventCount {
    fn format_value(&self, value: f64) -> String {
        format!("{} {}", quantity::count(value), self.name)
    }

    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        self.name
    }

    fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        rate(throughput, 1.0, values)
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        self.name
    }
}

/// Amount over value: a second's worth for times, one event's worth for counts.
fn rate(throughput: &Throughput, per: f64, values: &mut [f64]) -> &'static str {
    let (amount, unit) = match *throughput {
        Throughput::Bits(n) => (n, "b/s"),
        Throughput::Bytes(n) | Throughput::BytesDecimal(n) => (n, "B/s"),
        Throughput::Elements(n) | Throughput::ElementsAndBytes { elements: n, .. } => (n, "elem/s"),
    };
    values.iter_mut().for_each(|value| *value = amount as f64 * per / *value);
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_units_are_shown_and_decimals_kept() {
        let both = Both { ticks_per_ns: 2.6 };
        assert_eq!(both.format_value(0.3134), "0.3134 ns (0.8148 ticks)");
        let mut values = [0.25];
        assert_eq!(both.scale_for_machines(&mut values), "ns");
        assert_eq!(values, [0.25]);
    }

    #[test]
    fn throughput_is_a_rate() {
        let mut values = [2.0, 4.0];
        assert_eq!(rate(&Throughput::Bytes(64), 1e9, &mut values), "B/s");
        assert_eq!(values, [32e9, 16e9]);
    }

    #[test]
    fn an_unknown_event_lists_those_that_exist() {
        let error = EventCount::open("unicorns").err().expect("no such event").to_string();
        assert!(error.contains("page-faults"), "{error}");
    }

    #[test]
    fn a_pmu_is_there_or_its_absence_is_a_sentence() {
        match EventCount::open("cpu-cycles") {
            Ok(cycles) => assert!(cycles.end(cycles.start()) > 0),
            Err(error) => {
                println!("skipped: {error}");
                assert!(error.to_string().contains("PMU"), "{error}");
            }
        }
    }

    #[test]
    fn a_software_event_is_a_measurement() {
        let Ok(faults) = EventCount::open("page-faults") else {
            println!("skipped: this kernel or sandbox refuses perf_event_open");
            return;
        };
        let start = faults.start();
        let mut memory = memmap2::MmapMut::map_anon(64 * 4096).expect("mapped");
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        assert!(faults.to_f64(&faults.end(start)) > 0.0);
    }
}
