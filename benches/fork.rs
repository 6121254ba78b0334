//! `cargo bench --bench fork`: see `src/suite/fork.rs`.
syscost::bench_group!();
