//! `cargo bench --bench chase`: see `src/suite/chase.rs`.
syscost::bench_group!();
