//! `cargo bench --bench tracing`: see `src/suite/tracing.rs`.
syscost::bench_group!();
