//! Measures of the types A, B and C.
