//! `cargo bench --bench stolen_time`: see `src/suite/stolen_time.rs`.
syscost::bench_group!();
