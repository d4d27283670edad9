package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/united-workforce/uwf/cas/keywatch"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/picture"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
)

// request carries out the request of package webcall that stdin holds.
func request(ctx context.Context, e env.Env) error {
	var r webcall.Request
	if err := json.NewDecoder(e.Stdin).Decode(&r); err != nil {
		return err
	}
	var reply webcall.Reply
	switch {
	case r.Webhook != nil:
		reply = callWebhook(ctx, *r.Webhook)
	case r.Page != nil:
		reply = writePage(ctx, e, *r.Page)
	case r.Picture != nil:
		reply = draw(e.Stdout, *r.Picture)
	default:
		reply.Error = &webcall.Error{Code: protocol.CodeUsage, Message: "unknown request"}
	}
	return json.NewEncoder(e.Stderr).Encode(reply)
}

func callWebhook(ctx context.Context, hook webcall.Webhook) webcall.Reply {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, strings.NewReader(hook.Body))
	if err != nil {
		return webcall.Reply{Error: &webcall.Error{Code: protocol.CodeInvalid, Message: "invalid notify.webhook.url"}}
	}
	for name, value := range hook.Header {
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		if named := (*url.Error)(nil); errors.As(err, &named) {
			err = named.Err // without the address
		}
		return webcall.Reply{Error: &webcall.Error{Code: protocol.CodeFailed, Message: err.Error(), Again: true}}
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // the response body doesn't matter
	_ = answer.Body.Close()
	return webcall.Reply{Status: answer.StatusCode}
}

// writePage writes a thread to stdout, and looks for keys in what it reads.
func writePage(ctx context.Context, e env.Env, p webcall.Page) (reply webcall.Reply) {
	s, err := newServer(ctx, e, p.Home, p.Store)
	if err == nil {
		watched := keywatch.New(s.engine.Reader.Store)
		s.engine.Reader.Store = watched
		out := bufio.NewWriter(e.Stdout)
		err = errors.Join(htmlpage.Export(ctx, out, s.engine, p.Thread, p.Diffs), out.Flush())
		reply.Keys = watched.Found()
	}
	reply.Error = replied(err)
	return reply
}

// draw draws a graph to stdout.
func draw(stdout io.Writer, p webcall.Picture) webcall.Reply {
	p.Graph.Busy = p.Busy
	svg, err := picture.SVG(p.Graph)
	if errors.Is(err, picture.ErrTooLarge) {
		err = &protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Hints: []string{"--format text"}}
	}
	if err == nil {
		_, err = io.WriteString(stdout, svg)
	}
	return webcall.Reply{Error: replied(err)}
}

func replied(err error) *webcall.Error {
	var coded *protocol.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded):
		return &webcall.Error{Code: coded.Code, Message: coded.Message, Hints: hints.All("", coded)}
	}
	return &webcall.Error{Code: protocol.CodeFailed, Message: err.Error()}
}
