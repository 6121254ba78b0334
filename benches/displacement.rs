//! `cargo bench --bench displacement`: see `src/suite/displacement.rs`.
syscost::bench_group!();
