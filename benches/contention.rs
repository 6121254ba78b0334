//! `cargo bench --bench contention`: see `src/suite/contention.rs`.
syscost::bench_group!();
