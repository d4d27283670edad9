// Package starttest limits the work of a program before main.
package starttest

import (
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// prefix is the prefix of the limited packages.
const prefix = "github.com/united-workforce/uwf/"

// mostAllocations bounds a package's allocations before main: enough for tables, too few for most regular
// expressions.
const mostAllocations = 64

// Bounds of the time before main, in milliseconds: of all our packages together, and of each heavy package that
// a step doesn't use.
const (
	mostOurs  = 0.3
	mostHeavy = 0.05
)

// runs is the number of runs of which the fastest counts, because the machine may be busy.
const runs = 12

// Cheap checks that none of our packages linked by this test does expensive work before main, and that the
// packages in linked are linked. It excludes the package under test, itself, because its tests can have
// variables. Packages that a step doesn't use must not take long either.
func Cheap(t *testing.T, itself string, linked ...string) {
	t.Helper()
	ours, heavy := math.Inf(1), math.Inf(1)
	for range runs {
		all := trace(t)
		var sum, others float64
		for _, p := range all {
			name, own := strings.CutPrefix(p.name, prefix)
			switch {
			case own && name != itself:
				require.LessOrEqual(t, p.allocations, mostAllocations, "%s works before main: util/lazyregexp, sync.OnceValue", name)
				linked = slices.DeleteFunc(linked, func(l string) bool { return l == name })
				sum += p.clock
			case slices.Contains([]string{"encoding/gob", "html/template", "net/http"}, p.name), strings.HasSuffix(p.name, "/zstd"):
				others = max(others, p.clock)
			}
		}
		ours, heavy = min(ours, sum), min(heavy, others)
	}
	require.Empty(t, linked, "not seen")
	require.LessOrEqual(t, ours, mostOurs, "ms before main")
	require.LessOrEqual(t, heavy, mostHeavy, "ms before main")
}

// work is what a package does before main.
type work struct {
	name        string
	clock       float64 // ms
	allocations int
}

// trace runs this test binary without tests and returns the work of all packages.
func trace(t *testing.T) (all []work) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^$")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	line := regexp.MustCompile(`(?m)^init (\S+) @.*, ([0-9.]+) ms clock, .* (\d+) allocs$`)
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		clock, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		allocations, err := strconv.Atoi(m[3])
		require.NoError(t, err)
		all = append(all, work{m[1], clock, allocations})
	}
	return all
}
