//! `cargo bench --bench clock_read`: see `src/suite/clock_read.rs`.
syscost::bench_group!();
