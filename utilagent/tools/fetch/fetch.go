// Package fetch implements the tool fetch_url. It is a separate package so that programs without it link no
// HTTP client.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/united-workforce/uwf/utilagent/internal/publicaddr"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Bounds of a fetch.
const (
	fetchTimeout  = 30 * time.Second
	maxFetchBytes = 5 << 20 // after decompression
	maxRedirects  = 5
	fetchShown    = 20_000 // bytes of a page; longer ones are stored next to the workspace
)

// Options configures fetch_url. The zero value allows no fetches.
type Options struct {
	Allow bool
	// Private also allows addresses of this machine and its network.
	Private bool
	// Timeout bounds a fetch including redirects; default 30 seconds.
	Timeout time.Duration
	// Resolver resolves names; default: the system's.
	Resolver *net.Resolver

	public func(netip.Addr) bool // for tests; default publicaddr.Is
}

// New returns the tool fetch_url. Pages that are too long are stored next to the workspace. No proxy is used,
// because its connections could not be checked.
func New(w *tools.Workspace, f Options) tools.Tool {
	off := ""
	if !f.Allow {
		off = "fetching is disabled here. Continue without it, and list in your answer what should be looked up. " +
			"(A person can allow it: builtin.allowFetch: true in config.yaml, or UWF_BUILTIN_ALLOW_FETCH=1.)"
	}
	client := f.client()
	return tools.New(tools.Spec{
		Name:    "fetch_url",
		Aliases: []string{"web_fetch"},
		Description: "Fetch a page of the internet with GET. HTML comes as Markdown, other text as it is; a long page is kept in a file that read_file reads. " +
			fmt.Sprintf("At most %d MB and %d seconds; no images, archives or PDF.", maxFetchBytes>>20, int(cmp.Or(f.Timeout, fetchTimeout).Seconds())),
		Effect: tools.Fetches,
		Off:    off,
	}, func(ctx context.Context, a arguments) (string, error) { return f.fetch(ctx, client, w, a.URL) })
}

type arguments struct {
	URL string `json:"url" doc:"Address that begins with https:// or http://"`
}

// client returns a client with new connections for each fetch and without cookies.
func (f Options) client() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Resolver: f.Resolver}
	if !f.Private {
		dialer.Control = f.onlyPublic
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 1 << 20,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("it redirects more than %d times. Use another URL", maxRedirects)
			}
			return checkURL(req.URL)
		},
	}
}

// checkURL rejects anything but a plain web address.
func checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the scheme %q cannot be fetched. Use https or http", u.Scheme)
	}
	if u.Host == "" {
		return errors.New("the URL has no host. Write it in full, such as https://example.org/page")
	}
	if u.User != nil {
		return errors.New("the URL holds a user name. Leave it out: nothing is fetched with credentials")
	}
	return nil
}

func (f Options) fetch(ctx context.Context, client *http.Client, w *tools.Workspace, address string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return "", fmt.Errorf("%q is not a URL. Write it in full, such as https://example.org/page", address)
	}
	if err := checkURL(u); err != nil {
		return "", err
	}
	timeout := cmp.Or(f.Timeout, fetchTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %s", timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("%q is not a URL. Write it in full, such as https://example.org/page", address)
	}
	req.Header.Set("User-Agent", "uwf")
	req.Header.Set("Accept", "text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.5")
	res, err := client.Do(req)
	if err != nil {
		return "", explainFetch(ctx, u, err)
	}
	defer res.Body.Close() // whatever is needed has been read
	page, err := readPage(res)
	if err != nil {
		return "", explainFetch(ctx, u, err)
	}
	return show(w, res, page), nil
}

// explainFetch returns an error that a model can act on.
func explainFetch(ctx context.Context, u *url.URL, err error) error {
	if own, ok := errors.AsType[errPrivate](err); ok {
		return own
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s could not be fetched: %w. Try again later, or another URL", u.Redacted(), cause)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // it repeats the method and the URL
	}
	return fmt.Errorf("%s could not be fetched: %w. Check the URL, or try another one", u.Redacted(), err)
}

// webPage is the text of a response.
type webPage struct {
	text string
	cut  bool // it is longer than maxFetchBytes
}

// readPage reads the body as text, converting HTML to Markdown.
func readPage(res *http.Response) (webPage, error) {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxFetchBytes+1))
	if err != nil {
		return webPage{}, err
	}
	p := webPage{cut: len(body) > maxFetchBytes}
	body = body[:min(len(body), maxFetchBytes)]
	if kind == "" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body)) // DetectContentType returns a valid type
	}
	if !isText(kind) {
		return webPage{}, fmt.Errorf("it is %s, which is no text, and only text can be shown", kind)
	}
	text, err := decode(body, res.Header.Get("Content-Type"), kind)
	if err != nil {
		return webPage{}, err
	}
	p.text = text
	if kind == "text/html" || kind == "application/xhtml+xml" {
		p.text, err = markdown(text, res.Request.URL)
	}
	return p, err
}

// decode converts bytes to UTF-8 from the charset in the header or in the page itself.
func decode(body []byte, contentType, kind string) (string, error) {
	if utf8.Valid(body) && kind != "text/html" {
		return string(body), nil
	}
	enc, _, _ := charset.DetermineEncoding(body, contentType)
	text, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return "", fmt.Errorf("its characters cannot be read: %w", err)
	}
	return strings.ToValidUTF8(string(text), "�"), nil
}

func isText(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") {
		return true
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/yaml",
		"application/x-yaml", "application/toml", "application/x-sh", "application/x-ndjson", "application/graphql", "application/sql":
		return true
	}
	return false
}

// show formats the address, the status and the text.
func show(w *tools.Workspace, res *http.Response, p webPage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s, %s]\n", res.Request.URL.Redacted(), res.Status)
	if p.cut {
		fmt.Fprintf(&b, "[only the first %d bytes were read]\n", maxFetchBytes)
	}
	text := strings.TrimSpace(p.text)
	if text == "" {
		return b.String() + "(the page has no text)"
	}
	if len(text) <= fetchShown {
		return b.String() + text
	}
	head := text[:fetchShown]
	for !utf8.RuneStart(text[len(head)]) { // at a character boundary
		head = head[:len(head)-1]
	}
	where := "it could not be kept"
	if path := w.Keep(text); path != "" {
		where = "the whole page is in " + path + ": use read_file or grep"
	}
	fmt.Fprintf(&b, "%s\n[%d of %d bytes shown; %s]", head, len(head), len(text), where)
	return b.String()
}

// errPrivate reports an address that is not public.
type errPrivate struct{ addr netip.Addr }

func (e errPrivate) Error() string {
	return fmt.Sprintf("%s is not an address of the public internet, and only such may be fetched here. Use another URL, or say in your answer what should be looked up", e.addr)
}

// onlyPublic is for net.Dialer.Control. It checks the address actually dialed, whatever the name resolved to
// before, for every redirect and every address of a name.
func (f Options) onlyPublic(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	public := publicaddr.Is
	if f.public != nil {
		public = f.public
	}
	if !public(ap.Addr()) || publicaddr.IsOwn(ap.Addr()) {
		return errPrivate{ap.Addr()}
	}
	return nil
}

// maxHTMLNodes bounds the pages converted to Markdown: the library needs kilobytes and time per node. Larger
// pages are shown as plain text.
const maxHTMLNodes = 100_000

// markdown converts a page to Markdown, with absolute links and without elements that repeat on every page of
// a site.
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

// bareText returns the plain text of a page that is too large or too deeply nested to convert.
func bareText(text string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	hidden := false // inside a script or style element
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String() // the end: reading from memory has no other errors
		case html.StartTagToken, html.SelfClosingTagToken: // a script can't close itself
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

// tidyPage makes links absolute and removes everything but the content.
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

// isChrome reports whether an element surrounds the content of a page.
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

// absolute resolves a link. An invalid one is returned unchanged.
func absolute(link string, at *url.URL) string {
	u, err := at.Parse(strings.TrimSpace(link))
	if err != nil {
		return link
	}
	return u.String()
}
