//! `cargo bench --bench getdents`: see `src/suite/getdents.rs`.
syscost::bench_group!();
