package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
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

// A requested page is a complete file with rendered Markdown. The reply names the nodes that contain a key, or
// why there is no page.
func TestPageRequest(t *testing.T) {
	t.Parallel()
	const key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	s := newSite(t, false)
	id := s.start("Write **well**.")
	s.step(id, "more", "The *key* is "+key)
	dirs := s.engine.Reader.Dirs
	ask := func(id string) (page string, reply webcall.Reply) {
		in, err := json.Marshal(webcall.Request{Page: &webcall.Page{Home: dirs.Home, Store: dirs.Store, Thread: id}})
		require.NoError(t, err)
		var out, replied bytes.Buffer
		e := s.engine.Reader.Env
		e.Stdin, e.Stdout, e.Stderr = bytes.NewReader(in), &out, &replied
		require.NoError(t, request(t.Context(), e))
		require.NoError(t, json.Unmarshal(replied.Bytes(), &reply))
		return out.String(), reply
	}
	page, reply := ask(id)
	require.Nil(t, reply.Error)
	require.NotEmpty(t, reply.Keys)
	require.Contains(t, page, "The <em>key</em> is")
	require.True(t, strings.HasSuffix(strings.TrimSpace(page), "</html>"))
	page, reply = ask(strings.Repeat("0", len(id)))
	require.Empty(t, page)
	require.NotNil(t, reply.Error)
	require.Equal(t, protocol.CodeNotFound, reply.Error.Code)
}
