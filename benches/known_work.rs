//! `cargo bench --bench known_work`: see `src/suite/known_work.rs`.
syscost::bench_group!();
