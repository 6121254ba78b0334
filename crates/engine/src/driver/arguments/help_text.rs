//! The texts of the help for `cargo bench --`.

/// Options in the help: name, placeholder of the value, description. All others are hidden.
pub(super) const HELP: [(&str, &str, &str); 17] = [
    ("FILTER", "FILTER", "Regular expression over ids such as call/u64/3"),
    ("all", "", "End a whole run with every table, and not with one screen"),
    ("exact", "", "Take FILTER as a whole id"),
    (
        "instructions",
        "HOW",
        "Count the instructions of an operation, and not its time: exact, no PMU; =callgrind is faster",
    ),
    ("copies", "N", "Measure each case by N processes at the same time, each on a CPU of its own"),
    ("skip", "TEXT", "Leave out the cases whose ids contain this text"),
    ("save-baseline", "NAME", "Save what is measured under this name [default: base]"),
    ("baseline", "NAME", "Compare with what was saved under this name, which every case must have"),
    ("baseline-lenient", "NAME", "The same, and cases that it lacks are only measured"),
    ("test", "", "Run every case briefly, claims on, and save nothing"),
    ("list", "", "Print the ids"),
    ("quick", "", "Measure at smoke scale: brief, numbers not worth keeping"),
    ("sample-size", "N", "Samples a case, at least 10"),
    ("measurement-time", "SECONDS", "How long to sample a case"),
    ("warm-up-time", "SECONDS", "How long to run a case before it is sampled"),
    ("output-format", "FORMAT", "Criterion's own lines, or those that benchmark trackers read"),
    ("verbose", "", "Show Criterion's own report as well"),
];
/// Below the options: the variables that a run reads.
pub(super) const AFTER_HELP: &str = "\
Environment:
  SYSCOST_SCALE        smoke (brief, numbers not worth keeping), default or full
  SYSCOST_TIME         limit, seconds: no case begins after it; none otherwise; with less than 0.15 s a case a whole run
                       measures its headline cases alone
  SYSCOST_CASE_TIME    seconds after which a case that has not ended is killed, so that the next one begins [300]
  SYSCOST_OPERATIONS   operations of a run where a case is measured by displacement; as many as fill 30 ms otherwise
  SYSCOST_REPLICATIONS undisturbed runs of such a case, at least 10
  SYSCOST_STRICT       1: exit code 3 if a case is disturbed, unwitnessed or not settled
  SYSCOST_MEASURE      ns, user-instructions (as --instructions), callgrind-instructions, or a perf event to count instead
  SYSCOST_EVENTS       perf events to count beside the time, such as page-faults,context-switches
  SYSCOST_CPU          the CPU to measure on: a number, or a class of a hybrid processor [the fastest class]
  SYSCOST_DIR          where the files of the file cases are made [temporary directory; a disk if that is memory]
  SYSCOST_AGAINST      published machines in columns of their own: csc501,cse221
  SYSCOST_PREDICTIONS  a TOML file of your own predictions
  SYSCOST_PEER         HOST:PORT or [ADDRESS]:PORT of a `syscost peer`, for the cases whose other end it is
  SYSCOST_CLOCK        monotonic-raw: the kernel's clock instead of the processor's counter";
