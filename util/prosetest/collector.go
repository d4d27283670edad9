package prosetest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// key identifies a text: the test, its label, and its number among those, from 1.
type key struct {
	test, label string
	number      int
}

func (k key) String() string {
	s := k.test
	if k.number > 1 {
		s += " " + strconv.Itoa(k.number)
	}
	if k.label != "" {
		s += ": " + k.label
	}
	return s
}

// parseKey parses the result of String. The name of a test contains no space.
func parseKey(line string) key {
	name, label, _ := strings.Cut(line, ": ")
	test, number, _ := strings.Cut(name, " ")
	k := key{test, label, 1}
	if n, err := strconv.Atoi(number); err == nil {
		k.number = n
	}
	return k
}

func byName(a, b key) int {
	return cmp.Or(strings.Compare(a.test, b.test), strings.Compare(a.label, b.label), cmp.Compare(a.number, b.number))
}

// collector collects the texts of a test binary. It is safe for concurrent use.
type collector struct {
	dir    string // of the package
	stable normalizer
	want   map[key]string

	mu      sync.Mutex
	numbers map[key]int    // number of texts, by key without number
	counts  map[string]int // number of texts, by test
	got     map[key]string
	differs map[key]string
	stale   []key
}

func newCollector(dir string) (*collector, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &collector{
		dir: dir, stable: newNormalizer(dir),
		numbers: map[key]int{}, counts: map[string]int{}, got: map[key]string{}, differs: map[key]string{},
	}
	data, err := os.ReadFile(filepath.Join(dir, golden))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c.want = parse(string(data))
	return c, nil
}

// record adds a text of a test and returns how many it has so far. It skips a text equal to the previous one,
// because a loop can produce the same text often.
func (c *collector) record(test, label, text string) int {
	text, label = c.stable.apply(text), c.stable.label(label)
	c.mu.Lock()
	defer c.mu.Unlock()
	k := key{test: test, label: label}
	c.counts[test]++
	before := key{test, label, c.numbers[k]}
	if last, ok := c.got[before]; ok && last == text {
		return c.counts[test]
	}
	c.numbers[k]++
	k.number = c.numbers[k]
	c.got[k] = text
	if want, ok := c.want[k]; !ok || want != text {
		c.differs[k] = text
	}
	return c.counts[test]
}

// done ends a test. Further texts of the test in the golden file are stale, unless it failed.
func (c *collector) done(test string, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.want {
		if _, ok := c.got[k]; !ok && !failed && k.test == test {
			c.stale = append(c.stale, k)
		}
	}
	delete(c.counts, test) // with -count it runs again
	maps.DeleteFunc(c.numbers, func(k key, _ int) bool { return k.test == test })
}

// report describes the differences and how to accept them; "" if there are none.
func (c *collector) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	stale := append(c.stale, c.orphans()...)
	slices.SortFunc(stale, byName)
	stale = slices.Compact(stale)
	if len(c.differs)+len(stale) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %d texts are not those in %s\n", len(c.differs)+len(stale), golden)
	for _, k := range slices.SortedFunc(maps.Keys(c.differs), byName) {
		fmt.Fprintf(&b, "%s\n%s", k, diff(c.want[k], c.differs[k]))
	}
	for _, k := range stale {
		fmt.Fprintf(&b, "%s\n    (no test records it any more)\n", k)
	}
	fmt.Fprintf(&b, "to accept them: go test %s -update\n", c.path())
	return b.String()
}

// diff returns the lines that differ between two texts.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(w) > 0 && len(g) > 0 && w[0] == g[0] {
		w, g = w[1:], g[1:]
	}
	for len(w) > 0 && len(g) > 0 && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	var b strings.Builder
	for _, line := range w {
		b.WriteString("    - " + line + "\n")
	}
	for _, line := range g {
		b.WriteString("    + " + line + "\n")
	}
	return b.String()
}

// orphans returns the texts of tests that no longer exist in the package.
func (c *collector) orphans() []key {
	defined, files := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	names, _ := filepath.Glob(filepath.Join(c.dir, "*_test.go")) // the pattern is valid
	for _, name := range names {
		data, _ := os.ReadFile(name) // the compiler has read it
		for _, found := range files.FindAllStringSubmatch(string(data), -1) {
			defined[found[1]] = true
		}
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(c.want)), func(k key) bool { return defined[function(k.test)] })
}

// function returns the test function of a subtest.
func function(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}

// write writes the golden file. If all tests ran, it replaces the whole file; if only some did, only their
// texts.
func (c *collector) write(some bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	texts := map[key]string{}
	if some {
		texts = maps.Clone(c.want)
		for _, k := range c.orphans() {
			delete(texts, k)
		}
	}
	for k := range c.got {
		maps.DeleteFunc(texts, func(old key, _ string) bool { return old.test == k.test })
	}
	maps.Copy(texts, c.got)
	path := filepath.Join(c.dir, golden)
	if len(texts) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(format(texts)), 0o644)
}

// path returns the package path for go test, relative to the workspace root.
func (c *collector) path() string {
	for root := c.dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			if rel, err := filepath.Rel(root, c.dir); err == nil {
				return "./" + filepath.ToSlash(rel)
			}
		}
		if root == filepath.Dir(root) {
			return "."
		}
	}
}

// format formats texts as a file: the name of each, then its lines after a tab.
func format(texts map[key]string) string {
	var b strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(texts), byName) {
		b.WriteString(k.String() + "\n")
		for line := range strings.SplitSeq(texts[k], "\n") {
			b.WriteString("\t" + line + "\n")
		}
	}
	return b.String()
}

// parse parses the result of format.
func parse(file string) map[key]string {
	texts := map[key]string{}
	var k key
	for line := range strings.Lines(file) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			if before, ok := texts[k]; ok {
				text = before + "\n" + text
			}
			texts[k] = text
			continue
		}
		k = parseKey(line)
	}
	return texts
}
