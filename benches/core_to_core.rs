//! `cargo bench --bench core_to_core`: see `src/suite/core_to_core.rs`.
syscost::bench_group!();
