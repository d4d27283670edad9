package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/united-workforce/uwf/engine/notify"
	"github.com/united-workforce/uwf/util/env"
)

// runWebhook sends the request to a webhook that stdin holds, and prints the answer.
func runWebhook(ctx context.Context, e env.Env) error {
	var p notify.Post
	if err := json.NewDecoder(e.Stdin).Decode(&p); err != nil {
		return err
	}
	return json.NewEncoder(e.Stdout).Encode(callWebhook(ctx, p))
}

func callWebhook(ctx context.Context, p notify.Post) notify.Posted {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, strings.NewReader(p.Body))
	if err != nil {
		return notify.Posted{Error: "invalid notify.webhook.url"}
	}
	for name, value := range p.Header {
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		if named := (*url.Error)(nil); errors.As(err, &named) {
			err = named.Err // without the address
		}
		return notify.Posted{Error: err.Error(), Again: true}
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // the response body doesn't matter
	_ = answer.Body.Close()
	return notify.Posted{Status: answer.StatusCode}
}
