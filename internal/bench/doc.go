// Package bench measures what uwf promises about speed and memory, as benchmarks of
// Go. Every figure is a ratio between two things that are measured in turn in one run,
// or an exponent of growth, because absolute times mean little on a machine that is
// shared: make bench runs it, docs/performance.md says how to read it.
//
//   - row_test.go: a promise and the sides of its comparison, and how they are measured;
//   - promises_test.go: the rows, family by family, and files_test.go: those about the
//     files of steps;
//   - world_test.go and homes_test.go: what they run on, made when it is first needed.
package bench
