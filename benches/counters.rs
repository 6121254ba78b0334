//! `cargo bench --bench counters`: see `src/suite/counters.rs`.
syscost::bench_group!();
