use super::*;
use std::process::{Child, Command};

fn sleeper() -> Child {
    Command::new("sleep").arg("60").spawn().expect("a child")
}

fn own_process() -> Process {
    Process::open(std::process::id() as i32).expect("ourselves")
}

#[test]
fn a_line_of_stat_is_parsed_with_any_name() {
    let numbers: Vec<_> = (4..53).map(|n: u64| n.to_string()).collect();
    let line = format!("17 (a) S 9\n(b) R {}", numbers.join(" "));
    let stat = parse_stat(line.as_bytes()).expect("a line");
    let expected = (4, 10, 12, 14, 15, 33, 24, 20, 22, 23);
    let found = (
        stat.parent,
        stat.minor_faults,
        stat.major_faults,
        stat.user,
        stat.kernel,
        stat.children,
        stat.children_faults,
        stat.threads,
        stat.started,
        stat.virtual_bytes,
    );
    assert_eq!(found, expected);
    assert_eq!(super::parse_stat(b"17 (a) S -1 2"), None);
    assert_eq!(super::parse_stat(b""), None);
    assert_eq!(parse_page_faults(line.as_bytes()), Some(22));
    assert_eq!(parse_faults_and_threads(line.as_bytes()), Some((22, stat.threads)));
    assert_eq!(parse_page_faults(b"17 (a) S 1 2 3"), None);
}

#[test]
fn a_negative_field_does_not_shift_the_others() {
    let mut numbers: Vec<_> = (4..53).map(|n: i64| n.to_string()).collect();
    numbers[4] = "-1".into(); // the terminal's group, field 8
    let line = format!("17 (x) S {}", numbers.join(" "));
    assert_eq!(parse_stat(line.as_bytes()).expect("a line").minor_faults, 10);
    assert_eq!(parse_page_faults(line.as_bytes()), Some(22));
}

#[test]
fn touched_pages_are_counted_in_faults_and_in_memory() {
    let process = own_process();
    let read = |process: &Process| {
        (process.page_faults().expect("read").value, process.resident().expect("read").value)
    };
    let before = read(&process);
    let bytes = 512 * page_size() as usize;
    let mut memory = memmap2::MmapMut::map_anon(bytes).expect("mapped");
    memory.iter_mut().step_by(page_size() as usize).for_each(|byte| *byte = 1);
    let after = read(&process);
    assert!(after.0 > before.0, "{before:?} {after:?}");
    assert!(after.1 >= before.1 + bytes as u64 / 2, "{before:?} {after:?}");
}

#[test]
fn work_is_seen_in_the_clock_and_a_thread_in_the_links() {
    let process = own_process();
    let before = process.cpu_time().expect("read").value;
    let threads = process.threads().expect("read").value;
    let (send, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv());
    // Other tests start and end threads of this process at the same time.
    assert!(threads >= 1 && process.threads().expect("read").value >= 1);
    drop(send);
    let _ = thread.join();
    assert!(process.cpu_time().expect("read").value > before);
}

#[test]
fn every_counter_of_an_ended_process_is_gone() {
    let mut child = sleeper();
    let process = Process::open(child.id() as i32).expect("a child");
    assert_eq!(process.threads().expect("read").value, 1);
    child.kill().expect("killed");
    child.wait().expect("waited for");
    assert!(matches!(process.cpu_time(), Err(Fault::Gone(_))));
    assert!(matches!(process.stat(), Err(Fault::Gone(_))), "{:?}", process.stat());
    assert!(matches!(process.resident(), Err(Fault::Gone(_))), "{:?}", process.resident());
    assert!(matches!(process.threads(), Err(Fault::Gone(_))), "{:?}", process.threads());
    assert!(matches!(Process::open(child.id() as i32), Err(Fault::Gone(_))));
}

#[test]
fn an_impossible_process_number_is_gone_or_refused() {
    assert!(Process::open(i32::MAX).is_err() && Process::open(-5).is_err());
}
