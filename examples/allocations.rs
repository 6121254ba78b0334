#![doc = "Allocations beside times: a bench whose allocator counts."]
use std::alloc::System;
use std::fmt::Write;
use std::hint::black_box;
use syscost::alloc::Counting;
use syscost::clock::Clock;
use syscost::{Case, Claim, Group, set_up};

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

fn cases() -> Vec<Case> {
    vec![
        Case::looped("new", "a number as a new string", |n| {
            (0..n).for_each(|_| drop(black_box(black_box(1_234_567u64).to_string())));
        })
        .claim(Claim::Linear),
        Case::looped("kept", "a number written into a string that is kept", |n| {
            let mut text = String::with_capacity(20);
            for _ in 0..n {
                text.clear();
                // Writing to a string cannot fail.
                _ = write!(text, "{}", black_box(1_234_567u64));
                black_box(&text);
            }
        })
        .claim(Claim::Linear),
        // What prepares an iteration allocates too, and is not counted.
        Case::new(
            "sort",
            "a stable sort of 2000 numbers",
            set_up(|_| {
                let numbers: Vec<u32> = (0..2_000).map(|at: u32| at.wrapping_mul(2_654_435_761)).collect();
                Ok(move |n: u64, clock: &Clock| {
                    let mut copy = Vec::new();
                    let prepare = |copy: &mut Vec<u32>| {
                        copy.clone_from(&numbers);
                        Ok(())
                    };
                    let sort = |copy: &mut Vec<u32>| black_box(copy).sort();
                    clock.time_each(n, &mut copy, prepare, sort, |_, ()| Ok(syscost::clock::Counts::Yes))
                })
            }),
        )
        .timed_share(0.0),
    ]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("allocations", "", cases)])
}
