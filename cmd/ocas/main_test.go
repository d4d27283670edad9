package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary be ocas, so that a script runs a real process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ocas": main})
}

// TestScripts runs the stories in testdata/script, each in a home of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("UWF_HOME", filepath.Join(e.WorkDir, "uwf"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"damage": damage},
	})
}

// damage flips a bit in the middle of a file: damage path.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage file")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.Remove(path))
	ts.Check(os.WriteFile(path, data, 0o444))
}
