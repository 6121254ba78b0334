//! `cargo bench --bench direct_read`: see `src/suite/direct_read.rs`.
syscost::bench_group!();
