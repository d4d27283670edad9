package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/util/env"
)

// A webhook is posted to once, without following a redirect, and no error contains its address.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var asked []string
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Sign")+" "+string(body))
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	p := webcall.Webhook{URL: hook.URL + "/key-of-the-hook", Header: map[string]string{"X-Sign": "s"}, Body: "{}"}
	in, err := json.Marshal(webcall.Request{Webhook: &p})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, request(t.Context(), env.Env{Stdin: bytes.NewReader(in), Stderr: &out}))
	require.JSONEq(t, `{"Status": 302}`, out.String())
	require.Equal(t, []string{"POST /key-of-the-hook s {}"}, asked)

	hook.Close()
	answer := callWebhook(t.Context(), p)
	require.True(t, answer.Error.Again)
	require.NotEmpty(t, answer.Error.Message)
	require.NotContains(t, answer.Error.Message, "key-of-the-hook")

	p.URL = "http://[key-of-the-hook"
	answer = callWebhook(t.Context(), p)
	require.False(t, answer.Error.Again)
	require.NotContains(t, answer.Error.Message, "key-of-the-hook")
}
