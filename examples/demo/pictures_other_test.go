//go:build !linux && instruments

package main

// recorded runs solve-issue: the recorder's terminal requires Linux.
func recorded(s *stage) (thread string) {
	return s.play(0, "run", "examples/solve-issue.yaml", "-p", task, "--cwd", s.project).Thread
}
