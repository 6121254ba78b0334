//! Subjects that do not do what they claim, each caught by the claim that must catch it.

use super::*;
use crate::case::Case;
use crate::clock::Reading;
use crate::platform::arch::register_loop;
use crate::platform::shared::Words;
use crate::platform::syscall::RawCall;
use crate::platform::testing::print_skipped;
use std::hint::black_box;
use std::sync::atomic::Ordering::SeqCst;

type Sentences = Vec<String>;

#[inline(never)]
fn callee(argument: u64) -> u64 {
    black_box(argument)
}

/// Executes few instructions in a debug build too, since they are stepped through.
fn call_repeatedly(n: u64) {
    let mut left = n;
    while left > 0 {
        callee(left);
        left -= 1;
    }
}

fn callee_address() -> usize {
    callee as fn(u64) -> u64 as usize
}

fn witnessed(case: &Case) -> Result<Sentences, CaseEnd> {
    let clock = Clock::start_up();
    let mut liar = set_up_subject(case);
    let held = |judgement| match judgement {
        Judgement::Held(sentence) => sentence,
        Judgement::Unasked(sentence) => panic!("not asked: {sentence}"),
    };
    judge_by_witness(case, &mut *liar, &clock)
        .map(|(_, judgements)| judgements.into_iter().map(held).collect())
}

fn set_up_subject(case: &Case) -> Box<dyn Subject> {
    let place = crate::case::Place {
        scratch: std::env::temp_dir(),
        scale: crate::case::Scale::Smoke,
        cpus: Default::default(),
    };
    (case.set_up)(&place).expect("set up")
}

/// The first sweep that was not disturbed: other tests run at the same time. `None` if each of four was.
fn swept(case: &Case, control: Option<fn(u64)>) -> Option<Result<Sentences, CaseEnd>> {
    let clock = Clock::start_up();
    let once = || {
        let mut control = control.map(|turns| set_up_subject(&Case::looped("control", "", turns)));
        let control: Option<&mut dyn Subject> = match &mut control {
            Some(control) => Some(&mut **control),
            None => None,
        };
        let effort = Effort::Proof(crate::case::Scale::Default);
        sweep_and_judge(case, &mut *set_up_subject(case), control, &clock, effort)
            .map(|(_, sentences)| sentences)
    };
    let undisturbed = (0..4).map(|_| once()).find(|end| !matches!(end, Err(CaseEnd::Disturbed(_))));
    if undisturbed.is_none() {
        print_skipped("other programs disturb this machine so much that no sweep can be judged");
    }
    undisturbed
}

fn sentence(end: Result<Sentences, CaseEnd>) -> String {
    match end {
        Err(CaseEnd::Failed(sentence) | CaseEnd::Contradicted(sentence)) => sentence,
        other => panic!("the lie was believed: {other:?}"),
    }
}

/// Wanted length of the smallest batch, ns.
const UNIT_NS: f64 = 10_000.0;

/// A sweep of batches that take this long whatever their length, ns.
fn flat_sweep(overhead: f64) -> Sweep {
    let (slope, intercept, doubling) =
        (Interval::default(), Interval::exactly(overhead), Interval::exactly(2.0));
    Sweep { slope, slope_quartile: 0.0, intercept, control: None, net: None, ratio: None, doubling, unit: 8 }
}

#[test]
fn only_a_slope_that_excludes_growth_is_contradicted() {
    // A batch of 32 iterations takes this overhead and 32 times the slope.
    let judged_above = |overhead, low, estimate, high| {
        let slope = Interval { estimate, low, high };
        let slope_quartile = (estimate + high) / 2.0;
        check_time_grows(&Sweep { slope, slope_quartile, ..flat_sweep(overhead) }, UNIT_NS)
    };
    let judged = |low, estimate, high| judged_above(3_200.0, low, estimate, high);
    assert_eq!(judged(1.0, 50.0, 90.0), Ok(()));
    assert!(matches!(judged(-12.0, 17.0, 66.0), Err(CaseEnd::Disturbed(_))));
    assert!(matches!(judged(-0.1, 0.0, 0.1), Err(CaseEnd::Contradicted(_))));
    assert!(matches!(judged(-90.0, -50.0, -1.0), Err(CaseEnd::Contradicted(_))), "it shrinks");
    let small_share = judged_above(32_000.0, -10.0, 20.0, 100.0);
    assert!(matches!(small_share, Err(CaseEnd::Contradicted(_))), "most is overhead: {small_share:?}");
    assert!(
        matches!(judged_above(0.0, -0.1, 0.0, 0.1), Err(CaseEnd::Contradicted(_))),
        "no time is reported"
    );
    let interrupted = Sweep {
        slope: Interval { estimate: 0.0, low: -50.0, high: 900.0 },
        slope_quartile: 4.0,
        ..flat_sweep(60.0)
    };
    assert!(
        matches!(check_time_grows(&interrupted, UNIT_NS), Err(CaseEnd::Contradicted(_))),
        "{interrupted:?}"
    );
}

#[test]
fn rounds_that_contradict_each_other_are_disturbed_and_not_contradicted() {
    let judged = |low, estimate, high| {
        judge_doubling(&Sweep { doubling: Interval { estimate, low, high }, ..flat_sweep(0.0) })
    };
    assert!(judged(1.5, 2.1, 2.5).is_ok());
    for (low, estimate, high) in [(2.3, 2.7, 2.8), (0.0, 1.0, 1.7)] {
        assert!(matches!(judged(low, estimate, high), Err(CaseEnd::Contradicted(_))));
    }
    // The last two have the right estimate, but their intervals exclude neither a parabola nor a remembered result.
    for (low, estimate, high) in [(2.1, 2.7, 2.8), (0.0, 1.0, 1.9), (1.9, 2.1, 2.8), (1.0, 2.0, 2.1)] {
        assert!(matches!(judged(low, estimate, high), Err(CaseEnd::Disturbed(_))));
    }
}

#[test]
fn large_batches_that_cost_a_fraction_or_a_multiple_are_contradicted() {
    let case = Case::looped("case", "", |_| ()).claim(Claim::Linear);
    let slope = Interval { estimate: 100.0, low: 98.0, high: 102.0 };
    let judged = |large, iterations| judge_large_batches(&case, slope, 64, large, iterations);
    for large in [[100.0, 101.0], [149.0, 151.0], [60.0, 90.0], [170.0, 300.0]] {
        assert!(matches!(judged(large, 640), Ok(Some(_))), "{large:?}");
    }
    for large in [[1.0, 2.0], [50.0, 52.0], [400.0, 410.0]] {
        assert!(matches!(judged(large, 640), Err(CaseEnd::Contradicted(_))), "{large:?}");
        assert_eq!(judged(large, 32), Ok(None), "a small batch");
    }
}

#[test]
fn an_inlined_call_is_caught_by_the_witness() {
    let liar = Case::looped("inlined", "", register_loop).claim(Claim::Calls(callee_address));
    assert!(sentence(witnessed(&liar)).contains("inlined"));
}

#[test]
fn an_inlined_call_costs_no_more_than_its_control() {
    let liar = Case::looped("inlined", "", register_loop).claim(Claim::AboveControl);
    // Of two equal loops one may be judged longer by chance, as rarely as the interval says; this control is longer for
    // certain.
    let control = |n: u64| register_loop(2 * n);
    let Some(swept) = swept(&liar, Some(control)) else { return };
    assert!(sentence(swept).contains("no more than the same loop without it"));
}

#[test]
fn a_loop_that_was_optimised_away_is_caught() {
    let nothing = |n: u64| _ = std::hint::black_box(n);
    let liar = Case::looped("nothing", "", nothing).claim(Claim::Linear);
    let Some(swept) = swept(&liar, None) else { return };
    let said = sentence(swept);
    assert!(said.contains("does not grow") || said.contains("not proportional"), "{said}");
    let liar = Case::looped("nothing", "", nothing).claim(Claim::Executes(2.0));
    assert!(sentence(witnessed(&liar)).contains("optimised away"));
}

#[test]
fn a_system_call_that_never_enters_the_kernel_is_caught() {
    // Few instructions in a debug build, too: they are stepped through, on any machine.
    let remembered = crate::platform::arch::register_loop;
    let liar =
        Case::looped("getpid", "", remembered).claim(Claim::Enters(vec![("getpid", libc::SYS_getpid)]));
    assert!(sentence(witnessed(&liar)).contains("getpid 0 times in 64 iterations"));
}

#[test]
fn another_call_than_the_named_one_is_caught() {
    let other = |n: u64| _ = RawCall::getppid().repeat(n);
    let liar = Case::looped("getpid", "", other).claim(Claim::Enters(vec![("getpid", libc::SYS_getpid)]));
    assert!(sentence(witnessed(&liar)).contains("not entered as claimed"));
    let liar = Case::looped("vdso", "", other).claim(Claim::NeverEnters);
    assert!(sentence(witnessed(&liar)).contains("claimed not to happen"));
}

#[test]
fn work_that_grows_faster_than_its_iterations_is_caught() {
    let square = |n: u64| crate::platform::arch::register_loop(n * n);
    let liar = Case::looped("square", "", square).claim(Claim::Linear);
    let Some(swept) = swept(&liar, None) else { return };
    assert!(sentence(swept).contains("not proportional"));
}

#[test]
fn an_honest_case_gives_evidence() {
    let honest =
        Case::looped("call", "", call_repeatedly).claim(Claim::Calls(callee_address)).claim(Claim::Linear);
    let evidence = witnessed(&honest).expect("honest");
    assert!(evidence[0].starts_with("the callee was entered "), "{evidence:?}");
    let Some(swept) = swept(&honest, None) else { return };
    assert!(swept.expect("honest")[0].contains("times as long"));
}

fn delta(change: impl FnOnce(&mut Delta)) -> Delta {
    let mut delta = Delta { counted: Reading { cpu: 3, ..Default::default() }, ..Delta::default() };
    change(&mut delta);
    delta
}

fn any_case() -> Case {
    Case::looped("any", "", register_loop)
}

fn disturbance<T: std::fmt::Debug>(end: Result<T, CaseEnd>) -> String {
    match end {
        Err(CaseEnd::Disturbed(sentence)) => sentence,
        other => panic!("believed: {other:?}"),
    }
}

#[test]
fn a_thread_that_was_moved_is_caught() {
    let moved = delta(|d| d.counted.cpu = 1);
    let sentence = disturbance(judge_sample(&any_case(), &moved, 1, Some(3)));
    assert!(sentence.contains("kept on CPU 3 and ran on CPU 1"), "{sentence}");
    assert_eq!(
        judge_sample(&any_case(), &moved, 1, None),
        Ok(Vec::new()),
        "a case that is not pinned may move"
    );
}

#[test]
fn a_throttled_sample_is_caught() {
    let throttled = delta(|d| d.counted.throttled = Some(2));
    let sentence = disturbance(judge_sample(&any_case(), &throttled, 1, None));
    assert!(sentence.contains("cpu.max"), "{sentence}");
}

#[test]
fn a_host_that_takes_the_time_is_caught() {
    let stolen = |ticks| Sample {
        iterations: 1,
        counted: 1,
        elapsed_ns: 100e6,
        delta: delta(|d| d.counted.stolen_ticks = Some(ticks)),
        ..Sample::default()
    };
    assert!(judge_interference(&any_case(), &[stolen(1), stolen(0)]).is_ok());
    let sentence = disturbance(judge_interference(&any_case(), &[stolen(5), stolen(5)]));
    assert!(sentence.contains("50 %"), "{sentence}");
}

#[test]
fn a_cpu_that_others_use_is_caught() {
    let waited = |ns| Sample {
        iterations: 1,
        counted: 1,
        elapsed_ns: 1e6,
        delta: delta(|d| d.counted.waited_ns = Some(ns)),
        ..Sample::default()
    };
    let burst = Sample { counted: 2, ..waited(1_000_000) };
    assert!(
        judge_interference(&any_case(), &[burst, waited(0), waited(0)]).is_ok(),
        "a burst does not touch the quickest"
    );
    let sentence = disturbance(judge_interference(&any_case(), &[waited(500_000), waited(500_000)]));
    assert!(sentence.contains("50 %"), "{sentence}");
}

#[test]
fn an_operation_that_dies_under_the_witness_is_caught() {
    let here = std::process::id();
    let mortal = move |_: u64| {
        if std::process::id() != here {
            std::process::abort()
        }
    };
    let liar = Case::looped("mortal", "", mortal).claim(Claim::Executes(1_000.0));
    assert!(sentence(witnessed(&liar)).contains("did not survive"));
}

#[test]
fn without_a_witness_the_kernels_accounting_catches_the_lie() {
    let charged = |user_us, system_us| {
        let delta = delta(|d| (d.counted.user_us, d.counted.system_us) = (user_us, system_us));
        [Sample { iterations: 1, counted: 1, elapsed_ns: 1.0, delta, ..Sample::default() }]
    };
    let enters = Case::looped("getpid", "", register_loop).claim(Claim::Enters(vec![("getpid", 39)]));
    assert!(judge_by_accounting(&enters, &charged(100_000, 900_000)).is_ok());
    assert!(judge_by_accounting(&enters, &charged(900_000, 100_000)).is_err());
    let prepared = enters.one_by_one();
    assert!(
        judge_by_accounting(&prepared, &charged(900_000, 100_000)).is_ok(),
        "the preparation is charged as well"
    );
    let never = Case::looped("vdso", "", register_loop).claim(Claim::NeverEnters);
    assert!(judge_by_accounting(&never, &charged(900_000, 100_000)).is_ok());
    assert!(judge_by_accounting(&never, &charged(100_000, 900_000)).is_err());
    assert_eq!(judge_by_accounting(&any_case(), &charged(0, 900_000)), Ok(None));
}

#[test]
fn a_counted_claim_is_judged_by_the_counters_of_a_sample() {
    let ask = |delta: &Delta, n: u64| match delta.counted.minor_faults {
        faults if faults == n => Ok(format!("{n} faults")),
        faults => Err(format!("{faults} faults in {n} touches")),
    };
    let case = Case::looped("touch", "", register_loop).claim(Claim::Counted(ask));
    assert_eq!(
        judge_sample(&case, &delta(|d| d.counted.minor_faults = 7), 7, None),
        Ok(vec!["7 faults".to_owned()])
    );
    assert!(judge_sample(&case, &delta(|_| ()), 7, None).is_err());
}

#[test]
fn a_partner_that_was_moved_is_caught() {
    let partners = crate::clock::PartnerReport { strayed: Some((2, 5)), ..Default::default() };
    let moved = delta(|d| d.partners = Some(partners));
    let sentence = disturbance(judge_sample(&any_case(), &moved, 1, Some(3)));
    assert!(sentence.contains("partner was kept on CPU 2 and ran on CPU 5"), "{sentence}");
}

#[test]
fn another_regime_is_disturbed_and_an_exceeded_limit_contradicted() {
    let case = any_case().claim(Claim::Regime(|_, _| Err("it polled".into())));
    assert_eq!(judge_sample(&case, &delta(|_| ()), 1, None), Err(CaseEnd::Disturbed("it polled".into())));
    let case = any_case().claim(Claim::AtMost(|_, _| Err("it slept".into())));
    assert_eq!(judge_sample(&case, &delta(|_| ()), 1, None), Err(CaseEnd::Contradicted("it slept".into())));
}

/// The judgement of the later witness on `turns`, with samples of 4096 iterations, after the first witness has judged the case.
fn watched_later(case: &Case, turns: impl Fn(u64) + 'static) -> Result<Option<Judgement>, CaseEnd> {
    let clock = Clock::start_up();
    let mut subject: Box<dyn Subject> = Box::new(move |n: u64, clock: &Clock| Ok(clock.time(|| turns(n))));
    let (seen, _) = judge_by_witness(case, &mut *subject, &clock)?;
    judge_later_batch(case, &mut *subject, &clock, 4096, &seen.expect("traced"))
}

fn getppid(turns: u64) {
    RawCall::getppid().repeat(turns);
}

#[test]
fn less_work_in_long_batches_is_caught_by_the_later_witness() {
    let case =
        Case::looped("getppid", "", getppid).claim(Claim::Enters(vec![("getppid", libc::SYS_getppid)]));
    assert!(matches!(watched_later(&case, getppid), Ok(Some(Judgement::Held(_)))));
    let half = watched_later(&case, |n| getppid(n - n.saturating_sub(128) / 2));
    let Err(CaseEnd::Failed(sentence)) = half else { panic!("believed") };
    assert!(sentence.contains("getppid was called"), "{sentence}");
    let other = watched_later(&case, |n| {
        getppid(n.min(128));
        crate::platform::arch::register_loop(n.saturating_sub(128) + 1);
    });
    assert!(other.is_err());
}

#[test]
fn most_watches_decide_and_the_evidence_counts_those_that_saw_less() {
    let case =
        Case::looped("getppid", "", getppid).claim(Claim::Enters(vec![("getppid", libc::SYS_getppid)]));
    // The counter includes long batches in the witness's children; after a watch that saw less, one batch runs in this process.
    let judged = |does_half: fn(u32) -> bool| {
        let batches = Words::new().expect("mapped");
        watched_later(&case, move |n| {
            let is_bad = n > 512 && does_half(batches[0].value.fetch_add(1, SeqCst));
            getppid(if is_bad { n / 2 } else { n });
        })
    };
    let Ok(Some(Judgement::Held(sentence))) = judged(|batch| batch == 0) else { panic!("condemned by one") };
    assert!(sentence.ends_with("held, and did not in 1 of 3 watches"), "{sentence}");
    assert!(matches!(judged(|batch| batch != 2), Err(CaseEnd::Contradicted(_))));
}

#[test]
fn system_calls_in_long_batches_are_caught_by_the_later_witness() {
    let case = Case::looped("never", "", register_loop).claim(Claim::NeverEnters);
    assert!(matches!(watched_later(&case, register_loop), Ok(Some(Judgement::Held(_)))));
    assert!(watched_later(&case, |n| getppid(n.saturating_sub(128))).is_err());
}
