// Package fetch is the tool fetch_url. It is a package of its own so that who has no
// use for it links no HTTP client.
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
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/united-workforce/uwf/utilagent/tools"
)

// Bounds of a fetch.
const (
	fetchTimeout  = 30 * time.Second
	maxFetchBytes = 5 << 20 // after decompression
	maxRedirects  = 5
	fetchShown    = 20_000 // bytes of a page; the rest is kept beside the workspace
)

// Options say what fetch_url may do. The zero value allows nothing.
type Options struct {
	Allow bool
	// Private also allows addresses of this machine and its network.
	Private bool
	// UserAgent names the program to servers; "": "uwf".
	UserAgent string
	// Timeout bounds a fetch with all its redirects; 0: 30 seconds.
	Timeout time.Duration
	// Resolver finds the addresses of a name; nil: the system's.
	Resolver *net.Resolver

	public func(netip.Addr) bool // for tests; nil: publicaddr.Is
}

// New is the tool fetch_url; what is too long for an answer is kept beside the
// workspace. No proxy is used: whoever dials for us decides
// what is reached, and could not be checked.
func New(w *tools.Workspace, f Options) tools.Tool {
	off := ""
	if !f.Allow {
		off = "fetching is switched off here. Go on without it, and say in your answer what should be looked up. " +
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

// client makes connections of its own for each fetch, and remembers no cookies.
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

// checkURL refuses what is not a plain web address.
func checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the scheme %q cannot be fetched. Use https or http", u.Scheme)
	}
	if u.Host == "" {
		return errors.New("the URL names no host. Write it in full, such as https://example.org/page")
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
	req.Header.Set("User-Agent", f.agent())
	req.Header.Set("Accept", "text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.5")
	res, err := client.Do(req)
	if err != nil {
		return "", explainFetch(ctx, u, err)
	}
	defer res.Body.Close() // what was read is what counts
	page, err := readPage(res)
	if err != nil {
		return "", explainFetch(ctx, u, err)
	}
	return show(w, res, page), nil
}

func (f Options) agent() string {
	if f.UserAgent == "" {
		return "uwf"
	}
	return f.UserAgent
}

// explainFetch says what a model can do about a failed fetch.
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

// webPage is the text of an answer.
type webPage struct {
	text string
	cut  bool // there is more than maxFetchBytes
}

// readPage reads the body as text, HTML as Markdown.
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
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body)) // what it says always parses
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

// decode turns bytes into UTF-8, from the charset that the header or the page
// itself names.
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

// show puts the address, the status and the text together.
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
	for !utf8.RuneStart(text[len(head)]) { // between two characters
		head = head[:len(head)-1]
	}
	where := "it could not be kept"
	if path := w.Keep(text); path != "" {
		where = "the whole page is in " + path + ": use read_file or grep"
	}
	fmt.Fprintf(&b, "%s\n[%d of %d bytes shown; %s]", head, len(head), len(text), where)
	return b.String()
}
