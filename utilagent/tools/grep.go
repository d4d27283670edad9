package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/util/plaintext"
)

// Bounds of a search in files.
const (
	defaultMatches = 100
	maxMatches     = 1000
	maxCounted     = 10_000 // matches after which a search stops
	maxContext     = 5
	maxGrepBytes   = 10 << 20 // larger files are skipped
	maxShownLine   = 300
)

// Grep returns the tool grep.
func Grep(w *Workspace) Tool {
	return New(Spec{
		Name:    "grep",
		Aliases: []string{"search_files", "grep_search"},
		Description: "Search the lines of the workspace's text files for a regular expression (RE2). Shows path:line: text, sorted by path. " +
			"Files that .gitignore excludes, and node_modules, are left out.",
		Effect: Reads, SideBySide: true,
	}, func(ctx context.Context, a grepArgs) (string, error) { return w.grep(ctx, a) })
}

type grepArgs struct {
	Pattern string `json:"pattern" doc:"Regular expression, such as func\\s+\\w+Handler or foo|bar"`
	Path    string `json:"path,omitempty" doc:"Directory or file to search, relative to the working directory (default: the working directory)"`
	Glob    string `json:"glob,omitempty" doc:"Only files whose names match, such as *.go or src/**/*.ts"`
	Fold    bool   `json:"ignore_case,omitempty" doc:"Case does not matter (default false)"`
	Context int    `json:"context,omitempty" doc:"Lines to show around each match (default 0, at most 5)"`
	Files   bool   `json:"files_only,omitempty" doc:"Show only the names of the files (default false)"`
	Limit   int    `json:"limit,omitempty" doc:"How many matches to show (default 100, at most 1000)"`
}

func (w *Workspace) grep(ctx context.Context, a grepArgs) (string, error) {
	p, err := parsePattern(a.Pattern, a.Fold)
	if err != nil {
		return "", err
	}
	w = w.reading(a.Path)
	names, all, err := w.grepFiles(ctx, a)
	if err != nil {
		return "", err
	}
	g := grep{
		w: w, p: p, limit: bound(a.Limit, defaultMatches, maxMatches),
		context: min(max(a.Context, 0), maxContext), filesOnly: a.Files,
	}
	if err := g.run(ctx, names); err != nil {
		return "", err
	}
	return p.note + g.text() + g.footer(a) + walkedAll(all), nil
}

// grepFiles returns the sorted files to search.
func (w *Workspace) grepFiles(ctx context.Context, a grepArgs) (names []string, all bool, err error) {
	dir, err := w.searchDir(a.Path)
	if errors.As(err, new(errFile)) {
		local, err := w.resolve(a.Path)
		return []string{filepath.ToSlash(local)}, true, err
	}
	if err != nil {
		return nil, false, err
	}
	names, all, err = w.files(ctx, dir)
	if err != nil || a.Glob == "" {
		return names, all, err
	}
	matches, err := w.parseGlob(a.Glob, dir)
	return slices.DeleteFunc(names, func(n string) bool { return err != nil || !matches(n) }), all, err
}

// footer describes what is not shown, and suggests causes if there is no match.
func (g *grep) footer(a grepArgs) string {
	var b strings.Builder
	switch total := g.total.Load(); {
	case total == 0:
		b.WriteString(nothing(a))
	case total >= maxCounted:
		fmt.Fprintf(&b, "[%d of more than %d matches shown; use a narrower pattern, path or glob]\n", g.shown, maxCounted)
	case !a.Files && int(total) > g.shown:
		fmt.Fprintf(&b, "[%d of %d matches shown; use a narrower pattern, path or glob]\n", g.shown, total)
	case a.Files && g.files > g.shown:
		fmt.Fprintf(&b, "[%d of %d files shown; use a narrower pattern, path or glob]\n", g.shown, g.files)
	}
	if n := g.large.Load(); n > 0 {
		fmt.Fprintf(&b, "[%d files over %d MB were not searched]\n", n, maxGrepBytes>>20)
	}
	if n := g.unread.Load(); n > 0 {
		fmt.Fprintf(&b, "[%d files could not be read]\n", n)
	}
	return b.String()
}

// nothing returns the message for no match.
func nothing(a grepArgs) string {
	hint := "Try a shorter pattern or ignore_case; files in node_modules and those that .gitignore excludes are only searched if path names their directory."
	switch {
	case strings.Contains(a.Pattern, `\|`):
		hint = `In this syntax "or" is |; \| is the character itself.`
	case strings.Contains(a.Pattern, `\n`) || strings.Contains(a.Pattern, "\n"):
		hint = "A match lies within one line: search for one line of it."
	}
	return "No match. " + hint + "\n"
}

// matches finds the matching lines of a file and keeps those to show.
func (g *grep) matches(name string, text []byte) fileMatches {
	f := fileMatches{name: name}
	var hits []int // start offsets of the lines to show
	for start, end, ok := g.p.next(text, 0); ok; start, end, ok = g.p.next(text, end+1) {
		if g.total.Add(1); f.count < g.limit && !g.enough && !(g.filesOnly && f.count > 0) {
			f.count++
			hits = append(hits, start)
		}
		if g.filesOnly || g.total.Load() >= maxCounted && g.enough {
			break
		}
	}
	if !g.filesOnly && len(hits) > 0 {
		f.lines = g.around(text, hits)
	}
	return f
}

// around returns the lines that begin at hits, with context.
func (g *grep) around(text []byte, hits []int) (lines []shownLine) {
	starts := []int{0}
	for at, after := 0, 0; after <= g.context+1; starts = append(starts, at) { // only as many lines as needed, since a file may have millions
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 || at+i+1 == len(text) {
			break
		}
		if at > hits[len(hits)-1] {
			after++
		}
		at += i + 1
	}
	last := 0 // last line shown, from 1
	show := func(n int, mark byte) {
		line, _, _ := bytes.Cut(text[starts[n-1]:], []byte("\n"))
		lines, last = append(lines, shownLine{n, mark, shortLine(line)}), n
	}
	for i, hit := range hits {
		n, _ := slices.BinarySearch(starts, hit)
		n++
		first := max(last+1, n-g.context)
		if g.context > 0 && last > 0 && first > last+1 {
			lines = append(lines, shownLine{})
		}
		for k := first; k < n; k++ {
			show(k, '-')
		}
		show(n, ':')
		until := len(starts)
		if i+1 < len(hits) {
			until, _ = slices.BinarySearch(starts, hits[i+1])
		}
		for k := n + 1; k <= min(n+g.context, until); k++ {
			show(k, '-')
		}
	}
	return lines
}

// shortLine shortens a line for display.
func shortLine(line []byte) string {
	text := asText(string(line[:min(len(line), maxShownLine+4)]))
	if len(line) > maxShownLine {
		text, _ = plaintext.WholeRunes(text[:min(len(text), maxShownLine)], "")
		text += "…"
	}
	return text
}

// lineAt returns the bounds of the line at an offset.
func lineAt(text []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(text[:at], '\n') + 1
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return start, at + i
	}
	return start, len(text)
}

// shownLine is a line to display.
type shownLine struct {
	number int
	mark   byte // ':' for a match, '-' for context, 0 for a gap
	text   string
}

// text returns the matches up to the limit, within the size of a result.
func (g *grep) text() string {
	var b strings.Builder
	full := false
	for _, f := range g.found {
		g.files++
		full = full || g.shown >= g.limit || b.Len() > maxReadBytes
		if full {
			continue
		}
		if g.filesOnly {
			b.WriteString(shown(f.name) + "\n")
			g.shown++
			continue
		}
		full = g.write(&b, f)
	}
	return b.String()
}

// write writes the matches of a file and reports whether the space is used up.
func (g *grep) write(b *strings.Builder, f fileMatches) (full bool) {
	name := shown(f.name)
	if g.context > 0 && b.Len() > 0 {
		b.WriteString("--\n")
	}
	for _, l := range f.lines {
		if l.mark == ':' && g.shown >= g.limit || b.Len() > maxReadBytes {
			return true
		}
		switch l.mark {
		case 0:
			b.WriteString("--\n")
			continue
		case ':':
			g.shown++
		}
		fmt.Fprintf(b, "%s%c%d%c %s\n", name, l.mark, l.number, l.mark, l.text)
	}
	return false
}

// grep is one search. Directories are searched in batches, in order, so that the first matches by path are
// known long before the last file is read; further matches are only counted.
type grep struct {
	w         *Workspace
	p         pattern
	limit     int
	context   int // number of lines
	filesOnly bool

	total         atomic.Int64 // matching lines
	large, unread atomic.Int64 // number of files
	enough        bool         // the limit is reached; changes only between batches
	found         []fileMatches

	shown, files int
}

type fileMatches struct {
	name  string
	lines []shownLine
	count int // matching lines
}

// group is a sorted list of files in one directory.
type group struct {
	dir   string
	names []string
}

// run searches files; names must be sorted.
func (g *grep) run(ctx context.Context, names []string) error {
	const batch = 128 // groups per batch
	buffers := make([][]byte, workers())
	matches := 0
	for groups := range slices.Chunk(byDir(names), batch) {
		if context.Cause(ctx) != nil || g.enough && g.total.Load() >= maxCounted {
			break
		}
		found := make([][]fileMatches, len(groups))
		var next atomic.Int64
		var wg sync.WaitGroup
		for worker := range buffers {
			wg.Go(func() {
				for i := int(next.Add(1) - 1); i < len(groups); i = int(next.Add(1) - 1) {
					found[i] = g.group(ctx, groups[i], &buffers[worker])
				}
			})
		}
		wg.Wait()
		for _, f := range slices.Concat(found...) {
			g.found = append(g.found, f)
			if matches++; !g.filesOnly {
				matches += f.count - 1
			}
		}
		g.enough = matches >= g.limit
	}
	return context.Cause(ctx)
}

// byDir groups files by directory, so that each directory is opened once per group.
func byDir(names []string) []group {
	const most = 64 // per group, so that one large directory keeps all workers busy
	var groups []group
	for _, name := range names {
		dir, base := path.Split(name)
		n := len(groups)
		if n == 0 || groups[n-1].dir != dir || len(groups[n-1].names) == most {
			groups = append(groups, group{dir: dir})
			n++
		}
		groups[n-1].names = append(groups[n-1].names, base)
	}
	return groups
}

func (g *grep) group(ctx context.Context, in group, buf *[]byte) []fileMatches {
	d, err := g.w.folder(filepath.FromSlash("./" + in.dir))
	if err != nil {
		g.unread.Add(int64(len(in.names)))
		return nil
	}
	defer d.close()
	var found []fileMatches
	for _, base := range in.names {
		if context.Cause(ctx) != nil {
			return found
		}
		text, err := d.read(base, maxGrepBytes, buf)
		switch {
		case errors.Is(err, errLarge):
			g.large.Add(1)
		case err != nil && !errors.Is(err, fs.ErrNotExist): // git lists deleted files as well
			g.unread.Add(1)
		}
		if err != nil || len(text) == 0 || isBinary(text) || !g.p.worth(text) {
			continue
		}
		if f := g.matches(in.dir+base, withoutCR(text)); f.count > 0 {
			found = append(found, f)
		}
	}
	return found
}

// isBinary reports whether the beginning of a file is binary, by git's rule.
func isBinary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 }

// withoutCR returns a text with LF line endings, since $ would not match before CR.
func withoutCR(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}

// worth reports whether a text can match: it contains a literal that every match has, which is much cheaper to
// search for.
func (p *pattern) worth(text []byte) bool {
	return p.word == "" || bytes.Contains(text, []byte(p.word))
}

// next finds the first matching line at or after at, which must be the start of a line.
func (p *pattern) next(text []byte, at int) (start, end int, ok bool) {
	for at < len(text) {
		hit := p.re.FindIndex(text[at:])
		if hit == nil || at+hit[0] == len(text) && text[len(text)-1] == '\n' {
			break // no match, or an empty one after the last line ending
		}
		if start, end = lineAt(text, at+hit[0]); p.re.Match(text[start:end]) {
			return start, end, true
		}
		at = end + 1
	}
	return 0, 0, false
}

// pattern is a regular expression that matches within a line.
type pattern struct {
	re   *regexp.Regexp
	word string // literal contained in every match, or ""
	note string
}

// parsePattern parses an RE2 regular expression. An invalid one is taken literally, with a note, unless the
// intention is clear.
func parsePattern(text string, fold bool) (pattern, error) {
	if text == "" {
		return pattern{}, errors.New("the pattern is empty. Give a regular expression")
	}
	if len(text) > 10_000 {
		return pattern{}, errors.New("the pattern is longer than 10000 characters. Search for a part of it")
	}
	flags := syntax.Perl &^ syntax.OneLine
	if fold {
		flags |= syntax.FoldCase
	}
	p := pattern{}
	tree, err := syntax.Parse(text, flags)
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		if bad.Code == syntax.ErrInvalidPerlOp || bad.Code == syntax.ErrInvalidEscape || bad.Code == syntax.ErrInvalidRepeatSize || bad.Code == syntax.ErrLarge {
			return pattern{}, fmt.Errorf("the pattern is not valid: %s: %s. The syntax is RE2: no lookaround (?=…) (?!…), no back references \\1, repeats up to 1000", bad.Code, bad.Expr)
		}
		p.note = fmt.Sprintf("[%q is not a valid regular expression (%s): it was searched for as plain text]\n", text, bad.Code)
		tree, err = syntax.Parse(regexp.QuoteMeta(text), flags)
	}
	if err != nil {
		return pattern{}, fmt.Errorf("the pattern is not valid: %w. Use the syntax of RE2", err)
	}
	withinLine(tree)
	if p.re, err = regexp.Compile(tree.String()); err != nil {
		return pattern{}, fmt.Errorf("the pattern is not valid: %w. Use the syntax of RE2", err)
	}
	p.word = wordIn(tree.Simplify())
	return p, nil
}

// withinLine rewrites a regular expression so that it does not match line endings. Searching a whole file
// then gives the same result as searching its lines.
func withinLine(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op, re.Flags = syntax.OpEndLine, re.Flags&^syntax.WasDollar
	case syntax.OpCharClass:
		re.Rune = withoutNL(re.Rune)
		if len(re.Rune) == 0 {
			re.Op = syntax.OpNoMatch
		}
	}
	for _, sub := range re.Sub {
		withinLine(sub)
	}
}

// withoutNL removes the newline from the ranges of a character class.
func withoutNL(ranges []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if lo > '\n' || hi < '\n' {
			out = append(out, lo, hi)
			continue
		}
		if lo < '\n' {
			out = append(out, lo, '\n'-1)
		}
		if hi > '\n' {
			out = append(out, '\n'+1, hi)
		}
	}
	return out
}

// wordIn returns the longest literal contained in every match, or "".
func wordIn(re *syntax.Regexp) (word string) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 && !strings.ContainsAny(string(re.Rune), "\n\x00") {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return wordIn(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return wordIn(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if one := wordIn(sub); len(one) > len(word) {
				word = one
			}
		}
	}
	return word
}
