package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// TestMain lets the test binary act as ocas, so that a script runs a real process.
func TestMain(m *testing.M) {
	testscript.Main(tmpfstest.In(prosetest.Of(m)), map[string]func(){"ocas": main})
}

// TestScripts runs the stories in testdata/script, each with a new home.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector otherwise delays each exit by a second
			e.Setenv("UWF_HOME", filepath.Join(e.WorkDir, "uwf"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"damage": damage, "flipbit": flipBit, "unhex": unhex, "prose": prosetest.StoryProse[*testscript.TestScript], "code": prosetest.StoryCode[*testscript.TestScript],
		},
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

// failing makes a story fail instead of a test.
type failing struct{ *testscript.TestScript }

func (f failing) Errorf(format string, args ...any) { f.Logf(format, args...) }
func (f failing) FailNow()                          { f.Fatalf("failed") }

// flipBit flips a bit in the middle of a node's record: flipbit file, which contains the node's hash.
func flipBit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flipbit file")
	}
	h := cas.Hash(strings.TrimSpace(ts.ReadFile(args[0])))
	castest.FindRecord(failing{ts}, filepath.Join(ts.Getenv("UWF_HOME"), "cas"), h).Flip()
}

// unhex writes the bytes given as hexadecimal digits in a file: unhex from to.
func unhex(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unhex from to")
	}
	data, err := hex.DecodeString(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	to := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(filepath.Dir(to), 0o755))
	ts.Check(os.WriteFile(to, data, 0o644))
}
