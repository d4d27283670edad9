// Package llm is a client for endpoints with OpenAI's chat completions API. It handles the behavior of real
// endpoints: replies in every known shape, truncated or stalled streams, errors in six formats, rate limits.
//
// Invariants:
//   - the key is sent only to the endpoint's own scheme and host, and appears in no error;
//   - a reply is complete or an error: nothing from a truncated stream is returned;
//   - every tool call in a reply has an ID that is unique in the conversation.
package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// Options configures a client. The zero value is usable.
type Options struct {
	// Transport sends the requests. Default: http.DefaultTransport's behavior, with the proxies from the
	// environment.
	Transport http.RoundTripper
	// Sleep waits between tries; default: the real clock. It returns ctx's cause if ctx is cancelled first.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter returns a number in [0,1) that spreads the retries of many clients; default: random.
	Jitter func() float64
	// FirstByte bounds the wait for the head of a reply, and Idle the silence within one. The defaults are
	// the endpoint's config, or else 5 and 2 minutes. Without streaming, both are at least 15 minutes,
	// because nothing arrives before the model is done.
	FirstByte time.Duration
	Idle      time.Duration
	// MaxDuration bounds the total duration of a reply, so that an endless reply that is never silent cannot block
	// an agent; default one hour.
	MaxDuration time.Duration
	// Once disables retries that need a wait, for a user who checks whether a model answers.
	Once bool
	// Repeats bounds the number of retries; nil: depends on the kind of failure.
	Repeats *int
	// Notify is called before every wait with a text for the user; it may be nil.
	Notify func(text string)
}

// Client talks to one model at one endpoint. It is safe for concurrent use.
type Client struct {
	endpoint config.Endpoint
	options  Options
	http     *http.Client

	mu     sync.Mutex
	quirks quirks // learned from the endpoint's errors, for the client's lifetime
}

// New returns a client.
func New(e config.Endpoint, o Options) *Client {
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	o.FirstByte = cmp.Or(o.FirstByte, e.IdleTimeout, 5*time.Minute)
	o.Idle = cmp.Or(o.Idle, e.IdleTimeout, 2*time.Minute)
	o.MaxDuration = max(cmp.Or(o.MaxDuration, time.Hour), e.IdleTimeout)
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	c := &Client{endpoint: e, options: o, quirks: quirks{noStream: !e.Stream, noToolMarks: !e.CacheControl, noMarks: !e.CacheControl}}
	c.http = &http.Client{Transport: o.Transport, CheckRedirect: sameHost}
	return c
}

// Source identifies the endpoint and model; see [Message.Source]. It contains no password, since it is
// stored.
func (c *Client) Source() string { return c.safeURL() + " " + c.endpoint.Model }

// URL returns the endpoint's address, without a password, query or key.
func (c *Client) URL() string { return c.safeURL() }

// Complete sends a request to the model and retries where that may help. With an error, the response contains
// only the cost of the tries. Errors are [*Error] or ctx's cause.
func (c *Client) Complete(ctx context.Context, req Request) (Response, error) {
	var tries tries
	var failed []Failure
	whole := false // streaming was turned off for this request
	for {
		resp, err := c.once(ctx, req)
		empty := isEmpty(resp, err)
		if empty && c.setStreaming(false) {
			whole = true
			failed = append(failed, Failure{Reason: "empty stream; retried without streaming", Usage: resp.Usage})
			continue // some servers drop replies that they cannot stream
		}
		if empty && whole {
			c.setStreaming(true) // streaming was not the cause
		}
		resp.Failures = failed
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return resp, context.Cause(ctx)
		}
		var e *Error
		if !errors.As(err, &e) {
			return resp, err
		}
		if c.learn(e) {
			failed = append(failed, Failure{Reason: e.short() + "; retried with other options", Usage: resp.Usage})
			continue
		}
		wait, again := tries.next(e, c.options.Jitter)
		if most := c.options.Repeats; !again || c.options.Once || most != nil && tries.total > *most {
			return resp, c.describe(e, tries.total)
		}
		failed = append(failed, Failure{Reason: e.short(), Wait: wait, Usage: resp.Usage})
		c.options.Notify(e.waiting(c.endpoint.Model, tries.total+1, wait))
		if err := c.options.Sleep(ctx, wait); err != nil {
			return Response{Failures: failed}, err
		}
	}
}

// isEmpty reports whether a reply is complete but empty.
func isEmpty(resp Response, err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.empty
	}
	return err == nil && resp.Empty() && resp.Finish == FinishStop
}

// sleep waits, using the real clock.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// encode returns the body of a request. Equal conversations give equal bytes, so that a provider's prompt
// cache hits.
func (c *Client) encode(req Request, q quirks) ([]byte, error) {
	size := 1 << 10 // at once, because a conversation can have megabytes
	for _, m := range req.Messages {
		size += len(m.Content) + len(m.Content)/8 + 1<<10
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	b.WriteString(`{"messages":[`)
	begin := b.Len()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	marked := !q.noMarks && len(req.Tools) > 0 // without tools there is only one request, so writing a cache is a waste
	err := c.wireMessages(req.Messages, marked, q, func(message any) error {
		if b.Len() > begin {
			b.WriteByte(',')
		}
		return e.Encode(message)
	})
	if err != nil {
		return nil, err
	}
	fields, err := marshal(c.fields(req, q))
	if err != nil {
		return nil, err
	}
	b.WriteString("],")
	b.Write(fields[1:])
	return b.Bytes(), nil
}

// fields returns the fields of a request except messages.
func (c *Client) fields(req Request, q quirks) map[string]any {
	m := map[string]any{"model": c.endpoint.Model, "stream": !q.noStream}
	if !q.noStream && !q.noStreamOptions {
		m["stream_options"] = map[string]any{"include_usage": true}
	}
	if len(req.Tools) > 0 {
		m["tools"] = wireTools(req.Tools)
	}
	if len(req.Tools) > 0 && !q.noToolChoice {
		m["tool_choice"] = choice(req)
	}
	if req.JSON && !q.noJSONMode {
		m["response_format"] = map[string]any{"type": "json_object"}
	}
	return m
}

func choice(req Request) any {
	switch {
	case req.NoCalls:
		return "none"
	case req.Force != "":
		return map[string]any{"type": "function", "function": map[string]any{"name": req.Force}}
	}
	return "auto"
}

func wireTools(tools []Tool) []any {
	list := make([]any, 0, len(tools))
	for _, t := range tools {
		list = append(list, map[string]any{"type": "function", "function": map[string]any{
			"name": t.Name, "description": t.Description, "parameters": t.Parameters,
		}})
	}
	return list
}

// LongWait is the longest wait before a retry. If an endpoint asks for more, there is no retry; [Error.Wait]
// reports how long.
const LongWait = time.Minute

// Maximum tries per request, by kind of failure. They are few because the engine reruns a failed agent.
const (
	rateTries    = 4
	serverTries  = 4
	dialTries    = 3 // an unreachable server rarely comes up within a minute
	rejectsTries = 3 // the model's own malformed tool call
)

// firstWait is the first wait if the endpoint does not specify one. It doubles with each retry, with 25 %
// jitter.
const firstWait = 2 * time.Second

// tries counts the failures of one request.
type tries struct {
	total, rate, server, dial, reject int
}

// next returns the wait before the next try, and whether there is one.
func (t *tries) next(e *Error, jitter func() float64) (time.Duration, bool) {
	t.total++
	n, limit := &t.server, serverTries
	switch e.Kind {
	case errorkind.RateLimit:
		n, limit = &t.rate, rateTries
	case ToolUse:
		n, limit = &t.reject, rejectsTries
	case Network:
		if e.dial {
			n, limit = &t.dial, dialTries
		}
	case errorkind.Server, StreamCut, Idle:
	default:
		return 0, false
	}
	*n++
	if *n >= limit || e.Wait > LongWait || e.final {
		return 0, false
	}
	if e.Kind == ToolUse {
		return 0, true
	}
	if e.Wait > 0 {
		return e.Wait, true
	}
	return time.Duration(float64(firstWait<<(*n-1)) * (0.75 + jitter()/2)), true
}

// maxErrorBody bounds how much of an error's body is read.
const maxErrorBody = 1 << 20

var (
	errIdle     = errors.New("the endpoint stopped responding")
	errEndless  = errors.New("the endpoint does not finish its reply")
	errRedirect = errors.New("the endpoint redirects; set baseUrl to the final address")
)

// once sends a request a single time.
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
	ctx, dog := watch(ctx, first, idle, c.options.MaxDuration)
	httpReq, err := c.newRequest(ctx, body)
	if err != nil {
		dog.stop()
		return Response{}, err
	}
	res, err := c.http.Do(httpReq) //nolint:bodyclose // dog.finish closes it
	if err != nil {
		err = c.transportError(ctx, err)
		dog.stop()
		return Response{}, err
	}
	defer dog.finish(res.Body)
	r := bufio.NewReaderSize(&bounded{r: dog.reader(res.Body), left: maxReply}, 32<<10)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		text, _ := io.ReadAll(io.LimitReader(r, maxErrorBody)) // use as much as arrived
		return Response{}, c.httpError(res.StatusCode, res.Header, text)
	}
	resp, err := c.readReply(r, res.Header, ids(req.Messages), req.Watch)
	var known *Error
	if err != nil && !errors.As(err, &known) {
		err = c.cutError(ctx, err)
	}
	return resp, err
}

func (c *Client) newRequest(ctx context.Context, body []byte) (*http.Request, error) {
	u, err := endpointURL(c.endpoint.BaseURL)
	if err != nil {
		return nil, c.describe(&Error{Kind: errorkind.BadRequest, Message: err.Error()}, 1)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, c.describe(&Error{Kind: errorkind.BadRequest, Message: c.mask(err.Error())}, 1)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	c.identify(r)
	return r, nil
}

// identify sets the credentials. The key is used nowhere else.
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

// endpointURL returns the URL for requests, below the base URL's path.
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

// safeURL returns the endpoint's address without a password or query.
func (c *Client) safeURL() string {
	u, err := endpointURL(c.endpoint.BaseURL)
	if err != nil {
		return "(no usable address)"
	}
	u.RawQuery = ""
	return c.mask(u.Redacted())
}

// sameHost allows redirects only to the same scheme and host and with the same method: any other would leak
// the key or the conversation, or lose the body.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || req.Method != first.Method || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		return errRedirect
	}
	return nil
}

// transportError returns the error for a request without a response.
func (c *Client) transportError(ctx context.Context, err error) error {
	if e := tooSlow(ctx); e != nil {
		return e
	}
	if errors.Is(err, errRedirect) {
		return c.describe(&Error{Kind: errorkind.BadRequest, Message: errRedirect.Error(), Err: errRedirect}, 1)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its own text repeats the URL with its query
	}
	var op *net.OpError
	dial := errors.As(err, &op) && op.Op == "dial"
	var cert *tls.CertificateVerificationError
	final := errors.As(err, &cert) || errors.Is(err, http.ErrSchemeMismatch)
	return &Error{Kind: Network, Message: c.mask(err.Error()), Err: err, dial: dial, final: final}
}

// cutError returns the error for a reply that ended early.
func (c *Client) cutError(ctx context.Context, err error) error {
	if e := tooSlow(ctx); e != nil {
		return e
	}
	if errors.Is(err, errTooLong) {
		return &Error{Kind: errorkind.BadRequest, Message: err.Error(), Err: err} // a retry would be as long
	}
	return &Error{Kind: StreamCut, Message: c.mask(err.Error()), Err: err}
}

// tooSlow returns the error if a watchdog ended the request, or nil.
func tooSlow(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errIdle) || errors.Is(cause, errEndless) {
		return &Error{Kind: Idle, Message: cause.Error(), Err: cause}
	}
	return nil
}

// watchdog ends a request whose endpoint is silent for too long, or whose reply never ends.
type watchdog struct {
	timer  *time.Timer
	idle   time.Duration
	cancel context.CancelCauseFunc
	whole  context.CancelFunc
}

func watch(ctx context.Context, first, idle, whole time.Duration) (context.Context, *watchdog) {
	ctx, stop := context.WithTimeoutCause(ctx, whole, errEndless)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(first, func() { cancel(errIdle) })
	return ctx, &watchdog{timer: timer, idle: idle, cancel: cancel, whole: stop}
}

// stop ends the request.
func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
	w.whole()
}

// farewell bounds the wait for the end of a response body after its last event.
const farewell = 50 * time.Millisecond

// finish ends a request whose reply has been read. The connection can be used again only if the end of the body
// has arrived, which may be a moment after the last event.
func (w *watchdog) finish(body io.ReadCloser) {
	w.timer.Reset(farewell)
	_, _ = io.CopyN(io.Discard, body, 64<<10) // errors don't matter here
	_ = body.Close()
	w.stop()
}

// reader wraps a body: every byte resets the timeout.
func (w *watchdog) reader(r io.Reader) io.Reader {
	w.timer.Reset(w.idle)
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if n > 0 {
			w.timer.Reset(w.idle)
		}
		return n, err
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

const (
	// listTime bounds the request for the model list, because a user is waiting.
	listTime = 15 * time.Second
	// maxList bounds the list; some routers offer hundreds of models.
	maxList = 16 << 20
)

// Models returns the sorted list of models that the endpoint offers. Not every endpoint has such a list.
// Errors are [*Error] or ctx's cause.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, listTime, errIdle)
	defer stop()
	u, err := endpointURL(c.endpoint.BaseURL)
	if err != nil {
		return nil, c.describe(&Error{Kind: errorkind.BadRequest, Message: err.Error()}, 1)
	}
	u.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "chat/completions"), "/") + "/models"
	u.RawPath = ""
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, c.describe(&Error{Kind: errorkind.BadRequest, Message: c.mask(err.Error())}, 1)
	}
	r.Header.Set("Accept", "application/json")
	c.identify(r)
	res, err := c.http.Do(r)
	if err != nil {
		return nil, c.listError(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	if err != nil {
		return nil, c.listError(ctx, err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, c.describe(c.httpError(res.StatusCode, res.Header, body[:min(len(body), maxErrorBody)]), 1)
	}
	names, err := modelNames(body)
	if err != nil {
		return nil, c.describe(&Error{Kind: errorkind.BadRequest, Message: err.Error()}, 1)
	}
	return names, nil
}

func (c *Client) listError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errIdle) {
		return cause
	}
	if e, ok := errors.AsType[*Error](c.transportError(ctx, err)); ok {
		return c.describe(e, 1)
	}
	return err
}

// modelNames parses OpenAI's {"data": [{"id": …}]}. Some servers leave the outer object out, or use "models"
// and "name".
func modelNames(body []byte) ([]string, error) {
	type model struct{ ID, Name string }
	var list struct{ Data, Models []model }
	if json.Unmarshal(body, &list) != nil {
		if err := json.Unmarshal(body, &list.Data); err != nil {
			return nil, errors.New("the list of models is not JSON")
		}
	}
	var names []string
	for _, m := range append(list.Data, list.Models...) {
		// Gemini's compatible endpoint lists "models/…" but accepts the bare name.
		if name := strings.TrimPrefix(m.ID, "models/"); name != "" {
			names = append(names, name)
		} else if m.Name != "" {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// quirks are an endpoint's deviations from the most tolerant one. Each is learned from an error, once.
type quirks struct {
	noStream        bool // streams lose replies, or the config disables them
	noStreamOptions bool
	noToolChoice    bool
	noJSONMode      bool
	noExtra         bool // rejects its own reasoning fields
	emptyReasoning  bool // requires reasoning_content on every assistant message
	bridge          bool // requires an assistant message between tool and user
	flatten         bool // rejects calls that it did not make itself
	noToolMarks     bool // rejects cache_control in tool results
	noMarks         bool // rejects it everywhere, or the config disables it
}

// quirkRules map patterns in an error text to the quirk that causes it.
var quirkRules = []struct {
	text func() *regexp.Regexp
	flag func(*quirks) *bool
}{
	{lazyregexp.New("(?i)missing.{0,20}reasoning_content|reasoning_content.{0,60}(required|must be)"),
		func(q *quirks) *bool { return &q.emptyReasoning }},
	{lazyregexp.New("(?i)(unsupported|not supported|unknown|unrecogni[sz]ed|not permitted|extra|additional|unexpected).{0,80}(reasoning|extra_content)"),
		func(q *quirks) *bool { return &q.noExtra }},
	{lazyregexp.New("(?i)(reasoning|extra_content).{0,80}(unsupported|not supported|unknown|unrecogni[sz]ed|not permitted|not allowed|unexpected)"),
		func(q *quirks) *bool { return &q.noExtra }},
	{lazyregexp.New("(?i)thought_?signature"), func(q *quirks) *bool { return &q.flatten }},
	{lazyregexp.New("(?i)stream_options"), func(q *quirks) *bool { return &q.noStreamOptions }},
	{lazyregexp.New("(?i)response_format"), func(q *quirks) *bool { return &q.noJSONMode }},
	{lazyregexp.New("(?i)tool_choice"), func(q *quirks) *bool { return &q.noToolChoice }},
	{lazyregexp.New("(?i)stream(ing)? (is |are )?(not |un)(supported|available)|(not|n't) support stream"),
		func(q *quirks) *bool { return &q.noStream }},
	{messageOrder, func(q *quirks) *bool { return &q.bridge }},
	{marksRefused, func(q *quirks) *bool { return &q.noToolMarks }},
	{marksRefused, func(q *quirks) *bool { return &q.noMarks }},
}

// marksRefused matches cache_control, or the list form of content that it requires.
var marksRefused = lazyregexp.New("(?i)cache[_ -]?control|content.{0,80}(must be|should be|expected|valid).{0,20}string")

// learn adapts to an endpoint's error and reports whether to retry. Each quirk is learned once, so this ends.
func (c *Client) learn(e *Error) bool {
	if e.Kind != Compat && e.Kind != MessageOrder {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rule := range quirkRules {
		flag := rule.flag(&c.quirks)
		if rule.text().MatchString(e.Message) && !*flag {
			*flag = true
			return true
		}
	}
	return false
}

// isQuirk reports whether [Client.learn] may handle an error.
func isQuirk(message string) bool {
	for _, rule := range quirkRules {
		if rule.text().MatchString(message) {
			return true
		}
	}
	return false
}

// setStreaming turns streaming off or on for later requests and reports whether that changed anything.
func (c *Client) setStreaming(on bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := !c.quirks.noStream
	c.quirks.noStream = !on
	return was != on
}

func (c *Client) currentQuirks() quirks {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quirks
}
