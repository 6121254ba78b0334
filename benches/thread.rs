//! `cargo bench --bench thread`: see `src/suite/thread.rs`.
syscost::bench_group!();
