package fetch

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxHTMLNodes bounds the pages that are shown as Markdown: the library takes
// memory and time by the kilobyte for each node. Of others the text is shown.
const maxHTMLNodes = 100_000

// markdown turns a page into Markdown, with absolute links and without what is
// there on every page of a site.
func markdown(text string, at *url.URL) (string, error) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return bareText(text), nil
	}
	title, content, count := "", doc, 0
	for n := range doc.Descendants() {
		if count++; count > maxHTMLNodes {
			return bareText(text), nil
		}
		if n.DataAtom == atom.Title && title == "" && n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
			title = strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
		if n.DataAtom == atom.Main && content == doc {
			content = n
		}
	}
	tidyPage(content, at)
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	out, err := c.ConvertNode(content)
	if err != nil {
		return "", fmt.Errorf("its HTML cannot be turned into Markdown: %w", err)
	}
	if title != "" && !strings.Contains(string(out), "# "+title) {
		return "# " + title + "\n\n" + string(out), nil
	}
	return string(out), nil
}

// bareText is what a page says, without its form: for one that is nested too
// deep to be parsed.
func bareText(text string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	hidden := false // in a script or a style
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String() // the end: the text is in memory
		case html.StartTagToken:
			name, _ := z.TagName()
			hidden = string(name) == "script" || string(name) == "style"
		case html.EndTagToken:
			hidden = false
		case html.TextToken:
			if line := strings.Join(strings.Fields(string(z.Text())), " "); line != "" && !hidden {
				b.WriteString(line + "\n")
			}
		}
	}
}

// tidyPage makes links absolute, and takes out what is no content.
func tidyPage(content *html.Node, at *url.URL) {
	var drop []*html.Node
	for n := range content.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if isChrome(n) {
			drop = append(drop, n)
			continue
		}
		for i, a := range n.Attr {
			if a.Key == "href" || a.Key == "src" {
				n.Attr[i].Val = absolute(a.Val, at)
			}
		}
	}
	for _, n := range drop {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// isChrome tells what surrounds the content of a page.
func isChrome(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Nav, atom.Footer, atom.Svg, atom.Iframe, atom.Button, atom.Input, atom.Select:
		return true
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "role" && a.Val == "navigation" || a.Key == "src" && strings.HasPrefix(a.Val, "data:") {
			return true
		}
	}
	return false
}

// absolute resolves a link; what is none stays as it is.
func absolute(link string, at *url.URL) string {
	u, err := at.Parse(strings.TrimSpace(link))
	if err != nil {
		return link
	}
	return u.String()
}
