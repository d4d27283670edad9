// Package bench measures uwf's performance guarantees as Go benchmarks. Every figure is a ratio between two
// things measured alternately in one run, or an exponent of growth, because absolute times mean little on a
// shared machine. make bench runs it; docs/performance.md explains how to read it.
//
//   - row_test.go: a guarantee, the sides of its comparison, and how they are measured;
//   - promises_test.go: the rows by family; files_test.go: those about the files of steps;
//   - world_test.go and homes_test.go: the data for the measurements, created on first use.
package bench
