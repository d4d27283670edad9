package ignore_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

var cases = []struct {
	pattern string
	yes, no []string // excluded and included paths; a trailing "/" marks a directory
}{
	{"*.log", []string{"a.log", "x/a.log", "x/y/.log", "d.log/"}, []string{"a.logs", "log"}},
	{"/top", []string{"top", "top/"}, []string{"x/top"}},
	{"build/", []string{"build/", "x/build/"}, []string{"build", "x/build"}},
	{"a/b", []string{"a/b", "a/b/"}, []string{"x/a/b"}},
	{"doc/*.txt", []string{"doc/a.txt"}, []string{"doc/x/a.txt", "x/doc/a.txt"}},
	{"**/foo", []string{"foo", "x/foo", "x/y/foo"}, []string{"foos"}},
	{"abc/**", []string{"abc/x", "abc/x/y"}, []string{"abc/", "abc"}},
	{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"a/bb", "x/a/b"}},
	{"foo**bar", []string{"foobar", "fooxbar"}, []string{"foo/bar"}},
	{"q?z", []string{"qaz"}, []string{"q/z", "qz"}},
	{"[ab]x", []string{"ax", "bx"}, []string{"cx"}},
	{"[!ab]x", []string{"cx"}, []string{"ax"}},
	{"data[!_]*", []string{"data1", "x/data-y/"}, []string{"data/x", "x/data/y", "data_"}},
	{"d[!-_]x", []string{"dAx", "d9x"}, []string{"d-x", "d_x", "d/x"}},
	{"data[^_]x", []string{"data1x"}, []string{"data/x"}},
	{"{a,b}", []string{"{a,b}"}, []string{"a", "b"}},
	{`\#note`, []string{"#note"}, []string{`\#note`}},
	{`\!x`, []string{"!x"}, []string{"x"}},
	{`end\ `, []string{"end "}, []string{"end"}},
	{"trail   ", []string{"trail"}, []string{"trail   "}},
	{"# comment", nil, []string{"# comment", "comment"}},
	{"*\n!keep\n", []string{"x"}, []string{"keep", "x/keep"}},
	{"*.o\n!a.o\na.o", []string{"a.o", "b.o"}, nil},
	{"/*\n!/src/\n", []string{"x", "y/"}, []string{"src/", "src/x"}},
	{"x\r\ny", []string{"x", "y"}, nil},
	{"/", nil, []string{"a", "a/"}},
	{"[", nil, []string{"a", "x/b"}},
	{"*", []string{"a", "b/"}, nil},
	{"**", []string{"a", "b/c"}, nil},
	{"a*/", []string{"ab/"}, []string{"ab"}},
	{`sl\ash`, []string{"slash"}, nil},
}

func TestExcludes(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		l := ignore.List{}.With("", c.pattern)
		for _, p := range c.yes {
			require.True(t, l.Excludes(strings.TrimSuffix(p, "/"), strings.HasSuffix(p, "/")), "%q %q", c.pattern, p)
		}
		for _, p := range c.no {
			require.False(t, l.Excludes(strings.TrimSuffix(p, "/"), strings.HasSuffix(p, "/")), "%q %q", c.pattern, p)
		}
	}
}

func TestDeeperFilesCountMore(t *testing.T) {
	t.Parallel()
	l := ignore.List{}.With("", "*.txt\n").With("sub", "!/a.txt\n*.md\n")
	require.True(t, l.Excludes("a.txt", false))
	require.False(t, l.Excludes("sub/a.txt", false))
	require.True(t, l.Excludes("sub/x/a.txt", false))
	require.True(t, l.Excludes("sub/x/b.md", false))
	require.False(t, l.Excludes("b.md", false))
}

// TestGitAgrees checks that the cases agree with git.
func TestGitAgrees(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Log("git is not installed: the cases are not compared with it")
		return
	}
	for _, c := range cases {
		dir := t.TempDir()
		run := func(args ...string) (string, error) {
			cmd := exec.Command(git, args...)
			cmd.Dir = dir
			cmd.Env = []string{"HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
			out, err := cmd.Output()
			return string(out), err
		}
		_, err := run("init", "-q")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(c.pattern), 0o644))
		// Callers don't descend into an excluded directory, so only the path itself is checked.
		check := func(p string) bool {
			name, isDir := strings.CutSuffix(p, "/")
			if isDir {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
				defer os.RemoveAll(filepath.Join(dir, name))
			}
			out, _ := run("check-ignore", "--no-index", "-v", "-n", "--", name) // exit status 1: not excluded
			source, _, _ := strings.Cut(out, "\t")
			parts := strings.SplitN(source, ":", 3)
			return parts[2] != "" && !strings.HasPrefix(parts[2], "!")
		}
		parentOut := func(p string) bool {
			for d := path.Dir(strings.TrimSuffix(p, "/")); d != "."; d = path.Dir(d) {
				if check(d + "/") {
					return true
				}
			}
			return false
		}
		for _, p := range c.yes {
			require.True(t, check(p), "%q %q", c.pattern, p)
		}
		for _, p := range c.no {
			if !parentOut(p) {
				require.False(t, check(p), "%q %q", c.pattern, p)
			}
		}
	}
}

func FuzzExcludes(f *testing.F) {
	for _, c := range cases {
		f.Add(c.pattern, "a/b/c")
	}
	f.Fuzz(func(t *testing.T, pattern, p string) {
		l := ignore.List{}.With("", pattern).With("a", pattern)
		if !l.Excludes(p, true) && l.Excludes(p, false) && !strings.Contains(pattern, "!") {
			t.Fatal("a file is excluded where the directory is not")
		}
	})
}
