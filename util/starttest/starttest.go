// Package starttest limits the work of a program before main.
package starttest

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ours is the prefix of the limited packages.
const ours = "github.com/united-workforce/uwf/"

// mostAllocations bounds a package's allocations before main: enough for tables, too few for most regular
// expressions.
const mostAllocations = 64

// Cheap checks that none of our packages linked by this test does expensive work before main, and that the
// packages in linked are linked. It excludes the package under test, itself, because its tests can have
// variables.
func Cheap(t *testing.T, itself string, linked ...string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^$")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) allocs$`).FindAllStringSubmatch(string(out), -1) {
		pkg, ok := strings.CutPrefix(m[1], ours)
		if !ok || pkg == itself {
			continue
		}
		allocations, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		require.LessOrEqual(t, allocations, mostAllocations, "%s works before main: util/lazyregexp, sync.OnceValue", pkg)
		linked = slices.DeleteFunc(linked, func(name string) bool { return name == pkg })
	}
	require.Empty(t, linked, "not seen: %s", out)
}
