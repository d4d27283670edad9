// Package markdown renders untrusted Markdown as HTML for package htmlpage. The library takes more than a
// millisecond before main.
package markdown

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
)

// parsing reads and renders untrusted Markdown. It has no HTML and no link references, whose definitions are invisible.
var parsing = goldmark.New(
	goldmark.WithParser(parser.NewParser(parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100), util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300), util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500), util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700), util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	), parser.WithInlineParsers(
		util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300), util.Prioritized(parser.NewEmphasisParser(), 500),
	))),
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)),
		extension.Strikethrough),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(inert{}, 100))),
)

// Limits of rendered Markdown. Text beyond them is displayed as it is.
const (
	mostMarkdown    = 64 << 10 // bytes
	mostMarks       = 2000     // marks that can open emphasis or a link; the parser takes quadratic time
	mostCells       = 20_000   // of all lines if each had the cells of the widest; the parser pads short rows
	deepestMarkdown = 40       // nodes inside each other
)

// Render returns the text as HTML. It reports false if rendering would hide a word or take long.
func Render(s string) (string, bool) {
	if len(s) > mostMarkdown || !parses(s) {
		return "", false
	}
	doc, depth, deepest := parsing.Parser().Parse(text.NewReader([]byte(s))), 0, 0
	_ = ast.Walk(doc, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if depth--; entering {
			depth += 2
		}
		if deepest = max(deepest, depth); deepest > deepestMarkdown {
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	var out bytes.Buffer
	if deepest > deepestMarkdown || parsing.Renderer().Render(&out, []byte(s), doc) != nil {
		return "", false
	}
	shown := plaintext.Escape(out.String()) // an entity may stand for anything
	words := wordsOf(html.UnescapeString(tag().ReplaceAllString(shown, " ")))
	for word, n := range wordsOf(listNumber().ReplaceAllString(s, " ")) {
		if words[word] < n {
			return "", false
		}
	}
	return shown, true
}

var (
	tag        = lazyregexp.New(`<[^>]*>`)
	listNumber = lazyregexp.New(`(?m)^[\s>*+-]*\d{1,9}[.)](\s|$)`)
	rule       = lazyregexp.New(`^[\s>|:-]*-[\s|:-]*$`) // below the head of a table
	opening    = lazyregexp.New(`^([\s>*+-]|\d{1,9}[.)]\s)+`)
	container  = lazyregexp.New(`>|[*+-]\s|[.)]\s`)
)

// parses reports whether the parser takes a text without taking long or dropping cells of a table.
func parses(s string) bool {
	marks, head, last, lines, widest := 0, 0, 0, 0, 0
	for _, mark := range []string{"*", "_", "~", "[", "`"} {
		marks += strings.Count(s, mark)
	}
	for line := range strings.Lines(s) {
		if len(container().FindAllString(opening().FindString(line), deepestMarkdown+1)) > deepestMarkdown {
			return false
		}
		if !rule().MatchString(line) {
			line = opening().ReplaceAllString(line, "")
		}
		line = strings.Trim(strings.TrimSpace(strings.ReplaceAll(line, `\|`, "")), "|")
		n := strings.Count(line, "|") + 1
		lines, widest = lines+1, max(widest, n)
		switch {
		case line == "":
			head = 0
		case head > 0 && n > head:
			return false
		case head > 0:
		case last == n && rule().MatchString(line):
			head = n
		}
		last = n
	}
	return marks <= mostMarks && lines*(widest-1) <= mostCells
}

// wordsOf counts the words of a text: what is between spaces and punctuation.
func wordsOf(s string) map[string]int {
	words := map[string]int{}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return unicode.IsSpace(r) || r < unicode.MaxASCII && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		words[word]++
	}
	return words
}

// inert renders links and images as text with their addresses, headings without a place in the page's outline,
// and code with its language as a class.
type inert struct{}

func (inert) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	around := func(of func(n ast.Node, source []byte) (before, after string)) renderer.NodeRendererFunc {
		return func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
			before, after := of(n, source)
			if !entering {
				before = after
			}
			_, err := w.WriteString(before)
			return ast.WalkContinue, err
		}
	}
	address := func(to, title []byte) string {
		shown := strings.TrimSpace(string(to) + " " + string(title))
		return ` <span class="address">(` + html.EscapeString(shown) + `)</span></span>`
	}
	r.Register(ast.KindLink, around(func(n ast.Node, _ []byte) (string, string) {
		l := n.(*ast.Link)
		return `<span class="link">`, address(l.Destination, l.Title)
	}))
	r.Register(ast.KindImage, around(func(n ast.Node, _ []byte) (string, string) {
		i := n.(*ast.Image)
		return `<span class="link image">`, address(i.Destination, i.Title)
	}))
	r.Register(ast.KindAutoLink, around(func(n ast.Node, source []byte) (string, string) {
		return `<span class="address">` + html.EscapeString(string(n.(*ast.AutoLink).Label(source))), `</span>`
	}))
	r.Register(ast.KindHeading, around(func(n ast.Node, _ []byte) (string, string) {
		return fmt.Sprintf(`<p class="head head%d">`, n.(*ast.Heading).Level), "</p>\n"
	}))
	r.Register(ast.KindFencedCodeBlock, around(func(n ast.Node, source []byte) (string, string) {
		b := n.(*ast.FencedCodeBlock)
		out := ""
		if b.Info != nil {
			info := string(b.Info.Value(source))
			out = `<p class="lang">` + html.EscapeString(info) + `</p>`
		}
		out += `<pre><code class="language-` + tag().ReplaceAllString(string(plainName(b.Language(source))), "") + `">`
		for i := range b.Lines().Len() {
			line := b.Lines().At(i)
			out += html.EscapeString(string(line.Value(source)))
		}
		return out, "</code></pre>\n"
	}))
}

// plainName keeps the letters and digits of the name of a language.
func plainName(name []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, name)
}
