package llm

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxErrorBody bounds how much of an error's body is read.
const maxErrorBody = 1 << 20

var (
	errIdle     = errors.New("the endpoint went silent")
	errEndless  = errors.New("the endpoint does not come to an end")
	errRedirect = errors.New("the endpoint redirects to another place; put the final address into baseUrl")
)

// once asks the model a single time.
func (c *Client) once(ctx context.Context, req Request) (Response, error) {
	q := c.currentQuirks()
	body, err := c.encode(req, q)
	if err != nil {
		return Response{}, fmt.Errorf("encode request: %w", err)
	}
	first, idle := c.options.FirstByte, c.options.Idle
	if q.noStream && c.endpoint.IdleTimeout == 0 {
		first, idle = max(first, 15*time.Minute), max(idle, 15*time.Minute)
	}
	c.awaitConnection(ctx)
	ctx, dog := watch(ctx, first, idle, c.options.Whole)
	httpReq, err := c.newRequest(ctx, body)
	if err != nil {
		dog.stop()
		return Response{}, err
	}
	res, err := c.http.Do(httpReq)
	if err != nil {
		err = c.transportError(ctx, err)
		dog.stop()
		return Response{}, err
	}
	defer func() {
		ended := dog.letGo(res.Body)
		c.ending.Store(&ended)
	}()
	r := bufio.NewReaderSize(&bounded{r: dog.reader(res.Body), left: maxReply}, 32<<10)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		text, _ := io.ReadAll(io.LimitReader(r, maxErrorBody)) // what arrived of it is all there is to say
		return Response{}, c.httpError(res.StatusCode, res.Header, text)
	}
	resp, err := c.readReply(r, res.Header, ids(req.Messages), req.Watch)
	var known *Error
	if err != nil && !errors.As(err, &known) {
		err = c.cutError(ctx, err)
	}
	return resp, err
}

// newRequest builds the HTTP request.
func (c *Client) newRequest(ctx context.Context, b *body) (*http.Request, error) {
	u, err := endpointURL(c.endpoint.BaseURL)
	if err != nil {
		return nil, c.describe(&Error{Kind: KindBadRequest, Message: err.Error()}, 1)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), b.reader())
	if err != nil {
		return nil, c.describe(&Error{Kind: KindBadRequest, Message: c.mask(err.Error())}, 1)
	}
	r.ContentLength = b.size
	r.GetBody = func() (io.ReadCloser, error) { return b.reader(), nil } // for a redirect, or a connection that has gone away
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	c.identify(r)
	return r, nil
}

// identify says who asks. The key is put nowhere but here.
func (c *Client) identify(r *http.Request) {
	r.Header.Set("User-Agent", "uwf")
	key := strings.TrimSpace(c.endpoint.APIKey)
	switch {
	case key == "":
	case strings.HasSuffix(r.URL.Hostname(), ".azure.com"):
		r.Header.Set("Api-Key", key)
	default:
		r.Header.Set("Authorization", "Bearer "+key)
	}
}

// endpointURL is where to post to: below the base URL's own path.
func endpointURL(base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return nil, errors.New("baseUrl is not a URL") // the parse error would quote a password in it
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("baseUrl %q is not an http or https URL", u.Redacted())
	}
	const path = "chat/completions"
	if !strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/"+path) {
		u = u.JoinPath(path)
	}
	return u, nil
}

// safeURL is the endpoint's address for people, without a password or query.
func (c *Client) safeURL() string {
	u, err := endpointURL(c.endpoint.BaseURL)
	if err != nil {
		return "(no usable address)"
	}
	u.RawQuery = ""
	return c.mask(u.Redacted())
}

// sameHost lets a redirect pass only to the same scheme and host, and only if
// it keeps the method: anything else would carry the key or the conversation to
// a stranger, or lose the body.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || req.Method != first.Method || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		return errRedirect
	}
	return nil
}

// transportError explains why there was no answer at all.
func (c *Client) transportError(ctx context.Context, err error) error {
	if e := tooSlow(ctx); e != nil {
		return e
	}
	if errors.Is(err, errRedirect) {
		return c.describe(&Error{Kind: KindBadRequest, Message: errRedirect.Error(), Err: errRedirect}, 1)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its own text repeats the URL, with its query
	}
	var op *net.OpError
	dial := errors.As(err, &op) && op.Op == "dial"
	var cert *tls.CertificateVerificationError
	final := errors.As(err, &cert) || errors.Is(err, http.ErrSchemeMismatch)
	return &Error{Kind: KindNetwork, Message: c.mask(err.Error()), Err: err, dial: dial, final: final}
}

// cutError explains why a reply ended early.
func (c *Client) cutError(ctx context.Context, err error) error {
	if e := tooSlow(ctx); e != nil {
		return e
	}
	if errors.Is(err, errTooLong) {
		return &Error{Kind: KindBadRequest, Message: err.Error(), Err: err} // the next one would be as long
	}
	return &Error{Kind: KindStreamCut, Message: c.mask(err.Error()), Err: err}
}

// tooSlow is the error if this package has ended the request, else nil.
func tooSlow(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errIdle) || errors.Is(cause, errEndless) {
		return &Error{Kind: KindIdle, Message: cause.Error(), Err: cause}
	}
	return nil
}
