//! `cargo bench --bench messaging`: see `src/suite/messaging.rs`.
syscost::bench_group!();
