//! `cargo bench --bench bandwidth`: see `src/suite/bandwidth.rs`.
syscost::bench_group!();
