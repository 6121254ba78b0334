use super::*;
use crate::Bencher;
use std::hint::black_box;
use syscost_platform::testing::print_skipped;

fn work(additions: u64) -> u64 {
    (0..additions).fold(0, |sum, at| black_box(sum + at))
}

/// The notes on this benchmark, or the error; `None` if no process may be traced here.
fn said(mut bench: impl FnMut(&mut Bencher<'_>)) -> Option<std::result::Result<String, String>> {
    let clock = Clock::start_up();
    let mut operation = Operation::new(&mut bench);
    let early = operation.early_work(&clock);
    if early.first.is_none() {
        print_skipped("no process may be traced here");
        return None;
    }
    let judged = operation.try_until_warm(0.0, &clock).and_then(|()| operation.judge_work(early, &clock));
    Some(judged.map(|()| operation.unchecked.join("\n")).map_err(|error| error.to_string()))
}

fn assert_noted(bench: impl FnMut(&mut Bencher<'_>), why: &str) {
    let Some(said) = said(bench) else { return };
    assert!(said.as_ref().is_ok_and(|said| said.contains(why)), "{why}: {said:?}");
}

fn assert_no_note(bench: impl FnMut(&mut Bencher<'_>)) {
    let Some(said) = said(bench) else { return };
    assert_eq!(said, Ok(String::new()));
}

#[test]
fn used_up_or_remembered_work_is_noted() {
    let mut queue: std::collections::VecDeque<u64> = (0..1_000).collect();
    assert_noted(|b| b.iter(|| queue.pop_front()), "used up or remembered");
    let (mut answers, mut at) = ([None; 64], 0);
    let mut memo = || {
        at = (at + 1) % 64;
        *answers[at].get_or_insert_with(|| work(4))
    };
    assert_noted(|b| b.iter(&mut memo), "used up or remembered");
}

#[test]
fn work_done_once_per_batch_is_noted() {
    // More work than an allocation, but little enough to be traced: without optimisation an addition takes tens of
    // instructions.
    let additions = if cfg!(debug_assertions) { 50 } else { 500 };
    let cell_of_batch = |b: &mut Bencher<'_>| {
        let mut answer = None;
        b.iter(|| *black_box(&mut answer).get_or_insert_with(|| work(additions)));
    };
    assert_noted(cell_of_batch, "the first iteration of every batch executes");
    let long_cell_of_batch = |b: &mut Bencher<'_>| {
        let mut answer = None;
        b.iter(|| *black_box(&mut answer).get_or_insert_with(|| work(100 * additions)));
    };
    assert_noted(long_cell_of_batch, "the first iteration of every batch takes");
}

#[test]
fn growing_or_cycling_work_is_accepted() {
    assert_no_note(|b| {
        let mut numbers = Vec::new();
        b.iter(|| numbers.push(black_box(1u64)));
    });
    let mut numbers = Vec::new();
    assert_no_note(|b| b.iter(|| numbers.push(black_box(1u64))));
    let lengths: Vec<u64> = (0..50).map(|at| 10 + at * 7 % 90).collect();
    let mut inputs = lengths.iter().cycle();
    assert_no_note(|b| b.iter(|| work(*inputs.next().expect("a cycle"))));
}

#[test]
fn cheap_batched_operations_are_accepted() {
    let rotated = |n: u64| n.rotate_left(23).wrapping_mul(n | 7);
    for size in [
        criterion::BatchSize::SmallInput,
        criterion::BatchSize::LargeInput,
        criterion::BatchSize::PerIteration,
    ] {
        assert_no_note(|b| b.iter_batched(|| black_box(3u64), rotated, size));
    }
    assert_no_note(|b| b.iter_with_large_drop(|| black_box(5u64).wrapping_mul(9)));
}

#[test]
fn a_lazy_result_and_a_refused_call_are_noted() {
    let numbers = [1u64, 2, 3];
    assert_noted(|b| b.iter(|| numbers.iter().map(|number| work(*number))), "its result is lazy");
    assert_noted(|b| b.iter(|| std::fs::read("/there/is/no/such/file")), "No such file or directory");
}

#[test]
fn an_operation_that_was_removed_is_disproved_and_one_of_a_cycle_is_not() {
    if cfg!(debug_assertions) {
        return print_skipped("nothing is removed without optimisation");
    }
    let numbers: Vec<u64> = (0..1_000).collect();
    let Some(removed) = said(|b| b.iter(|| _ = numbers.iter().sum::<u64>())) else { return };
    let sentence = removed.expect_err("nothing is left");
    assert!(
        sentence.contains("nothing is left of this operation") && sentence.contains("tests.rs:"),
        "{sentence}"
    );
    assert_no_note(|b| b.iter(|| black_box(5u64) + 1));
    let calls = std::sync::atomic::AtomicU64::new(0);
    assert_no_note(|b| b.iter(|| _ = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
}

#[test]
fn counting_by_breakpoint_equals_counting_whole_batches() {
    let clock = Clock::start_up();
    let mut bench = |b: &mut Bencher<'_>| b.iter(|| work(black_box(5)));
    let mut operation = Operation::new(&mut bench);
    let Some(whole) = operation.count_each(WINDOWS[0], &clock) else {
        return print_skipped("no process may be traced here");
    };
    operation.once = operation.find_once(&clock);
    assert!(operation.once.is_some(), "an iteration has an instruction of its own");
    assert_eq!(operation.count_each(MANY, &clock), Some(whole));
    operation.once = Some(work as *const () as usize + 1);
    assert_eq!(operation.count_each(MANY, &clock), Some(whole), "no iteration executes what is not there");
    let mut bench = |b: &mut Bencher<'_>| b.iter(|| work(black_box(FOLLOWED_MANY / 8)));
    assert_eq!(Operation::new(&mut bench).count_each(WINDOWS[0], &clock), None, "too long");
}
