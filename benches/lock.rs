//! `cargo bench --bench lock`: see `src/suite/lock.rs`.
syscost::bench_group!();
