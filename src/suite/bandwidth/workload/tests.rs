use super::*;
use crate::kit::stream::Means;
use crate::platform::resident::Pages;

fn plan(operation: Operation, means: Means) -> Plan {
    Plan { operation, means, bytes: 48 << 10, skew: 0, zeroes: false, pages: Pages::Base }
}

fn workload(operation: Operation) -> Workload {
    Workload::new(plan(operation, Means::widest())).expect("set up")
}

#[test]
fn correct_work_is_accepted_batch_after_batch() {
    for operation in Operation::ALL {
        for skew in [0, 1] {
            let mut workload =
                Workload::new(Plan { skew, ..plan(operation, Means::widest()) }).expect("set up");
            for batch in [1, 2, 0, 7, 64] {
                workload.run_batch(batch);
                assert_eq!(
                    workload.verify_last_batch(),
                    Ok(()),
                    "{operation:?}, a batch of {batch}, skew {skew}"
                );
            }
        }
    }
}

#[test]
fn a_call_of_the_library_processes_the_whole_array() {
    for operation in [Operation::Write, Operation::Copy] {
        let plan = plan(operation, Means::Library);
        assert_eq!((plan.chunk_count(), plan.bytes_moved()), (1, 48 << 10));
        let mut workload = Workload::new(plan).expect("set up");
        workload.run_batch(2);
        assert_eq!(workload.verify_last_batch(), Ok(()));
    }
}

#[test]
fn work_that_was_left_out_is_noticed() {
    for operation in Operation::ALL {
        let mut workload = workload(operation);
        workload.run_batch(1);
        assert_eq!(workload.verify_last_batch(), Ok(()), "{operation:?}");
        // As if the next batch had been counted and not done.
        (workload.begun, workload.batch) = (workload.cursor, 1);
        workload.cursor.next(&mut 1);
        workload.sum = 0;
        assert!(workload.verify_last_batch().is_err(), "{operation:?}");
    }
}

#[test]
fn a_loop_that_leaves_out_a_word_is_noticed_at_set_up() {
    for operation in Operation::ALL {
        let mut workload = workload(operation);
        workload.run_batch(workload.plan.chunk_count() as u64);
        let [to, x, _] = Workload::split_arrays(&mut workload.memory, workload.plan, workload.stride);
        let array = if operation == Operation::Read { x } else { to };
        array[8 * 77 + 3] ^= 1;
        if operation == Operation::Read {
            workload.run_batch(workload.plan.chunk_count() as u64);
        }
        assert!(workload.verify_all_words().is_err(), "{operation:?}");
    }
}

#[test]
fn a_means_of_another_processor_is_missing() {
    let other = if cfg!(target_arch = "x86_64") { Means::Neon } else { Means::Avx512 };
    let Err(Error::Missing(sentence)) = Workload::new(plan(Operation::Read, other)) else { panic!("there") };
    assert!(sentence.starts_with("this processor does not have"), "{sentence}");
}

#[test]
fn every_chunk_is_visited_in_turn() {
    for chunks in [1, 2, 3, 7, 16] {
        let mut cursor = Cursor::new(chunks);
        let mut seen = vec![0; chunks as usize];
        for batch in [0, 1, 5, chunks, 3 * chunks + 2, 2] {
            let (mut left, before) = (batch, cursor.done);
            let mut count = 0;
            while let Some(stretch) = cursor.next(&mut left) {
                assert!(stretch.from + stretch.chunks <= chunks);
                for chunk in stretch.from..stretch.from + stretch.chunks {
                    seen[chunk as usize] += stretch.passes;
                }
                count += stretch.chunks * stretch.passes;
            }
            assert_eq!((count, cursor.done), (batch, before + batch));
            assert_eq!(cursor.next_chunk(), cursor.done % chunks);
            for (chunk, visits) in seen.iter().enumerate() {
                assert_eq!(cursor.chunk_visits(chunk as u64), *visits, "{chunk} of {chunks}");
            }
        }
    }
}

#[test]
fn whole_rounds_are_one_stretch_of_several_passes() {
    let mut cursor = Cursor::new(4);
    let mut left = 9;
    assert_eq!(cursor.next(&mut left), Some(Stretch { from: 0, chunks: 4, passes: 2 }));
    assert_eq!(cursor.next(&mut left), Some(Stretch { from: 0, chunks: 1, passes: 1 }));
    assert_eq!((cursor.next(&mut left), cursor.next_chunk(), cursor.chunk_ahead(3)), (None, 1, 0));
    let mut left = 9;
    assert_eq!(Cursor::new(1).next(&mut left), Some(Stretch { from: 0, chunks: 1, passes: 9 }));
}
