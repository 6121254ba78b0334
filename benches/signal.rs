//! `cargo bench --bench signal`: see `src/suite/signal.rs`.
syscost::bench_group!();
