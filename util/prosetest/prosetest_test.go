package prosetest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// newPackage returns the collector of a package with one test.
func newPackage(t *testing.T) *collector {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte("package a\nfunc TestA(t *testing.T) {}\n"), 0o644))
	return again(t, dir)
}

func again(t *testing.T, dir string) *collector {
	t.Helper()
	c, err := newCollector(dir)
	require.NoError(t, err)
	return c
}

func TestAChangedSentenceIsOneDifference(t *testing.T) {
	t.Parallel()
	c := newPackage(t)
	c.record("TestA", "", "one is wrong\n\ttwo")
	c.record("TestA", "", "another")
	c.record("TestA/sub", "", "")
	c.record("TestA", "a: map\nof", "cases")
	require.NoError(t, c.write(false))

	c = again(t, c.dir)
	c.record("TestA", "a: map\nof", "cases")
	c.record("TestA", "", "one is wrong\n\ttwo")
	require.Equal(t, 3, c.record("TestA", "", "another one"))
	c.record("TestA/sub", "", "")
	c.done("TestA", false)
	report := c.report()
	for _, part := range []string{"1 texts", "TestA 2\n", "- another\n", "+ another one\n", "-update"} {
		require.Contains(t, report, part)
	}
	require.NoError(t, c.write(true))
	require.Len(t, again(t, c.dir).want, 4)
}

func TestATextThatRepeatsTheLastOneIsWrittenOnce(t *testing.T) {
	t.Parallel()
	c := newPackage(t)
	for _, text := range []string{"a", "a", "b", "a", "a"} {
		c.record("TestA", "", text)
	}
	require.Len(t, c.got, 3)
}

func TestUnrecordedTextIsStale(t *testing.T) {
	t.Parallel()
	c := newPackage(t)
	for _, name := range []string{"TestA", "TestA", "TestA/sub", "TestGone"} {
		c.record(name, "", "text")
		c.record(name, "", "more")
	}
	require.NoError(t, c.write(false))

	c = again(t, c.dir)
	c.record("TestA", "", "text")
	c.done("TestA", true)
	require.ElementsMatch(t, []key{{"TestGone", "", 1}, {"TestGone", "", 2}}, c.orphans())
	require.NotContains(t, c.report(), "TestA 2\n", "a test that failed did not come so far")

	c = again(t, c.dir)
	c.record("TestA", "", "text")
	c.done("TestA", false)
	require.Contains(t, c.report(), "TestA 2\n")
	require.Contains(t, c.report(), "TestGone\n")
	require.NoError(t, c.write(true))
	require.Len(t, again(t, c.dir).want, 3, "TestA/sub did not run")
	require.NoError(t, c.write(false))
	require.Len(t, again(t, c.dir).want, 1)
}

func TestWhatDiffersWithEachRun(t *testing.T) {
	t.Parallel()
	n := newNormalizer("/home/me/uwf/util")
	home := os.Getenv("HOME")
	if strings.HasPrefix(home, "/tmp/") {
		home = "/home/me" // a home below the directory for temporary files is replaced with it
	}
	for text, want := range map[string]string{
		filepath.Join(os.TempDir(), "TestA123", "001", "a.yaml") + ": no such file": "$TMP/a.yaml: no such file",
		"thread 01JD0000000000000000000000 at 0123456789ABC":                        "thread <ulid> at <hash>",
		"http://127.0.0.1:43121/x":                                                  "http://127.0.0.1:<port>/x",
		"x.yaml:45:11: no\n45:11: no":                                               "x.yaml:45:11: no\n45:11: no",
		"resumes at 18:30, or later":                                                "resumes at <clock>, or later",
		"locked by pid 4711":                                                        "locked by pid <pid>",
		"until 2026-11-28T12:16:13Z, after 1.234s":                                  "until <date>, after <time>",
		`{"time":"2026-11-30T00:01:25.012345678Z"}`:                                 `{"time":"<date>"}`,
		"3 of 12 steps cost $1.20 in 30s":                                           "3 of 12 steps cost $1.20 in 30s",
		"/home/me/uwf/util/x":                                                       "$PACKAGE/x",
		"/proc/self" + home:                                                         "/proc/self" + home,
		"red \x1b[31m":                                                              `red \x1b[31m`,
	} {
		require.Equal(t, want, n.apply(text))
	}
	require.Equal(t, "line[100 lines]", n.apply(strings.Repeat("line\n", 100)))
	require.Equal(t, "w[5000 times]", n.apply(strings.Repeat("w", 5000)))
	require.Contains(t, n.apply(strings.Repeat("one\ntwo\n", 50)), "\n[70 more lines]\n")
	require.Contains(t, n.apply(strings.Repeat("one, two, ", 500)), "[4500 more bytes]")
}

// failing is a test that records its failures.
type failing struct {
	*testing.T
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = cmp.Or(f.said, fmt.Sprintf(format, args...))
}

func TestAnErrorIsWhatWasWanted(t *testing.T) {
	t.Parallel()
	coded := fmt.Errorf("x: %w", &protocol.Error{Code: protocol.CodeUsage, Message: "wrong"})
	for _, test := range []struct {
		err  error
		want any
		ok   bool
	}{
		{nil, nil, false},
		{coded, protocol.CodeUsage, true},
		{coded, protocol.CodeInvalid, false},
		{errors.New("plain"), protocol.CodeInvalid, false},
		{fmt.Errorf("x: %w", os.ErrExist), os.ErrExist, true},
		{coded, os.ErrExist, false},
	} {
		f := &failing{T: t}
		Error(f, test.err, test.want)
		require.Equal(t, test.ok, !strings.HasPrefix(f.said, "no error") && !strings.Contains(f.said, " is not "), "%v %v: %s", test.err, test.want, f.said)
	}
}

// The sandbox differs between machines.
func TestConfinementIsTheSameOnEveryMachine(t *testing.T) {
	t.Parallel()
	n := newNormalizer(t.TempDir())
	const finding, by, cannot, in, without, sockets = "  sandbox     commands ", "are confined by", "cannot be confined", ", in namespaces", ", without namespaces", "; can reach Unix sockets (docker, tmux)"
	for _, same := range [][]string{
		{"ok" + finding + by + " a\nok       git", "warning" + finding + by + " b\n       → sudo x\nok       git", "warning" + finding + cannot + " (x)\n     → y\nok       git"},
		{"a  b" + in, "a  b" + without, "a  b" + without + sockets},
		{`{"may":"a` + in + `"},{"may":"b` + in + `"}`, `{"may":"a` + without + `"},{"may":"b` + in + `"}`},
		{
			`[{"area":"sandbox","severity":"ok","what":"commands ` + by + ` x"},{}]`,
			`[{"area":"sandbox","severity":"warning","what":"commands ` + by + ` y","do":"z"},{}]`,
		},
	} {
		for _, text := range same {
			require.Equal(t, n.apply(same[0]), n.apply(text))
			require.Regexp(t, "confinement|sandbox", n.apply(text))
		}
	}
}
