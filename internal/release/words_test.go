package main

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Markers per 1,000 words. The documentation of jj, restic and gh has 0.6, their comments 0.4. These
// budgets only go down. Don't swap words to meet them: write the sentence anew.
const (
	maxInPages    = 0.6
	maxInProgram  = 1.0
	maxInComments = 1.6
)

// markerList has a name and a regular expression per line: phrases that translated text overuses.
//
//go:embed markers.txt
var markerList string

type marker struct {
	name    string
	pattern *regexp.Regexp
}

func markers(t *testing.T) (list []marker) {
	t.Helper()
	for line := range strings.Lines(markerList) {
		if name, pattern, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && !strings.HasPrefix(name, "#") {
			list = append(list, marker{name, regexp.MustCompile(pattern)})
		}
	}
	require.Greater(t, len(list), 10)
	return list
}

// tally counts words and markers of one kind of text.
type tally struct {
	words, hits int
}

func (c *tally) add(t *testing.T, list []marker, where, text string) {
	t.Helper()
	c.words += len(word.FindAllString(text, -1))
	flat := strings.Join(strings.Fields(text), " ")
	for _, m := range list {
		of := flat
		if m.name == "doc-comment" {
			of = text
		}
		for _, at := range m.pattern.FindAllStringIndex(of, -1) {
			c.hits++
			t.Logf("%s: %s: …%s…", where, m.name, of[max(0, at[0]-30):min(len(of), at[1]+30)])
		}
	}
}

func (c *tally) rate() float64 { return 1000 * float64(c.hits) / float64(c.words) }

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)

// TestWords counts phrases that a native writer of English hardly uses, in pages, in the strings of
// the program and in comments. go test -run TestWords -v prints each with its place.
func TestWords(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	list := markers(t)
	var pages, program, comments tally
	for _, name := range files {
		switch {
		case isThirdParty(name) || inTestdata(name):
		case path.Ext(name) == ".md":
			pages.add(t, list, name, proseOf(read(t, root, name)))
		case path.Ext(name) == ".go":
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments)
			require.NoError(t, err)
			for _, group := range file.Comments {
				comments.add(t, list, name, commentText(group))
			}
			if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") || strings.HasPrefix(name, "internal/") {
				continue
			}
			for _, text := range literals(t, filepath.Join(root, name)) {
				if len(strings.Fields(text)) > 3 {
					program.add(t, list, name, text)
				}
			}
		}
	}
	t.Logf("pages %.2f of %d words, program %.2f of %d, comments %.2f of %d",
		pages.rate(), pages.words, program.rate(), program.words, comments.rate(), comments.words)
	require.LessOrEqual(t, pages.rate(), maxInPages, "pages")
	require.LessOrEqual(t, program.rate(), maxInProgram, "help, errors and other texts of the program")
	require.LessOrEqual(t, comments.rate(), maxInComments, "comments")
}

var (
	htmlComments = regexp.MustCompile(`(?s)<!--.*?-->`)
	codeBlocks   = regexp.MustCompile("(?ms)^ *```.*?^ *```[^\n]*$")
	headings     = regexp.MustCompile(`(?m)^#.*$`)
	inlineCode   = regexp.MustCompile("`[^`\n]*`")
	linkTargets  = regexp.MustCompile(`\]\([^)]*\)`)
)

// proseOf returns a page without code, headings and the targets of links.
func proseOf(page string) string {
	page = headings.ReplaceAllString(codeBlocks.ReplaceAllString(page, ""), "")
	return linkTargets.ReplaceAllString(inlineCode.ReplaceAllString(page, "`x`"), "]")
}

// commentText returns a comment without directives and code. It keeps the slashes of the first line,
// by which the marker doc-comment knows its beginning.
func commentText(group *ast.CommentGroup) string {
	var lines []string
	for _, c := range group.List {
		text := strings.TrimPrefix(c.Text, "//")
		if text == c.Text || strings.HasPrefix(text, "\t") || text != "" && text[0] != ' ' {
			continue
		}
		lines = append(lines, text)
	}
	return "//" + strings.Join(lines, "\n")
}

// maxPages bounds the pages of docs/. Its directories (agents, cli, decisions) count as one page each.
const maxPages = 34

var (
	links   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	titles  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noIDs   = regexp.MustCompile("[^a-z0-9 _-]")
	isProse = regexp.MustCompile(`^[A-Z*\[` + "`" + `u]`)
)

// TestPages holds the form of pages: they are few, each opens with a sentence that says what it is
// good for, and each link leads to a file and a heading that exist.
func TestPages(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	ids := map[string][]string{} // the anchors of each page
	texts := map[string]string{}
	docs := map[string]bool{}
	for _, name := range files {
		if path.Ext(name) != ".md" || isThirdParty(name) || inTestdata(name) {
			continue
		}
		text := strings.TrimSpace(codeBlocks.ReplaceAllString(htmlComments.ReplaceAllString(read(t, root, name), ""), ""))
		texts[name] = text
		for _, title := range titles.FindAllStringSubmatch(text, -1) {
			ids[name] = append(ids[name], anchor(title[1], ids[name]))
		}
		if rest, ok := strings.CutPrefix(name, "docs/"); ok {
			page, _, _ := strings.Cut(rest, "/")
			if page != "README.md" { // the index
				docs[page] = true
			}
			_, body, _ := strings.Cut(text, "\n")
			if page == "cli" && rest != "cli/README.md" {
				continue // generated: it opens with its first command
			}
			require.Regexp(t, isProse, strings.TrimSpace(body), "%s: it opens with what one can do with it", name)
		}
	}
	require.LessOrEqual(t, len(docs), maxPages)
	for name, text := range texts {
		for _, found := range links.FindAllStringSubmatch(inlineCode.ReplaceAllString(text, "x"), -1) {
			target, id, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			page := name
			if target != "" {
				page = path.Join(path.Dir(name), target)
			}
			if !slices.ContainsFunc(files, func(f string) bool { return f == page || strings.HasPrefix(f, page+"/") }) && page != "." {
				t.Errorf("%s links to %s, which does not exist", name, found[1])
			} else if id != "" && path.Ext(page) == ".md" && !slices.Contains(ids[page], id) {
				t.Errorf("%s links to %s, which has no such heading", name, found[1])
			}
		}
	}
}

// anchor returns the id that GitHub gives to a heading.
func anchor(title string, before []string) string {
	title = strings.ToLower(linkTargets.ReplaceAllString(strings.ReplaceAll(title, "`", ""), "]"))
	id := strings.ReplaceAll(noIDs.ReplaceAllString(title, ""), " ", "-")
	for n, first := 1, id; slices.Contains(before, id); n++ {
		id = first + "-" + string(rune('0'+n))
	}
	return id
}

// former are names that were replaced before the first release, as patterns of text.
var former = regexp.MustCompile(strings.Join([]string{
	`uwf thread (again|tell|running|join)\b`, `uwf tick\b`, `cas prune`, `bundle verify`, `--(fresh|more|more-cost)\b`,
	`\b(onLimit|maxPark|linkEnds|UWF_CONFINED|maxFile)\b`, `\bconfine: (auto|required|off)`, `\bworkspace: here\b`, `\bpermission: (bypass|readonly)\b`,
	`\b(parked|unprinted)\b`, `\blinks\.ends\b`,
}, "|"))

// TestFormerNames holds that pages and the program use the final names only.
func TestFormerNames(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	for _, name := range files {
		if isThirdParty(name) || inTestdata(name) || strings.HasPrefix(name, "internal/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		switch path.Ext(name) {
		case ".md":
			if found := former.FindString(read(t, root, name)); found != "" {
				t.Errorf("%s: %s", name, found)
			}
		case ".go":
			for _, text := range literals(t, filepath.Join(root, name)) {
				if found := former.FindString(text); found != "" && strings.Contains(text, " ") {
					t.Errorf("%s: %s in %q", name, found, text)
				}
			}
		}
	}
}
