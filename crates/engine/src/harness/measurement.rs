//! Criterion measurements: ticks of the calibrated clock, and counts of a perf event.

use crate::clock::{Clock, Nanoseconds, Ticks};
use crate::driver::open_counter;
use crate::error::Result;
use crate::platform::perf_event::{Counter, EVENTS};
use crate::record::quantity;
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};
use std::rc::Rc;

/// Criterion measurement of time by the processor's counter: counted in ticks, stored in nanoseconds as all readers of
/// Criterion's files expect, shown as both.
///
/// ```no_run
/// use criterion::{Criterion, criterion_group, criterion_main};
/// use syscost_engine::harness::CycleTime;
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
    formatter: Shown,
}

impl CycleTime {
    /// Calibrates a clock, which takes about 40 ms.
    pub fn start_up() -> Self {
        Self::with_clock(Rc::new(Clock::start_up()))
    }

    /// Measures by an existing clock.
    pub fn with_clock(clock: Rc<Clock>) -> Self {
        let formatter = Shown { unit: "ns", ticks_per_ns: Some(clock.hz() / 1e9) };
        Self { clock, formatter }
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

/// Criterion measurement that counts a perf event: core cycles, instructions, cache, TLB and branch misses where there is a
/// PMU; page faults, context switches and migrations everywhere.
pub struct EventCount {
    counter: Counter,
    formatter: Shown,
}

impl EventCount {
    /// Opens a counter of this thread for the event of this name, as in `perf list`.
    ///
    /// # Errors
    /// The event is unknown, or the machine or the kernel cannot count it.
    pub fn open(name: &str) -> Result<Self> {
        let counter = open_counter(name)?;
        let event = EVENTS.iter().find(|event| event.name == name);
        let unit = event.map_or("events", |event| event.name);
        Ok(Self { counter, formatter: Shown { unit, ticks_per_ns: None } })
    }

    /// The count, or a panic with the error's message. Criterion's trait cannot return an error, and would store
    /// any number as a measurement.
    fn count_or_panic(counted: Result<u64>) -> u64 {
        counted.unwrap_or_else(|error| std::panic::panic_any(error.to_string()))
    }
}

impl Measurement for EventCount {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        Self::count_or_panic(self.counter.read())
    }

    fn end(&self, start: u64) -> u64 {
        Self::count_or_panic(self.counter.count_since(start))
    }

    fn add(&self, a: &u64, b: &u64) -> u64 {
        a + b
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &self.formatter
    }
}

/// The harness's requirement beyond Criterion's trait: a value can be made from a count that the trial took.
pub(super) trait Counted: Measurement<Value: From<u64>> + 'static {}

impl<M: Measurement<Value: From<u64>> + 'static> Counted for M {}

/// Shows values in their unit, and times in ticks too. Throughput is a rate, so its interval is in ascending order.
struct Shown {
    unit: &'static str,
    /// Ticks per nanosecond, if the values are times.
    ticks_per_ns: Option<f64>,
}

impl ValueFormatter for Shown {
    fn format_value(&self, value: f64) -> String {
        match self.ticks_per_ns {
            Some(ticks) => {
                format!(
                    "{} ({} ticks)",
                    quantity::format_duration(value),
                    quantity::format_count(value * ticks)
                )
            }
            None => format!("{} {}", quantity::format_count(value), self.unit),
        }
    }

    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        self.unit
    }

    fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        scale_to_rates(throughput, if self.ticks_per_ns.is_some() { 1e9 } else { 1.0 }, values)
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        self.unit
    }
}

/// Replaces each value by amount · `per` / value and names the unit: per second for times (`per` 1e9), per event for counts.
fn scale_to_rates(throughput: &Throughput, per: f64, values: &mut [f64]) -> &'static str {
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
    use syscost_platform::testing::print_skipped;

    #[test]
    fn both_units_are_shown_and_decimals_kept() {
        let both = Shown { unit: "ns", ticks_per_ns: Some(2.6) };
        assert_eq!(both.format_value(0.3134), "0.3134 ns (0.8148 ticks)");
        let mut values = [0.25];
        assert_eq!(both.scale_for_machines(&mut values), "ns");
        assert_eq!(values, [0.25]);
    }

    #[test]
    fn throughput_is_a_rate() {
        let mut values = [2.0, 4.0];
        assert_eq!(scale_to_rates(&Throughput::Bytes(64), 1e9, &mut values), "B/s");
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
                print_skipped(&error.to_string());
                assert!(error.to_string().contains("PMU"), "{error}");
            }
        }
    }

    #[test]
    fn a_software_event_is_a_measurement() {
        let Ok(faults) = EventCount::open("page-faults") else {
            print_skipped("this kernel or sandbox refuses perf_event_open");
            return;
        };
        let start = faults.start();
        let mut memory = memmap2::MmapMut::map_anon(64 * 4096).expect("mapped");
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        assert!(faults.to_f64(&faults.end(start)) > 0.0);
    }
}
