package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

const greet = `name: greet
description: Greets <b>all</b>.
inputs:
  who: string
  count: { schema: { type: integer }, default: 2, description: Of greetings. }
  tone: { schema: { enum: [warm, cold] }, default: warm }
roles:
  writer: { description: Writes., prompt: "Greet {{$inputs.who}}.", answer: { $status: [done], text: string } }
graph: { $START: { _: writer }, writer: { done: $END } }
`

func TestStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()()
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, ".workflow"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".workflow", "greet.yaml"), []byte(greet), 0o600))
	require.Contains(t, s.get("start", http.StatusOK), ">greet<")
	s.get("start?workflow=../greet.yaml", http.StatusNotFound)
	page := s.get("start?workflow=greet", http.StatusOK)
	require.NotContains(t, page, "<b>all")
	for _, part := range []string{`name="task"`, `name="input.who"`, `name="input.count"`, "<option>cold", `name="agent.writer"`, "<option>fake"} {
		require.Contains(t, page, part)
	}
	post := func(want int, form url.Values) string {
		t.Helper()
		form.Set("workflow", "greet")
		status, page := s.post("start", form)
		require.Equal(t, want, status, page)
		return page
	}
	whole := func() url.Values {
		return url.Values{"do": {"start"}, "task": {"greet <i>"}, "input.who": {"Ada"}, "input.count": {"3"}, "input.tone": {"cold"},
			"agent.writer": {"fake"}, "workspace": {"none"}, "max-cost": {"$2"}, "max-tokens": {"1000000"}, "max-time": {"2h"}}
	}
	for name, value := range map[string]string{
		"task": " ", "input.who": "", "input.count": "many", "input.tone": "hot", "agent.writer": "sh -c id", "workspace": "elsewhere",
		"input.gone": "x", "agent.gone": "fake", "hash": "0000000000000",
		"max-cost": "-1", "max-tokens": "x", "max-time": "soon",
	} {
		form := whole()
		form.Set(name, value)
		require.Contains(t, post(http.StatusUnprocessableEntity, form), "card bad", name)
	}
	once := whole()
	once.Set("once", "x")
	s.server.started.Store("x", true)
	post(http.StatusOK, once) // it was sent before
	plan := whole()
	plan.Set("do", "plan")
	page = post(http.StatusOK, plan)
	require.Contains(t, page, "card good")
	require.Contains(t, page, "greet &lt;i&gt;</textarea>")
	require.Contains(t, page, "Ada")
	all, err := threads(s)
	require.NoError(t, err)
	require.Empty(t, all)

	post(http.StatusOK, whole())
	all, err = threads(s)
	require.NoError(t, err)
	require.Len(t, all, 1)
	for id := range all {
		at := s.waits(id)
		require.Equal(t, protocol.StatusCompleted, at.Status)
		made, err := thread.Open(t.Context(), s.engine.Reader.Store, at.Head)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"who": "Ada", "count": int64(3), "tone": "cold"}, made.Start.Inputs)
		require.Equal(t, "greet <i>", made.Start.Prompt)
		facts, err := s.engine.Reader.Heads.Facts(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, protocol.Limits{MaxCostUSD: 2, MaxTokens: 1_000_000, MaxTimeMs: 7_200_000}, facts.Limits.Limits)
	}
	newSite(t, false).get("start", http.StatusNotFound)
}
