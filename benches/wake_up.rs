//! `cargo bench --bench wake_up`: see `src/suite/wake_up.rs`.
syscost::bench_group!();
