//! `cargo bench --bench cached_read`: see `src/suite/cached_read.rs`.
syscost::bench_group!();
