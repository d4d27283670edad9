package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/programtest"
)

func searching(t *testing.T, files map[string]string) (*Workspace, *Registry) {
	t.Helper()
	w, r := space(t, files)
	require.NoError(t, r.Add(Glob(w)))
	require.NoError(t, r.Add(Grep(w)))
	return w, r
}

var tree = map[string]string{
	"a.go": "package a\r\n\r\nfunc Alpha() {}\r\n", "sub/b.go": "one\ntwo Alpha\nthree\nfour\nfive alpha\n", "sub/c.txt": "Alpha\n",
	".gitignore": "ignored/\n*.log\n", "ignored/d.go": "Alpha\n", "x.log": "Alpha\n", "bin": "Alpha\x00", ".github/e.yml": "alpha: 1\n",
}

// The results are the same inside and outside a repository.
func TestSearchFindsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for name, repo := range map[string]bool{"git": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := searching(t, tree)
			if repo {
				git(t, w.Dir(), "init", "-q")
				git(t, w.Dir(), "add", "a.go")
			}
			for _, q := range []struct {
				tool string
				a    args
				want string
			}{
				{"grep", args{"pattern": "Alpha"}, "a.go:3: func Alpha() {}\nsub/b.go:2: two Alpha\nsub/c.txt:1: Alpha\n"},
				{"search_files", args{"query": "ALPHA", "ignore_case": "true", "glob": "*.{go,yml}"}, ".github/e.yml:1: alpha: 1\na.go:3: func Alpha() {}\nsub/b.go:2: two Alpha\nsub/b.go:5: five alpha\n"},
				{"grep", args{"pattern": `^\w+ Alpha$`}, "sub/b.go:2: two Alpha\n"},
				{"grep", args{"pattern": `\{\}$`}, "a.go:3: func Alpha() {}\n"},
				{"grep", args{"pattern": "Alpha", "files_only": true, "path": "sub"}, "sub/b.go\nsub/c.txt\n"},
				{"grep", args{"pattern": "Alpha", "context": 1.0, "path": "sub/b.go"}, "sub/b.go-1- one\nsub/b.go:2: two Alpha\nsub/b.go-3- three\n"},
				{"grep", args{"pattern": "t|f", "context": 1.0, "path": "sub/b.go", "limit": 1.0}, "sub/b.go-1- one\nsub/b.go:2: two Alpha\nsub/b.go-3- three\n[1 of 4 matches shown; use a narrower pattern, path or glob]\n"},
				{"grep", args{"pattern": "Alpha", "path": "ignored"}, "ignored/d.go:1: Alpha\n"},
				{"grep", args{"pattern": "func Alpha("}, "[\"func Alpha(\" is not a valid regular expression (missing closing )): it was searched for as plain text]\na.go:3: func Alpha() {}\n"},
				{"grep", args{"pattern": "(?=x)"}, "Error: the pattern is not valid"},
				{"grep", args{"pattern": `a\|b`}, "No match. In this syntax \"or\" is |"},
				{"grep", args{"pattern": "Alpha", "path": "../"}, "Error: ../ is outside the workspace"},
				{"glob", args{"pattern": "*.go"}, "a.go\nsub/b.go\n"},
				{"glob", args{"pattern": "sub/*"}, "sub/b.go\nsub/c.txt\n"},
				{"glob", args{"pattern": "*.txt", "path": "sub"}, "sub/c.txt\n"},
				{"glob", args{"pattern": "**", "limit": 1.0}, ".github/e.yml\n[1 of 6 files shown; use a narrower pattern or path]\n"},
				{"glob", args{"pattern": "sub"}, "Error: sub is a directory. For the files in it use the pattern \"sub/**\""},
				{"glob", args{"pattern": "*.rs"}, "Error: none of "},
				{"glob", args{"pattern": "[a"}, "Error: \"[a\" is not a valid pattern"},
				{"glob", args{"pattern": strings.Repeat("{a,aa}", 30) + "b"}, "Error: the pattern has more than 3 pairs"},
				{"glob", args{"pattern": "{a,{b,c}}*.{go,txt}"}, "a.go\nsub/b.go\nsub/c.txt\n"},
				{"glob", args{"pattern": "../*"}, "Error: ../* is outside the workspace"},
			} {
				got := call(t, r, q.tool, q.a)
				require.True(t, strings.HasPrefix(got, q.want), "%s %v\n%s", q.tool, q.a, got)
			}
		})
	}
}

// A repository is data: its settings start no program and are not followed.
func TestSearchIsNotLedAstrayByARepository(t *testing.T) {
	t.Parallel()
	w, r := searching(t, map[string]string{"a.txt": "needle\n"})
	git(t, w.Dir(), "init", "-q")
	git(t, w.Dir(), "add", ".")
	ran := filepath.Join(w.Dir(), "ran")
	hook := filepath.Join(w.Dir(), "hook.sh")
	programtest.Write(t, hook, "#!/bin/sh\ntouch "+ran+"\n")
	git(t, w.Dir(), "config", "core.fsmonitor", hook)
	git(t, w.Dir(), "config", "core.worktree", filepath.Dir(w.Dir()))
	require.NoError(t, os.Symlink(filepath.Dir(w.Dir()), filepath.Join(w.Dir(), "out")))
	require.NoError(t, os.Symlink("../secret.txt", filepath.Join(w.Dir(), "link")))
	require.Equal(t, "a.txt:1: needle\n", call(t, r, "grep", args{"pattern": "needle|secret"}))
	require.Equal(t, "a.txt\n", call(t, r, "glob", args{"pattern": "*.txt"}))
	require.NoFileExists(t, ran)
}

func FuzzPattern(f *testing.F) {
	for _, p := range []string{"a", `\w+x`, "(?i)Alpha|b", "[^a]", "a(b|c)+", `\Aa\z`, ".", "(?s).", "x*", "^$", "k|S"} {
		f.Add(p, "one\nAlpha\n\nabc k\n")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		p, err := parsePattern(expr, false)
		if err != nil {
			return
		}
		for _, hit := range p.re.FindAllString(text, -1) {
			if strings.Contains(hit, "\n") {
				t.Fatalf("%q matches %q across lines", expr, hit)
			}
			if !strings.Contains(hit, p.word) {
				t.Fatalf("%q matches %q, which does not hold %q", expr, hit, p.word)
			}
		}
	})
}
