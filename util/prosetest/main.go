package prosetest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
)

// golden is the golden file of a package.
const golden = "testdata/prose.golden"

// current collects the texts of this test binary. [Run] sets it before any test starts.
var current *collector

// runner is a *testing.M.
type runner interface{ Run() int }

// M is a *testing.M that compares the recorded texts with the package's golden file.
type M struct{ runner }

// Of wraps the tests of a package, for a TestMain that passes them on.
func Of(m runner) M { return M{m} }

// Run replaces m.Run in a TestMain: it runs the tests, then compares the recorded texts with the golden file
// or, with -update, writes it. It returns the exit status.
func Run(m runner) int { return Of(m).Run() }

// Run runs the tests, as (*testing.M).Run does.
func (m M) Run() int {
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "write what the tests record into "+golden)
	}
	c, err := newCollector(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "prosetest:", err)
		return 1
	}
	current = c
	status := m.runner.Run()
	if runtime.GOOS != "linux" {
		return status
	}
	if set("update") == "true" {
		if err := c.write(set("test.run")+set("test.skip") != "" || set("test.short") == "true"); err != nil {
			fmt.Fprintln(os.Stderr, "prosetest:", err)
			return 1
		}
		return status
	}
	if report := c.report(); report != "" {
		fmt.Fprint(os.Stderr, report)
		return max(status, 1)
	}
	return status
}

// set returns the value of a flag.
func set(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}
