//! Statistics as pure functions: numbers in, numbers out, no I/O. Each names its source.
