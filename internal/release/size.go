package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// wideLine is the length from which a line counts as wide, in characters.
const wideLine = 120

// part returns the part of the tree that a Go file belongs to, or "" for files that are not counted: tests,
// test data, and third-party copies.
func part(name string) string {
	kit := regexp.MustCompile(`(^|/)[a-z]*test/`)
	switch {
	case strings.HasSuffix(name, "_test.go") || inTestdata(name) || isThirdParty(name):
		return ""
	case strings.HasPrefix(name, "internal/"):
		return "instruments"
	case strings.HasPrefix(name, "examples/"):
		return "examples"
	case kit.MatchString(name):
		return "kits"
	case under(name, "ext", "cmd/uwf-web", "cmd/uwf-import-original"):
		return "leaf modules"
	}
	return "core"
}

func under(name string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

func inTestdata(name string) bool { return slices.Contains(strings.Split(name, "/"), "testdata") }

// isThirdParty reports whether a file is a third-party copy.
func isThirdParty(name string) bool { return under(name, "internal/thirdparty") }

// size holds line counts of Go files, excluding tests.
type size struct {
	parts, packages map[string]int
	wide            int // lines longer than wideLine, excluding test tools and examples
}

// sizeOf counts the files, given relative to root.
func sizeOf(root string, names []string) (size, error) {
	s := size{parts: map[string]int{}, packages: map[string]int{}}
	for _, name := range names {
		of := part(name)
		if path.Ext(name) != ".go" || of == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return s, err
		}
		lines := bytes.Count(data, []byte("\n"))
		s.parts[of] += lines
		s.packages[path.Dir(name)] += lines
		if of == "instruments" || of == "examples" {
			continue
		}
		for line := range bytes.Lines(data) {
			if utf8.RuneCount(bytes.TrimSuffix(line, []byte("\n"))) > wideLine {
				s.wide++
			}
		}
	}
	return s, nil
}

// committed lists the existing files that git tracks.
func (t *tree) committed(ctx context.Context, p process) ([]string, error) {
	out, err := t.git(ctx, p, "-C", t.root, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(t.root, filepath.FromSlash(name)))
		if err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	return names, nil
}

func sizeCommand(ctx context.Context, t *tree, _ arguments, p process) error {
	names, err := t.committed(ctx, p)
	if err != nil {
		return err
	}
	s, err := sizeOf(t.root, names)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "lines of Go, without tests")
	for _, of := range []string{"core", "leaf modules", "kits", "instruments", "examples"} {
		fmt.Fprintf(p.stdout, "  %-14s %7d\n", of, s.parts[of])
	}
	fmt.Fprintf(p.stdout, "lines over %d characters\n  %-14s %7d\n", wideLine, "product", s.wide)
	fmt.Fprintln(p.stdout, "the largest packages")
	largest := slices.SortedFunc(maps.Keys(s.packages), func(a, b string) int { return cmp.Compare(s.packages[b], s.packages[a]) })
	for _, dir := range largest[:min(10, len(largest))] {
		fmt.Fprintf(p.stdout, "  %-28s %7d\n", dir, s.packages[dir])
	}
	return nil
}
